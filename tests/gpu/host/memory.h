/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of the device that is the host: a region of its own, which can be touched only between
 * memory_open and memory_close. */
#ifndef TESTS_GPU_HOST_MEMORY_H
#define TESTS_GPU_HOST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

void memory_open(void);
void memory_close(void);
void *memory_take(size_t bytes); /* NULL: there is not so much */
void memory_give_back(void *memory);
int memory_blocks(void); /* that are taken */
void memory_sizes(size_t *free_bytes, size_t *total);
/* Whether [at, at + bytes) lies in one block. */
bool memory_is_device(const void *at, size_t bytes);
/* Whether it is an address of the device at all. */
bool memory_is_region(const void *at);

#endif
