/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention in f32 and tf32 as two products for all heads, scores = scale Q K' and Y = P V, around
 * the device's softmax of rows. The scores lie in the workspace; in 16 bits they would be rounded
 * before the softmax, so that is left to others. */
#include <stdio.h>

#include "base/numbers/integers.h"
#include "engine/kernels/cublaslt/lib/algorithms.h"
#include "engine/ops/lib/attention.h"

/* One of the two products. */
struct half {
    struct product product;
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;
    int choices;
    struct matmul matmul; /* prepare */
};

struct kernel_state {
    const struct device *device;
    struct half scores, values;
    struct device_softmax softmax; /* pointers are left open */
    int in[3];                     /* inputs that hold q, k and v */
    int64_t start[3];              /* elements from their begin */
    size_t scores_bytes;
    bool masked;
};

static enum status check(const struct kernel_query *q, struct attention_shape *of,
                         struct error *why)
{
    const struct desc *k = query_in(q, 1), *v = query_in(q, 2);
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    if (q->out[0].dtype != DTYPE_F32)
        return REFUSE(why, "scores would be rounded to 16 bits");
    if (!q->device->kind->softmax)
        return REFUSE(why, "the device has no softmax of rows");
    for (int i = 0; i < q->in_count; i++)
        if (query_in(q, i) && !cublaslt_host->desc_is_plain(&q->in[i]))
            return REFUSE(why, "input %d is not plain", i);
    TRY(attention_shape_from(q->node, &q->in[0].shape, k ? &k->shape : NULL, v ? &v->shape : NULL,
                             of, why));
    if (of->causal || of->group > 1)
        return REFUSE(why, "causal, or heads that share keys and values");
    return STATUS_OK;
}

static struct matmul_shape shape_of_scores(const struct attention_shape *of)
{
    int64_t area = of->queries * of->keys;
    return (struct matmul_shape){.batch = of->batch * of->heads,
                                 .m = of->queries,
                                 .n = of->keys,
                                 .k = of->head_size,
                                 .a_row = of->q_row,
                                 .a_col = 1,
                                 .b_row = 1,
                                 .b_col = of->k_row,
                                 .c_row = of->keys,
                                 .c_col = 1,
                                 .batch_rank = 2,
                                 .batch_dim = {of->batch, of->heads},
                                 .a_batch = {of->queries * of->q_row, of->head_size},
                                 .b_batch = {of->keys * of->k_row, of->head_size},
                                 .c_batch = {of->heads * area, area}};
}

static struct matmul_shape shape_of_values(const struct attention_shape *of)
{
    int64_t area = of->queries * of->keys, width = of->heads * of->head_size;
    return (struct matmul_shape){.batch = of->batch * of->heads,
                                 .m = of->queries,
                                 .n = of->head_size,
                                 .k = of->keys,
                                 .a_row = of->keys,
                                 .a_col = 1,
                                 .b_row = of->v_row,
                                 .b_col = 1,
                                 .c_row = width,
                                 .c_col = 1,
                                 .batch_rank = 2,
                                 .batch_dim = {of->batch, of->heads},
                                 .a_batch = {of->heads * area, area},
                                 .b_batch = {of->keys * of->v_row, of->head_size},
                                 .c_batch = {of->queries * width, of->head_size}};
}

/* Where a factor begins in its tensor may be a lesser multiple than where tensors do. */
static void align_start(uint32_t *alignment, int64_t start)
{
    uint64_t bits = *alignment | (uint64_t)start * sizeof(float);
    *alignment = (uint32_t)(bits & -bits);
}

/* The v-th algorithm; of a shorter list the last. */
static enum status choose(const struct kernel_query *q, int variant, struct half *half,
                          struct error *why)
{
    struct algorithms found;
    TRY(algorithms_find(q->device, &half->product, &found, why));
    int chosen = variant < found.count ? variant : found.count - 1;
    half->choices = found.count;
    half->algorithm = found.results[chosen].algo;
    half->workspace = found.results[chosen].workspaceSize;
    return STATUS_OK;
}

