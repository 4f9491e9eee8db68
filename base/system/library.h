/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared libraries that are opened while the program runs: plug-ins, and what drivers and vendors
 * bring. What lacks a library can then say so, and what to do, instead of not starting. */
#ifndef BASE_SYSTEM_LIBRARY_H
#define BASE_SYSTEM_LIBRARY_H

#include <stddef.h>

#include "base/error.h"

/* A function of a library, and where its address goes in a table of pointers. */
struct library_symbol {
    const char *name;
    size_t offset;
};

/* Opens the first candidate that can be: a path, or a name that the linker looks for in its
 * folders. UNSUPPORTED when there is none, with what the linker says of the first one that exists,
 * else of the last. The calling thread keeps its CPUs: some libraries pin whoever loads them. */
enum status library_open(const char *const *candidates, int count, void **library,
                         struct error *why);
enum status library_open_one(const char *file, void **library, struct error *why);
/* NULL: there is none of that name. */
void *library_symbol(void *library, const char *name);
/* Writes the address of each symbol into the table; the name of the first that is missing, or NULL
 * when all are there. */
const char *library_fill(void *library, const struct library_symbol *symbols, int count,
                         void *table);
/* Not for libraries that have threads or a state per process: they do not survive it. */
void library_close(void *library);

#endif
