/* SPDX-License-Identifier: Apache-2.0
 *
 * ArgMax and ArgMin of f32. Along the last axis VL parts of a line run side by side and meet at the
 * end; along another axis VL neighbouring lines do.
 */
#include "base/numbers/integers.h"
#include "engine/kernels/lib/simd.h"
#include "engine/kernels/lib/tiles.h"
#include "engine/ops/lib/axis.h"
#include "engine/ops/lib/op_args.h"

enum { TILE_FLOATS = 16 << 10 };

struct kernel_state {
    struct axis axis;
    float sign;                      /* -1: the smallest is wanted */
    bool last;                       /* of equal ones the last */
    int64_t per_outer, steps, tiles; /* vectors per outer index; lines or vectors per tile */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (q->in[0].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only f32");
    if (!desc_is_plain(&q->in[0]) || !desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "input or output is not plain");
    struct op_args args = args_of_query(q);
    int axis;
    TRY(args_axis(&args, &q->in[0].shape, 0, &axis, why));
    if (q->in[0].shape.dim[axis] > INT32_MAX - VL)
        return UNSUPPORTED(why, "a line longer than 2^31");
    s->axis = axis_at(&q->in[0].shape, axis);
    s->sign = strcmp(q->node->op->name, "ArgMin") == 0 ? -1.0f : 1.0f;
    s->last = node_int(q->node, "select_last_index", 0) != 0;
    s->per_outer = s->axis.inner == 1 ? 1 : divide_up(s->axis.inner, VL);
    int64_t unit = s->axis.size * (s->axis.inner == 1 ? 1 : VL);
    s->steps = rows_of_tile(s->axis.outer * s->per_outer, unit + 1, TILE_FLOATS, q->threads);
    s->tiles = divide_up(s->axis.outer * s->per_outer, s->steps);
    return STATUS_OK;
}

/* Per lane the extreme so far and where it is. */
struct lanes {
    vf value;
    vi place;
};

SIMD_INLINE void lanes_take(struct lanes *l, vf v, vi place, bool last)
{
    vm better = last ? vf_le(l->value, v) : vf_lt(l->value, v);
    l->value = vf_select(better, v, l->value);
    l->place = vi_bits(vf_select(better, vf_bits(place), vf_bits(l->place)));
}

static int64_t lanes_extreme(const struct lanes *l, bool last)
{
    float value[VL];
    int32_t place[VL];
    vf_store(value, l->value);
    memcpy(place, &l->place, sizeof(place));
    int best = 0;
    for (int k = 1; k < VL; k++) {
        bool equal = value[k] == value[best];
        bool nearer = last ? place[k] > place[best] : place[k] < place[best];
        if (value[k] > value[best] || (equal && nearer))
            best = k;
    }
    return place[best];
}

/* A whole line whose elements lie together. */
static int64_t line_extreme(const struct kernel_state *s, const float *x)
{
    int64_t n = s->axis.size, k = 0;
    if (n < VL) {
        int64_t best = 0;
        for (k = 1; k < n; k++) {
            float a = s->sign * x[k], b = s->sign * x[best];
            best = a > b || (s->last && a == b) ? k : best;
        }
        return best;
    }
    int32_t first[VL];
    for (int j = 0; j < VL; j++)
        first[j] = j;
    struct lanes lanes;
    vf sign = vf_set1(s->sign);
    memcpy(&lanes.place, first, sizeof(first));
    vi place = lanes.place;
    lanes.value = vf_mul(sign, vf_load(x));
    for (k = VL; k + VL <= n; k += VL) {
        place = vi_add(place, vi_set1(VL));
        lanes_take(&lanes, vf_mul(sign, vf_load(x + k)), place, s->last);
    }
    if (k < n) { /* the last VL elements; some are seen twice, which changes nothing */
        memcpy(&place, first, sizeof(first));
        place = vi_add(place, vi_set1((int32_t)(n - VL)));
        lanes_take(&lanes, vf_mul(sign, vf_load(x + n - VL)), place, s->last);
    }
    return lanes_extreme(&lanes, s->last);
}

/* Up to VL lines side by side. */
static void lines_extreme(const struct kernel_state *s, const float *x, int64_t count, int64_t *y)
{
    vm m = vm_first(count);
    vf sign = vf_set1(s->sign);
    struct lanes lanes = {vf_mul(sign, vf_load_m(x, m)), vi_set1(0)};
    for (int64_t k = 1; k < s->axis.size; k++)
        lanes_take(&lanes, vf_mul(sign, vf_load_m(x + k * s->axis.inner, m)), vi_set1((int32_t)k),
                   s->last);
    int32_t place[VL];
    memcpy(place, &lanes.place, sizeof(place));
    for (int64_t k = 0; k < count; k++)
        y[k] = place[k];
}

struct job {
    const struct kernel_state *state;
    const float *x;
    int64_t *y;
};

static void tile_work(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t inner = s->axis.inner, end = s->axis.outer * s->per_outer;
    for (int64_t k = tile * s->steps; k < (tile + 1) * s->steps && k < end; k++) {
        int64_t outer = k / s->per_outer, at = k % s->per_outer * VL;
        const float *x = job->x + outer * s->axis.size * inner;
        if (inner == 1)
            job->y[outer] = line_extreme(s, x);
        else
            lines_extreme(s, x + at, inner - at < VL ? inner - at : VL,
                          job->y + outer * inner + at);
    }
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {state, args->in[0], args->out[0]};
    pool_run(args->pool, state->tiles, tile_work, &job);
}

REGISTER_KERNEL(arg_extreme_lines) = {
    NATIVE(arg_extreme_lines),
    .ops = OPS("ArgMax", "ArgMin"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
