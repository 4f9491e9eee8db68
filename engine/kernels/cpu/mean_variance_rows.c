/* SPDX-License-Identifier: Apache-2.0
 *
 * MeanVarianceNormalization of f32 in plain memory, where the last axis is one of those taken
 * together: each result is made of rows that are contiguous, (N, H, W) of a channel for example.
 * The mean is found by two sweeps, the second one about what the first has found, and kept as the
 * sum of both: the 1e-9 that is added to the deviation leaves no room for a mean that is off by a
 * rounding, if all are equal.
 */
#include <stdlib.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/row_moments.h"
#include "engine/ops/lib/mean_variance.h"

struct kernel_state {
    int64_t groups, rows, size;         /* rows of a group; elements of a row */
    int64_t *group_offset, *row_offset; /* owned: where they begin, from the tensor and the group */
};

/* Axes within a row, and those over the rows of a group. */
static enum status split_axes(const struct kernel_query *q, bool over[RANK_MAX],
                              bool kept[RANK_MAX], int64_t *size, struct error *err)
{
    const struct shape *x = &q->in[0].shape;
    TRY(mean_variance_axes(q->node, x, over, err));
    for (int k = 0; k < RANK_MAX; k++)
        kept[k] = !over[k];
    *size = 1;
    for (int k = x->rank - 1; k >= 0 && (over[k] || x->dim[k] == 1); k--) {
        *size *= x->dim[k];
        over[k] = kept[k] = false;
    }
    return STATUS_OK;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    const struct shape *x = &q->in[0].shape;
    bool over[RANK_MAX], kept[RANK_MAX];
    TRY(query_plain_f32(q, why));
    TRY(split_axes(q, over, kept, &s->size, why));
    s->groups = s->rows = 1;
    for (int k = 0; k < x->rank; k++) {
        s->rows *= over[k] ? x->dim[k] : 1;
        s->groups *= kept[k] ? x->dim[k] : 1;
    }
    if (x->rank && kept[x->rank - 1])
        return UNSUPPORTED(why, "the last axis is not one of those taken together");
    if (!shape_count(x))
        return UNSUPPORTED(why, "nothing");
    return STATUS_OK;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s, size_t *bytes,
                           struct error *err)
{
    bool over[RANK_MAX], kept[RANK_MAX];
    int64_t size, groups, rows;
    TRY(split_axes(q, over, kept, &size, err));
    s->group_offset = reduce_offsets(&q->in[0].shape, kept, &groups);
    s->row_offset = reduce_offsets(&q->in[0].shape, over, &rows);
    *bytes = (size_t)(s->groups + s->rows) * sizeof(int64_t);
    return s->group_offset && s->row_offset ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static void release(struct kernel_state *s)
{
    free(s->group_offset);
    free(s->row_offset);
}

struct job {
    const struct kernel_state *state;
    const float *x;
    float *y;
};

/* Mean of (x - centre)^power over the group; power is the constant 1 or 2. */
SIMD_INLINE double group_moment(const struct kernel_state *s, const float *x, float centre,
                                int power)
{
    double sum = 0;
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t i = 0; i < s->size; i += MOMENT_PIECE)
            sum += (double)row_piece(x + s->row_offset[r] + i, smaller(s->size - i, MOMENT_PIECE),
                                     centre, power);
    return sum / (double)(s->rows * s->size);
}

static void run_group(void *context, int64_t group, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    const float *x = job->x + s->group_offset[group];
    float *y = job->y + s->group_offset[group];
    (void)thread;
    float about = (float)group_moment(s, x, 0, 1);
    float rest = (float)group_moment(s, x, about, 1); /* the mean is about + rest */
    double deviation = sqrt(group_moment(s, x, about + rest, 2)) + 1e-9;
    vf centre = vf_set1(about), shift = vf_set1(rest), factor = vf_set1((float)(1 / deviation));
    for (int64_t r = 0; r < s->rows; r++)
        for (int64_t i = 0; i < s->size; i += VL) {
            vm m = vm_first(s->size - i);
            vf d = vf_sub(vf_sub(vf_load_m(x + s->row_offset[r] + i, m), centre), shift);
            vf_store_m(y + s->row_offset[r] + i, m, vf_mul(d, factor));
        }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {s, args->in[0], args->out[0]};
    pool_run(args->pool, s->groups, run_group, &job);
}

REGISTER_KERNEL(mean_variance_rows) = {
    NATIVE(mean_variance_rows),
    .ops = OPS("MeanVarianceNormalization"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .prepare = prepare,
    .launch = launch,
    .release = release,
};
