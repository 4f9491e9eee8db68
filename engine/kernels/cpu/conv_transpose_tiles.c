/* SPDX-License-Identifier: Apache-2.0
 *
 * ConvTranspose whose windows do not overlap (kernel = stride, no padding), channels-last: every
 * pixel becomes a tile of its own. Row i of the tiles of a row of pixels is one row of the result,
 * W pixels of kw C channels each, and as such the product of the pixels [W, K] and the weights
 * [K, kw C] of kernel row i: kh products, each written to its place. Tensors of bf16 are multiplied
 * as words of two channels each. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/gemm.h"
#include "engine/kernels/lib/simd_floats.h"
#include "engine/kernels/lib/word_tunings.h"

enum { X, WEIGHTS, BIAS };

struct kernel_state {
    struct gemm_plan plan;
    int64_t rows, width, in_channels, out_channels, kernel_h, kernel_w;
    int64_t packed_floats;
    bool bf16;       /* all tensors are; else f32 */
    int64_t element; /* bytes of one */
    float *packed;   /* kernel_h products */
    float *bias;     /* NULL: none */
};

static bool has_bias(const struct kernel_query *q)
{
    return q->node->op_inputs > BIAS && query_in(q, BIAS);
}

/* Whether a list of the node is absent or holds nothing but this number. */
static bool all_are(const struct node *node, const char *name, int64_t wanted)
{
    int64_t values[2 * RANK_MAX];
    int count = node_ints(node, name, values, 2 * RANK_MAX);
    for (int k = 0; k < count; k++)
        if (values[k] != wanted)
            return false;
    return true;
}

static bool tiles_fit(const struct kernel_query *q)
{
    const int64_t *x = q->in[X].shape.dim, *w = q->in[WEIGHTS].shape.dim;
    const int64_t *y = q->out[0].shape.dim;
    int64_t strides[2] = {1, 1};
    node_ints(q->node, "strides", strides, 2);
    return strides[0] == w[2] && strides[1] == w[3] && y[2] == x[2] * w[2] && y[3] == x[3] * w[3] &&
           all_are(q->node, "pads", 0) && all_are(q->node, "output_padding", 0) &&
           all_are(q->node, "dilations", 1) && !node_attr(q->node, "auto_pad");
}

static double macs_of(const struct kernel_state *s)
{
    return (double)s->rows * (double)s->width * (double)s->in_channels * (double)s->out_channels *
           (double)s->kernel_h * (double)s->kernel_w;
}

static struct gemm_plan plan_words(const struct kernel_state *s, struct gemm_size size, int variant)
{
    const struct word_tuning *t;
    word_tunings(2, macs_of(s), variant, &t);
    size.k = (s->in_channels + 1) / 2;
    size.math = t->math;
    size.narrow = 2;
    size.vectors = t->vectors;
    size.rows = t->rows;
    size.block_k = 512;
    size.row_bytes = s->in_channels * s->element;
    size.copy = s->in_channels % 2 ||
                (size.m >= t->rows && size.k >= 64 && gemm_rows_collide(size.k, t->rows));
    return gemm_plan_for(&size);
}

static enum status check(const struct kernel_query *q, struct error *why)
{
    if (!query_all_dtype(q, DTYPE_F32) && !query_all_dtype(q, DTYPE_BF16))
        return UNSUPPORTED(why, "neither all f32 nor all bf16");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_nhwc(&q->in[X]) || !desc_is_nhwc(&q->out[0]))
        return UNSUPPORTED(why, "only channels-last images");
    if (!q->fixed[WEIGHTS] || (has_bias(q) && !q->fixed[BIAS]))
        return UNSUPPORTED(why, "weights or bias are not constant");
    if (node_int(q->node, "group", 1) != 1)
        return UNSUPPORTED(why, "groups");
    if (!tiles_fit(q) || shape_count(&q->out[0].shape) == 0)
        return UNSUPPORTED(why, "windows overlap, or are padded or dilated");
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    TRY(check(q, why));
    const int64_t *x = q->in[X].shape.dim, *w = q->in[WEIGHTS].shape.dim;
    struct gemm_size size = {.batch = x[0] * x[2],
                             .m = x[3],
                             .n = w[3] * w[1],
                             .taps = 1,
                             .k = x[1],
                             .threads = q->threads};
    *s = (struct kernel_state){.bf16 = q->in[X].dtype == DTYPE_BF16,
                               .element = (int64_t)dtype_size(q->in[X].dtype),
                               .rows = x[0] * x[2],
                               .width = x[3],
                               .in_channels = x[1],
                               .out_channels = w[1],
                               .kernel_h = w[2],
                               .kernel_w = w[3]};
    s->plan = s->bf16 ? plan_words(s, size, variant) : gemm_variant(&size, size.k, false, variant);
    s->packed_floats = gemm_packed_floats(&s->plan);
    return STATUS_OK;
}

