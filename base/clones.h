/* SPDX-License-Identifier: Apache-2.0
 *
 * VECTOR_CLONES in front of a static function: compiled once per instruction set,
 * chosen when the program starts. Nothing changes but speed: ISO C mode contracts no a * b + c,
 * so every version rounds alike. clang 14 has no clones in C; sanitisers cannot run resolvers.
 */
#ifndef BASE_CLONES_H
#define BASE_CLONES_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VECTOR_CLONES __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define VECTOR_CLONES
#endif

#endif
