/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 64 * 1024, ALIGN_BYTES = 16 };

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(16) unsigned char data[];
};

static struct arena_block *block_new(size_t size)
{
    struct arena_block *block = malloc(sizeof(*block) + size);
    if (!block)
        return NULL;
    block->next = NULL;
    block->used = 0;
    block->size = size;
    return block;
}

void *arena_alloc(struct arena *arena, size_t size_bytes)
{
    if (size_bytes > SIZE_MAX / 2)
        return NULL;
    size_t size = (size_bytes + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1);
    struct arena_block *head = arena->head;
    if (!head || head->size - head->used < size) {
        struct arena_block *block = block_new(size > BLOCK_BYTES / 4 ? size : BLOCK_BYTES);
        if (!block)
            return NULL;
        if (head && size > BLOCK_BYTES / 4) { /* keep the half-empty block in front */
            block->next = head->next;
            head->next = block;
        } else {
            block->next = head;
            arena->head = block;
        }
        head = block;
    }
    void *memory = head->data + head->used;
    head->used += size;
    arena->size_bytes += size_bytes;
    return memset(memory, 0, size);
}

void *arena_array(struct arena *arena, size_t count, size_t item_bytes)
{
    if (item_bytes && count > SIZE_MAX / 2 / item_bytes)
        return NULL;
    return arena_alloc(arena, count * item_bytes);
}

void *arena_grow(struct arena *arena, void *array, size_t *capacity, size_t need, size_t item_bytes)
{
    if (need <= *capacity)
        return array;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    if (wanted < need)
        wanted = need;
    void *grown = arena_array(arena, wanted, item_bytes);
    if (!grown)
        return NULL;
    if (*capacity)
        memcpy(grown, array, *capacity * item_bytes);
    *capacity = wanted;
    return grown;
}

void *arena_copy(struct arena *arena, const void *data, size_t size_bytes)
{
    void *copy = arena_alloc(arena, size_bytes);
    if (copy && size_bytes)
        memcpy(copy, data, size_bytes);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_copy(arena, text, strlen(text) + 1);
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return NULL;
    char *text = arena_alloc(arena, (size_t)length + 1);
    if (!text)
        return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

void arena_release(struct arena *arena)
{
    struct arena_block *block = arena->head;
    while (block) {
        struct arena_block *next = block->next;
        free(block);
        block = next;
    }
    arena->head = NULL;
    arena->size_bytes = 0;
}
