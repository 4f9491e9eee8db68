/* SPDX-License-Identifier: Apache-2.0
 *
 * Conv of bf16, with sums in f32 that are rounded once, after the epilogue. */
#include "engine/kernels/lib/conv_words.h"

enum { WEIGHTS = 1 };

static enum status from(const struct kernel_query *q, struct conv_words *w, struct error *why)
{
    (void)why;
    (void)q;
    *w = (struct conv_words){.element = 2, .x_zero = NONE};
    return STATUS_OK;
}

CONV_WORDS_KERNEL(conv_bf16, from, .ops = OPS("Conv", "ConvTranspose"), .packs = 1u << WEIGHTS);
