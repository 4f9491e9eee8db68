/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tests/gpu/host/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/gpu/host/watch.h"

enum { BLOCKS_MAX = 65536, ALIGN = 256 };

struct block {
    size_t at, bytes;
};

static struct {
    pthread_mutex_t lock;
    char *region;
    size_t bytes;                    /* of the region */
    struct block blocks[BLOCKS_MAX]; /* by address */
    int block_count;
} m = {.lock = PTHREAD_MUTEX_INITIALIZER};

void memory_open(void)
{
    if (m.region)
        mprotect(m.region, m.bytes, PROT_READ | PROT_WRITE);
}

void memory_close(void)
{
    if (m.region)
        mprotect(m.region, m.bytes, PROT_NONE);
}

static size_t region_bytes(void)
{
    const char *text = m.bytes ? NULL : getenv("RIDGE_HOST_MEMORY");
    if (m.bytes == 0)
        m.bytes = (size_t)(text ? strtol(text, NULL, 10) : 1) << 30;
    return m.bytes;
}

static bool make_region(void)
{
    if (m.region)
        return true;
    void *region =
        mmap(NULL, region_bytes(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    m.region = region == MAP_FAILED ? NULL : region;
    if (m.region)
        watch_region(m.region, m.bytes);
    return m.region != NULL;
}

/* First fit, with a gap after each block that nothing may touch either. */
static void *take_locked(size_t bytes)
{
    size_t at = 0, size = (bytes + 2 * ALIGN - 1) / ALIGN * ALIGN;
    int k = 0;
    if (!make_region() || m.block_count == BLOCKS_MAX)
        return NULL;
    for (; k < m.block_count && m.blocks[k].at - at < size; k++)
        at = m.blocks[k].at + m.blocks[k].bytes;
    if (at + size > m.bytes)
        return NULL;
    memmove(m.blocks + k + 1, m.blocks + k, (size_t)(m.block_count - k) * sizeof(m.blocks[0]));
    m.blocks[k] = (struct block){at, size};
    m.block_count++;
    char *memory = m.region + at;
    memory_open();
    memset(memory, 0xff, bytes); /* NaN: nothing may be taken as given */
    memory_close();
    watch_taken(at, size);
    return memory;
}

void *memory_take(size_t bytes)
{
    pthread_mutex_lock(&m.lock);
    void *memory = take_locked(bytes);
    pthread_mutex_unlock(&m.lock);
    return memory;
}

static void give_back_locked(const void *memory)
{
    for (int k = 0; k < m.block_count; k++) {
        if (m.region + m.blocks[k].at != memory)
            continue;
        m.block_count--;
        memmove(m.blocks + k, m.blocks + k + 1, (size_t)(m.block_count - k) * sizeof(m.blocks[0]));
        return;
    }
    fprintf(stderr, "freed %p, which is no memory of the device\n", memory);
    abort();
}

void memory_give_back(void *memory)
{
    pthread_mutex_lock(&m.lock);
    if (memory)
        give_back_locked(memory);
    pthread_mutex_unlock(&m.lock);
}

int memory_blocks(void)
{
    return m.block_count;
}

void memory_sizes(size_t *free_bytes, size_t *total)
{
    *total = *free_bytes = region_bytes();
    for (int k = 0; k < m.block_count; k++)
        *free_bytes -= m.blocks[k].bytes;
}

bool memory_is_device(const void *at, size_t bytes)
{
    for (int k = 0; k < m.block_count; k++) {
        const char *first = m.region + m.blocks[k].at;
        if ((const char *)at >= first && (const char *)at + bytes <= first + m.blocks[k].bytes)
            return true;
    }
    return false;
}

bool memory_is_region(const void *at)
{
    return m.region && (const char *)at >= m.region && (const char *)at < m.region + m.bytes;
}
