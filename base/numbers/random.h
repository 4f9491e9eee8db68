/* SPDX-License-Identifier: Apache-2.0
 *
 * Counter-based random numbers (Philox 4x32-10, Salmon et al., SC 2011): number i of stream s is a
 * pure function of (s, i), so every device and every thread makes the same tensor in any order.
 */
#ifndef BASE_NUMBERS_RANDOM_H
#define BASE_NUMBERS_RANDOM_H

#include <stdint.h>

/* Four words for counter i of stream seed; hash_fnv1a makes a stream of a name. */
void random_words(uint64_t seed, uint64_t i, uint32_t word[4]);
/* The same for `count` counters from `first` on: 4 * count words, many at a time. */
void random_words_run(uint64_t seed, uint64_t first, int64_t count, uint32_t *words);
double random_uniform(uint64_t seed, uint64_t i); /* [0, 1) */
double random_normal(uint64_t seed, uint64_t i);  /* mean 0, variance 1 (Box-Muller) */

#endif
