/* SPDX-License-Identifier: Apache-2.0
 *
 * REF_CLONES in front of a static function of the reference: compiled once per instruction set,
 * chosen when the program starts. Nothing changes but speed: ISO C mode contracts no a * b + c,
 * so every version rounds alike. clang 14 has no clones in C; sanitisers cannot run resolvers.
 */
#ifndef ENGINE_REF_LOOPS_H
#define ENGINE_REF_LOOPS_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define REF_CLONES __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define REF_CLONES
#endif

#endif
