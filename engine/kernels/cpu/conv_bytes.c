/* SPDX-License-Identifier: Apache-2.0
 *
 * ConvBytes: a convolution of bytes whose sums become floats, or bytes again. */
#include "engine/kernels/lib/conv_words.h"

enum { WEIGHTS = 1, SCALE, OFFSET };

static enum status from(const struct kernel_query *q, struct conv_words *w, struct error *why)
{
    *w = (struct conv_words){
        .element = 1, .rescale = rescale_of(q->node), .rescales = true, .x_zero = NONE};
    for (int k = SCALE; k <= OFFSET; k++)
        if (!q->fixed[k])
            return UNSUPPORTED(why, "input %d is not known beforehand", k);
    return STATUS_OK;
}

CONV_WORDS_KERNEL(conv_bytes, from, .ops = OPS("ConvBytes"),
                  .packs = 1u << WEIGHTS | 1u << SCALE | 1u << OFFSET);
