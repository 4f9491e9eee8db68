/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions of bytes and of bf16, everything but what the node says, as implicit matrix products
 * of words of four or two channels, in groups as in conv_igemm.c. Bytes are unsigned ones of x
 * times signed ones of the weights; the zero point of x is in the number from which the sums of a
 * channel start, and padding reads a pixel of zero points. What is not unsigned, has no whole words
 * or comes in planes is copied first, with its padding: then a line of taps lies in memory as one,
 * and a convolution of 7 x 7 over 3 channels reads 7 runs of 21 elements, and what follows them
 * meets zeros among the weights. */
#ifndef ENGINE_KERNELS_LIB_CONV_WORDS_H
#define ENGINE_KERNELS_LIB_CONV_WORDS_H

#include "engine/kernels/lib/conv_shape.h"
#include "engine/ops/family/rescale.h"

/* What a kernel reads from its node. */
struct conv_words {
    int element;            /* bytes of one: 1, or 2 of bf16, which are not rescaled */
    struct rescale rescale; /* zero points; and what becomes of sums, if .rescales */
    bool rescales;          /* by inputs 2 and 3; else the sums are the result */
    int x_zero;             /* input whose number comes with each launch; NONE: rescale.x_zero */
};

struct kernel_state {
    struct conv_words words;
    struct conv_shape shape;  /* of the node */
    struct conv_shape source; /* what rows are read from: x, or its copy without padding */
    struct gemm_plan plan;
    struct gemm_post post;
    int64_t merged, groups; /* groups taken together, and how many of those */
    bool copied;
    int64_t pixel;      /* elements from one to the next */
    int64_t taps, run;  /* how many are one of the product, and its elements: whole words */
    unsigned char flip; /* what makes bytes of x unsigned */
    unsigned char zero; /* x's zero point then */
    float *packed, *scale, *offset;
    int32_t *sums; /* of the weights of a channel */
    void *start;   /* what its sums start from: i32 for bytes, else f32 */
    unsigned char *zeros;
    int64_t batch_dim[2], c_batch[2]; /* images (unless folded), groups */
};

typedef enum status conv_words_from(const struct kernel_query *q, struct conv_words *words,
                                    struct error *why);

/* The hooks of a kernel. */
#define conv_words_plan      SIMD_FN(conv_words_plan)
#define conv_words_variants  SIMD_FN(conv_words_variants)
#define conv_words_describe  SIMD_FN(conv_words_describe)
#define conv_words_workspace SIMD_FN(conv_words_workspace)
#define conv_words_prepare   SIMD_FN(conv_words_prepare)
#define conv_words_launch    SIMD_FN(conv_words_launch)
#define conv_words_release   SIMD_FN(conv_words_release)
enum status conv_words_plan(conv_words_from *from, const struct kernel_query *q, int variant,
                            struct kernel_state *state, struct error *why);
int conv_words_variants(const struct kernel_state *state);
void conv_words_describe(const struct kernel_state *state, char *text, size_t size);
size_t conv_words_workspace(const struct kernel_state *state);
enum status conv_words_prepare(const struct kernel_query *q, struct kernel_state *state,
                               size_t *packed_bytes, struct error *err);
void conv_words_launch(const struct kernel_state *state, const struct kernel_args *args);
void conv_words_release(struct kernel_state *state);

/* Defines kernel `symbol`, which reads its nodes with `from`. */
#define CONV_WORDS_KERNEL(symbol, from, ...)                                                       \
    static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state, \
                            struct error *why)                                                     \
    {                                                                                              \
        return conv_words_plan(from, q, variant, state, why);                                      \
    }                                                                                              \
    REGISTER_KERNEL(symbol) = {NATIVE(symbol),                                                     \
                               .state_size = sizeof(struct kernel_state),                          \
                               .plan = plan,                                                       \
                               .variants = conv_words_variants,                                    \
                               .describe = conv_words_describe,                                    \
                               .workspace = conv_words_workspace,                                  \
                               .prepare = conv_words_prepare,                                      \
                               .launch = conv_words_launch,                                        \
                               .release = conv_words_release,                                      \
                               __VA_ARGS__}

#endif