static void set_softmax(const struct desc *mask, const struct attention_shape *of,
                        struct device_softmax *s)
{
    *s = (struct device_softmax){.batch = of->batch,
                                 .heads = of->heads,
                                 .queries = of->queries,
                                 .keys = of->keys,
                                 .zero_empty = of->zero_empty};
    for (int d = 0; mask && d < 4; d++) {
        int own = d - (4 - mask->shape.rank);
        s->mask_at[d] = own >= 0 && mask->shape.dim[own] != 1 ? mask->stride[own] : 0;
    }
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    struct attention_shape of;
    TRY(check(q, &of, why));
    struct matmul_shape scores = shape_of_scores(&of), values = shape_of_values(&of);
    const int64_t starts[] = {of.q_start, of.k_start, of.v_start};
    s->device = q->device;
    for (int i = 0; i < ARRAY_COUNT(starts); i++) {
        s->in[i] = of.packed ? 0 : i;
        s->start[i] = starts[i];
    }
    s->masked = query_in(q, 3) != NULL;
    s->scores_bytes = (size_t)(scores.batch * scores.m * scores.n) * sizeof(float);
    s->scores_bytes = round_up(s->scores_bytes, ALIGN_DEVICE);
    set_softmax(query_in(q, 3), &of, &s->softmax);
    TRY(product_of_floats(&scores, q->tf32, (float)of.scale, &s->scores.product, why));
    TRY(product_of_floats(&values, q->tf32, 1, &s->values.product, why));
    align_start(&s->scores.product.alignment[RIGHT], of.q_start);
    align_start(&s->scores.product.alignment[LEFT], of.k_start);
    align_start(&s->values.product.alignment[LEFT], of.v_start);
    TRY(choose(q, variant, &s->scores, why));
    return choose(q, variant, &s->values, why);
}

static int variants(const struct kernel_state *s)
{
    return s->scores.choices > s->values.choices ? s->scores.choices : s->values.choices;
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    char scores[64], values[64];
    algorithm_describe(&s->scores.algorithm, scores, sizeof(scores));
    algorithm_describe(&s->values.algorithm, values, sizeof(values));
    snprintf(text, size, "%s, %s", scores, values);
}

static size_t workspace(const struct kernel_state *s)
{
    size_t largest = s->scores.workspace;
    largest = s->values.workspace > largest ? s->values.workspace : largest;
    return s->scores_bytes + largest;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s, size_t *packed,
                           struct error *err)
{
    (void)q;
    (void)packed;
    TRY(matmul_make(&s->scores.product, &s->scores.matmul, err));
    return matmul_make(&s->values.product, &s->values.matmul, err);
}

static void release(struct kernel_state *s)
{
    matmul_free(&s->scores.matmul);
    matmul_free(&s->values.matmul);
}

static enum status multiply(const struct kernel_state *s, const struct half *half,
                            const float *left, const float *right, void *result,
                            const struct kernel_args *args, struct error *err)
{
    const struct product_memory memory = {.left = left,
                                          .right = right,
                                          .result = result,
                                          .workspace = (char *)args->workspace + s->scores_bytes,
                                          .workspace_bytes = half->workspace};
    return product_run(s->device, &half->product, &half->matmul, &half->algorithm, &memory,
                       args->stream, err);
}

static enum status enqueue(const struct kernel_state *s, const struct kernel_args *args,
                           struct error *err)
{
    const float *in[3];
    struct device_softmax softmax = s->softmax;
    for (int i = 0; i < 3; i++)
        in[i] = (const float *)args->in[s->in[i]] + s->start[i];
    softmax.x = args->workspace;
    softmax.mask = s->masked ? args->in[3] : NULL;
    TRY(multiply(s, &s->scores, in[0], in[1], args->workspace, args, err));
    TRY(s->device->kind->softmax(s->device, &softmax, args->stream, err));
    return multiply(s, &s->values, args->workspace, in[2], args->out[0], args, err);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct error *err = args->err;
    enqueue(s, args, err && err->code == STATUS_OK ? err : NULL);
}

REGISTER(kernel, cublaslt_attention) = {.name = "cublaslt_attention",
                                        .provider = "cublaslt",
                                        .device = "cuda",
                                        .ops = OPS("Attention"),
                                        .state_size = sizeof(struct kernel_state),
                                        .plan = plan,
                                        .variants = variants,
                                        .ranked_variants = true,
                                        .describe = describe,
                                        .workspace = workspace,
                                        .prepare = prepare,
                                        .launch = launch,
                                        .release = release};
