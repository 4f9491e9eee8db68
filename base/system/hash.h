/* SPDX-License-Identifier: Apache-2.0
 *
 * A 64-bit hash for identities: settings, suites, files. Not for secrets, and not against people
 * who look for collisions. Eight bytes a step, so that a library of 40 MB takes 10 ms.
 *
 * The cut between two calls of hash64_more counts: "ab" then "c" differs from "a" then "bc", so
 * fields need no separator. The value is the same on every little-endian machine, for ever:
 * databases keep it.
 */
#ifndef BASE_SYSTEM_HASH_H
#define BASE_SYSTEM_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { HASH64_TEXT = 17 }; /* 16 hex digits and NUL */

/* Start with hash 0 (or any seed); every result is well mixed, there is no last step. */
uint64_t hash64_more(uint64_t hash, const void *data, size_t size);
uint64_t hash64_text(const char *text);
/* Contents of a regular file. */
enum status hash64_file(const char *path, uint64_t *hash, struct error *err);
/* FNV-1a, byte by byte: of names, of which tensors are filled, ids made and streams of random
 * numbers numbered. It never changes either. */
uint64_t hash_fnv1a(const char *text);
void hash64_hex(uint64_t hash, char text[HASH64_TEXT]);

#endif
