/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory for large arrays: aligned for vectors, in huge pages where they pay. */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

/* 64-byte aligned, at the beginning of a page from 4 KiB on, in huge pages when large; free with
 * memory_free. A place inside a page would depend on what else is on the heap, such as paths and
 * the environment, and loads and stores that are equally far into their pages wait for each other:
 * a network took 8 % longer by the length of a path. */
void *memory_alloc(size_t bytes);
void memory_free(void *memory);
/* Asks for huge pages in memory that nothing has touched yet. */
void memory_advise(void *memory, size_t bytes);

#endif
