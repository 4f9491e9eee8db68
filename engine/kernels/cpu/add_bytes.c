/* SPDX-License-Identifier: Apache-2.0
 *
 * AddBytes of tensors that lie alike: blocks become floats in the first cache, one loop each for
 * what compilers make vectors of. */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd.h"
#include "engine/kernels/lib/simd_dot.h"
#include "engine/ops/family/rescale.h"
#include "engine/ops/lib/op_args.h"

enum { TILE = 32768, BLOCK = 512 };

struct kernel_state {
    struct rescale rescale;
    float a_scale, b_scale, offset;
    bool a_signed, b_signed;
    int64_t count;
};

struct job {
    const struct kernel_state *state;
    const unsigned char *a, *b;
    void *y;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_dense(&q->out[0]) || !desc_same_memory(&q->in[0], &q->out[0]) ||
        !desc_same_memory(&q->in[1], &q->out[0]))
        return UNSUPPORTED(why, "inputs and result do not lie alike");
    *s = (struct kernel_state){.rescale = rescale_of(q->node),
                               .a_scale = (float)node_float(q->node, "a_scale", 1),
                               .b_scale = (float)node_float(q->node, "b_scale", 1),
                               .offset = (float)node_float(q->node, "offset", 0),
                               .a_signed = q->in[0].dtype == DTYPE_I8,
                               .b_signed = q->in[1].dtype == DTYPE_I8,
                               .count = shape_count(&q->out[0].shape)};
    return STATUS_OK;
}

static void scaled(const unsigned char *from, bool is_signed, float scale, int64_t n, float *to)
{
    if (is_signed)
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)(int8_t)from[i] * scale;
    else
        for (int64_t i = 0; i < n; i++)
            to[i] = (float)from[i] * scale;
}

static void run_block(const struct kernel_state *s, const unsigned char *a, const unsigned char *b,
                      int64_t n, float *sums)
{
    float right[BLOCK];
    vf offset = vf_set1(s->offset), low = vf_set1(s->rescale.low), high = vf_set1(s->rescale.high);
    scaled(a, s->a_signed, s->a_scale, n, sums);
    scaled(b, s->b_signed, s->b_scale, n, right);
    for (int64_t i = 0; i < n; i += VL) {
        vf sum = vf_add(vf_add(vf_load(sums + i), vf_load(right + i)), offset);
        vf_store(sums + i, vf_min(vf_max(sum, low), high));
    }
}

static void run_tile(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t last = smaller((tile + 1) * TILE, s->count);
    bool bytes = s->rescale.to != DTYPE_F32;
    vi zero = vi_set1(s->rescale.zero);
    float sums[BLOCK];
    (void)thread;
    for (int64_t at = tile * TILE; at < last; at += BLOCK) {
        int64_t n = smaller(BLOCK, last - at);
        run_block(s, job->a + at, job->b + at, n, sums);
        if (!bytes)
            memcpy((float *)job->y + at, sums, (size_t)n * sizeof(float));
        for (int64_t i = 0; bytes && i < n; i += VL)
            vi_store_bytes((uint8_t *)job->y + at + i, smaller(VL, n - i),
                           vi_add(vi_from_vf(vf_load(sums + i)), zero));
    }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {s, args->in[0], args->in[1], args->out[0]};
    pool_run(args->pool, divide_up(s->count, TILE), run_tile, &job);
}

REGISTER_KERNEL(add_bytes) = {
    NATIVE(add_bytes), .ops = OPS("AddBytes"), .state_size = sizeof(struct kernel_state),
    .plan = plan,      .launch = launch,
};
