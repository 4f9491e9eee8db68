/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory for large arrays: aligned for vectors, in huge pages where they pay. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

/* 64-byte aligned, in huge pages when large; free with memory_free. */
void *memory_alloc(size_t bytes);
void memory_free(void *memory);
/* Asks for huge pages in memory that nothing has touched yet. */
void memory_advise(void *memory, size_t bytes);

#endif
