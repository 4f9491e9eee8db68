/* SPDX-License-Identifier: Apache-2.0
 *
 * LpNormalization along an axis whose elements are neighbours in memory: the last one, or the
 * channels of an image that is channels-last. The output may be the input's memory.
 */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/simd_floats.h"
#include "engine/kernels/lib/tiles.h"

enum { TILE_ELEMENTS = 8192 };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const void *x;
    void *y;
    int64_t rows, size, rows_per_tile;
    bool squares; /* p is 2 */
    bool bf16;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    const struct desc *x = &q->in[0];
    int axis = shape_axis(&x->shape, node_int(q->node, "axis", -1));
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (x->dtype != DTYPE_F32 && x->dtype != DTYPE_BF16)
        return UNSUPPORTED(why, "only f32 or bf16");
    if (!desc_is_dense(x) || !desc_same_memory(x, &q->out[0]))
        return UNSUPPORTED(why, "input and output differ in layout");
    if (x->shape.dim[axis] > 1 && x->stride[axis] != 1)
        return UNSUPPORTED(why, "the axis is not contiguous");
    s->size = x->shape.dim[axis];
    s->rows = s->size ? shape_count(&x->shape) / s->size : 0;
    s->rows_per_tile = rows_of_tile(s->rows, s->size, TILE_ELEMENTS, q->threads);
    s->bf16 = x->dtype == DTYPE_BF16;
    s->squares = node_int(q->node, "p", 2) == 2;
    return STATUS_OK;
}

SIMD_INLINE float length_of(const void *x, int64_t size, bool squares, bool bf16)
{
    vf sum[2] = {vf_zero(), vf_zero()};
    for (int64_t k = 0; k < size; k += 2 * VL) {
        for (int j = 0; j < 2; j++) {
            vf v = vf_read_m(x, k + j * VL, vm_first(size - k - j * VL), bf16);
            sum[j] = squares ? vf_fma(v, v, sum[j]) : vf_add(sum[j], vf_abs(v));
        }
    }
    float all = vf_sum(vf_add(sum[0], sum[1]));
    return squares ? sqrtf(all) : all;
}

SIMD_INLINE void run_rows(const struct kernel_state *job, int64_t first, int64_t last, bool bf16)
{
    for (int64_t row = first; row < last; row++) {
        const void *x = float_at(job->x, row * job->size, bf16);
        void *y = out_at(job->y, row * job->size, bf16);
        float length = length_of(x, job->size, job->squares, bf16);
        vf divisor = vf_set1(length == 0 ? 1.0f : length); /* NaN stays */
        for (int64_t k = 0; k < job->size; k += VL) {
            vm m = vm_first(job->size - k);
            vf_write_m(y, k, m, vf_div(vf_read_m(x, k, m, bf16), divisor), bf16);
        }
    }
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t first = tile * job->rows_per_tile, last = first + job->rows_per_tile;
    last = smaller(last, job->rows);
    if (job->bf16)
        run_rows(job, first, last, true);
    else
        run_rows(job, first, last, false);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.x = args->in[0];
    job.y = args->out[0];
    pool_run(args->pool, divide_up(job.rows, job.rows_per_tile), run_tile, &job);
}

REGISTER_KERNEL(lp_norm_rows) = {
    NATIVE(lp_norm_rows),
    .ops = OPS("LpNormalization"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
