/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_BYTES = 2 << 20, PAGE_BYTES = 4096, LINE_BYTES = 64 };

void *memory_alloc(size_t bytes)
{
    void *memory;
    size_t align = bytes >= HUGE_BYTES ? HUGE_BYTES : bytes >= PAGE_BYTES ? PAGE_BYTES : LINE_BYTES;
    size_t unit = bytes >= HUGE_BYTES ? PAGE_BYTES : LINE_BYTES;
    size_t size = (bytes + unit) & ~(unit - 1); /* never 0, and slack for whole vectors */
    if (posix_memalign(&memory, align, size) != 0)
        return NULL;
    /* The end of a block stays in small pages: a whole huge page for it made a network of many
     * weights a fifth larger in memory. */
    if (bytes >= HUGE_BYTES)
        madvise(memory, size, MADV_HUGEPAGE); /* only advice */
    return memory;
}

void memory_advise(void *memory, size_t bytes)
{
    uintptr_t begin = ((uintptr_t)memory + HUGE_BYTES - 1) & ~(uintptr_t)(HUGE_BYTES - 1);
    uintptr_t end = ((uintptr_t)memory + bytes) & ~(uintptr_t)(HUGE_BYTES - 1);
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

void memory_free(void *memory)
{
    free(memory);
}
