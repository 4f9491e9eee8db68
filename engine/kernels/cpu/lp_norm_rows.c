/* SPDX-License-Identifier: Apache-2.0
 *
 * LpNormalization along an axis whose elements are neighbours in memory: the last one, or the
 * channels of an image that is channels-last. The output may be the input's memory.
 */
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/simd.h"

enum { TILE_ELEMENTS = 8192 };

struct job {
    const float *x;
    float *y;
    int64_t rows, size, rows_per_tile;
    bool squares; /* p is 2 */
};

static int axis_of(const struct kernel_query *q)
{
    return shape_axis(&q->in[0].shape, node_int(q->node, "axis", -1));
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    const struct desc *x = &q->in[0];
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (x->dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only f32");
    if (!desc_is_dense(x) || !desc_same_memory(x, &q->out[0]))
        return UNSUPPORTED(why, "input and output differ in layout");
    if (x->shape.dim[axis_of(q)] > 1 && x->stride[axis_of(q)] != 1)
        return UNSUPPORTED(why, "the axis is not contiguous");
    return STATUS_OK;
}

static float length_of(const float *x, int64_t size, bool squares)
{
    vf sum[2] = {vf_zero(), vf_zero()};
    for (int64_t k = 0; k < size; k += 2 * VL) {
        for (int j = 0; j < 2; j++) {
            vf v = vf_load_m(x + k + j * VL, vm_first(size - k - j * VL));
            sum[j] = squares ? vf_fma(v, v, sum[j]) : vf_add(sum[j], vf_abs(v));
        }
    }
    float all = vf_sum(vf_add(sum[0], sum[1]));
    return squares ? sqrtf(all) : all;
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct job *job = context;
    int64_t first = tile * job->rows_per_tile, last = first + job->rows_per_tile;
    last = last < job->rows ? last : job->rows;
    for (int64_t row = first; row < last; row++) {
        const float *x = job->x + row * job->size;
        float *y = job->y + row * job->size, length = length_of(x, job->size, job->squares);
        vf divisor = vf_set1(length > 0 ? length : 1.0f);
        for (int64_t k = 0; k < job->size; k += VL) {
            vm m = vm_first(job->size - k);
            vf_store_m(y + k, m, vf_div(vf_load_m(x + k, m), divisor));
        }
    }
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    const struct shape *shape = &q->in[0].shape;
    struct job job = {.x = args->in[0],
                      .y = args->out[0],
                      .size = shape->dim[axis_of(q)],
                      .squares = node_int(q->node, "p", 2) == 2};
    if (shape_count(shape) == 0)
        return;
    job.rows = shape_count(shape) / job.size;
    job.rows_per_tile = job.size < TILE_ELEMENTS ? TILE_ELEMENTS / job.size : 1;
    pool_run(args->pool, (job.rows + job.rows_per_tile - 1) / job.rows_per_tile, run_tile, &job);
}

REGISTER_KERNEL(lp_norm_rows) = {
    NATIVE(lp_norm_rows),
    .ops = OPS("LpNormalization"),
    .supports = supports,
    .old_launch = launch,
};
