/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory that is given back all at once: one arena per stage value (graph, executable, plan).
 * A zeroed struct arena is an empty arena. There is no free of a single piece.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena_block;

struct arena {
    struct arena_block *head;
    size_t size_bytes; /* what was asked for, all pieces together */
};

/* Zeroed memory, aligned for any type; NULL when there is none. */
void *arena_alloc(struct arena *arena, size_t size_bytes);
/* The same for an array; NULL on overflow as well. */
void *arena_array(struct arena *arena, size_t count, size_t item_bytes);
/* An array grown to hold at least `need` items: returns it (moved or not), updates *capacity. */
void *arena_grow(struct arena *arena, void *array, size_t *capacity, size_t need,
                 size_t item_bytes);
char *arena_strdup(struct arena *arena, const char *text);
void *arena_copy(struct arena *arena, const void *data, size_t size_bytes);
__attribute__((format(printf, 2, 3))) char *arena_printf(struct arena *arena, const char *format,
                                                         ...);
void arena_release(struct arena *arena);

#endif