static int variants(const struct kernel_state *s)
{
    const struct word_tuning *none;
    if (s->bf16)
        return word_tunings(2, macs_of(s), 0, &none);
    return gemm_variant_count(&s->plan.size, s->in_channels, false);
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    gemm_describe(&s->plan, text, size);
}

static size_t workspace(const struct kernel_state *s)
{
    return gemm_workspace(&s->plan);
}

static void release(struct kernel_state *state)
{
    memory_free(state->packed);
    memory_free(state->bias);
}

/* Weights [K, C, kh, kw] -> [K, kw C] of kernel row i, packed. */
static bool pack_row(const struct kernel_query *q, const struct kernel_state *s, int64_t i)
{
    const struct desc *d = &q->in[WEIGHTS];
    const char *weights = q->fixed[WEIGHTS];
    int64_t columns = s->kernel_w * s->out_channels, size = s->element;
    float *packed = s->packed + i * s->packed_floats;
    void *dense = malloc((size_t)(s->in_channels * columns * size));
    if (!dense)
        return false;
    for (int64_t k = 0; k < s->in_channels; k++)
        for (int64_t n = 0; n < columns; n++) {
            int64_t from = k * d->stride[0] + n % s->out_channels * d->stride[1] +
                           i * d->stride[2] + n / s->out_channels * d->stride[3];
            memcpy((char *)dense + (k * columns + n) * size, weights + from * size, (size_t)size);
        }
    struct gemm_source_b floats = {.b = dense, .row = columns, .column = 1, .scale = 1};
    struct gemm_source_words words = {
        .b = dense, .k = s->in_channels, .row = columns, .column = 1, .element = (int)size};
    if (s->bf16)
        gemm_pack_words(&s->plan, &words, 0, s->plan.panels, packed, NULL);
    else
        gemm_pack_b(&s->plan, &floats, 0, s->plan.panels, packed);
    free(dense);
    return true;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    size_t weight_bytes = (size_t)(s->packed_floats * s->kernel_h) * sizeof(float);
    size_t bias_bytes = has_bias(q) ? (size_t)gemm_bias_floats(&s->plan) * sizeof(float) : 0;
    s->packed = memory_alloc(weight_bytes);
    s->bias = bias_bytes ? memory_alloc(bias_bytes) : NULL;
    bool fine = s->packed && (s->bias || !bias_bytes);
    for (int64_t i = 0; fine && i < s->kernel_h; i++)
        fine = pack_row(q, s, i);
    if (!fine)
        return FAIL_NO_MEMORY(err);
    if (s->bias)
        memset(s->bias, 0, bias_bytes);
    for (int64_t n = 0; s->bias && n < s->kernel_w * s->out_channels; n++)
        s->bias[n] = float_read(q->fixed[BIAS], n % s->out_channels, s->bf16);
    *packed_bytes = weight_bytes + bias_bytes;
    return STATUS_OK;
}

struct pixels {
    const char *x;
    int64_t width, pixel_bytes;
};

static void pixel_rows(const struct gemm_rows *wanted, const float **to, int64_t step)
{
    const struct pixels *p = wanted->source;
    const char *first = p->x + (wanted->batch * p->width + wanted->row) * p->pixel_bytes;
    (void)step;
    for (int64_t m = 0; m < wanted->count; m++)
        to[m] = (const float *)(const void *)(first + m * p->pixel_bytes);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct pixels pixels = {args->in[X], s->width, s->in_channels * s->element};
    struct gemm_post none = {0};
    int64_t tile = s->kernel_w * s->out_channels, row = s->width * tile;
    int64_t next = s->kernel_h * row;
    struct gemm_call call = {.rows = pixel_rows,
                             .source = &pixels,
                             .bias = s->bias,
                             .c_row = tile,
                             .post = &none,
                             .in = args->in,
                             .batch_rank = 1,
                             .batch_dim = &s->rows,
                             .c_batch = &next,
                             .workspace = args->workspace};
    for (int64_t i = 0; i < s->kernel_h; i++) {
        call.b = s->packed + i * s->packed_floats;
        call.c = (char *)args->out[0] + i * row * s->element;
        gemm_run(&s->plan, &call, args->pool);
    }
}

REGISTER_KERNEL(conv_transpose_tiles) = {
    NATIVE(conv_transpose_tiles),
    .ops = OPS("ConvTranspose"),
    .packs = 1u << WEIGHTS | 1u << BIAS,
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .variants = variants,
    .describe = describe,
    .workspace = workspace,
    .prepare = prepare,
    .launch = launch,
    .release = release,
};
