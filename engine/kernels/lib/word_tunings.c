/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/word_tunings.h"

#include "engine/kernels/lib/simd_dot.h"

enum { TUNINGS = 4 };

/* For two-byte and one-byte elements; best guesses first. The last one of each needs no instruction
 * that a CPU of this set might lack. */
#if defined(__AVX512F__)
static const struct word_tuning tunings[2][TUNINGS] = {
    {{GEMM_BF16_DOT, 2, 12}, {GEMM_BF16_DOT, 4, 6}, {GEMM_BF16_DOT, 3, 8}, {GEMM_BF16, 2, 12}},
    {{GEMM_BYTES_DOT, 2, 12}, {GEMM_BYTES_DOT, 4, 6}, {GEMM_BYTES_DOT, 3, 8}, {GEMM_BYTES, 2, 12}}};
#elif defined(__AVX2__)
static const struct word_tuning tunings[2][TUNINGS] = {
    {{GEMM_BF16, 2, 6}, {GEMM_BF16, 3, 4}},
    {{GEMM_BYTES_DOT, 2, 6}, {GEMM_BYTES_DOT, 3, 4}, {GEMM_BYTES, 2, 5}, {GEMM_BYTES, 2, 6}}};
#else
static const struct word_tuning tunings[2][TUNINGS] = {{{GEMM_BF16, 4, 4}}, {{GEMM_BYTES, 4, 4}}};
#endif

/* Products up to this are fast enough for the tests to try everything. */
#define SMALL_MACS 1e7

static bool can_run(const struct word_tuning *t, const struct word_tuning *list, double macs)
{
    bool dots = list[0].math == GEMM_BF16_DOT ? cpu_has_bf16() : cpu_has_byte_dots();
    bool plain = t->math == GEMM_BF16 || t->math == GEMM_BYTES;
    if (!plain)
        return dots;
    return list[0].math == t->math || !dots || macs <= SMALL_MACS;
}

int word_tunings(int element, double macs, int variant, const struct word_tuning **found)
{
    const struct word_tuning *list = tunings[element == 1];
    int count = 0;
    *found = NULL;
    for (int k = 0; k < TUNINGS && list[k].rows; k++)
        if (can_run(&list[k], list, macs) && count++ == variant)
            *found = &list[k];
    return count;
}
