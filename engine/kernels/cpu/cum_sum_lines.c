/* SPDX-License-Identifier: Apache-2.0
 *
 * CumSum on plain memory. A sum waits for the one before it, so several lines go side by side:
 * neighbours along the inner dimensions, in vectors, or where the axis is the last one four lines,
 * which hide each other's waits. Floats are summed in f64: of a long line the error stays that of
 * one rounding. */
#include "base/numbers/integers.h"
#include "engine/kernels/lib/simd.h"
#include "engine/kernels/lib/tiles.h"
#include "engine/ops/lib/axis.h"
#include "engine/ops/lib/op_args.h"

enum { COLUMNS = 64, LINES = 4, TASK_ELEMENTS = 8192 };

struct lines;
typedef void lines_fn(const struct lines *lines);

struct kernel_state {
    struct axis axis;
    bool exclusive, reverse;
    int64_t group, groups;          /* lines that go side by side; of them per outer index, or in
                                       all where the axis is the last one */
    int64_t groups_per_task, units; /* groups in all */
    size_t element;
    lines_fn *run;
};

/* Lines side by side, from the first of their elements that are summed. */
struct lines {
    const struct kernel_state *state;
    const char *x;
    char *y;
    int64_t count;
};

/* From line to line `apart` elements, from one to the next in a line `step`. */
#define LOOP(name, type, total)                                                                    \
    SIMD_INLINE void name##_loop(const struct lines *l, int64_t count, int64_t apart,              \
                                 int64_t step, bool exclusive)                                     \
    {                                                                                              \
        const type *restrict x = (const type *)(const void *)l->x;                                 \
        type *restrict y = (type *)(void *)l->y;                                                   \
        total sums[COLUMNS] = {0};                                                                 \
        for (int64_t k = l->state->axis.size; k > 0; k--, x += step, y += step) {                  \
            for (int64_t j = 0; j < count; j++) {                                                  \
                total before = sums[j], after = before + (total)x[j * apart];                      \
                y[j * apart] = (type)(exclusive ? before : after);                                 \
                sums[j] = after;                                                                   \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    SIMD_INLINE void name##_any(const struct lines *l, bool exclusive)                             \
    {                                                                                              \
        const struct axis *axis = &l->state->axis;                                                 \
        int64_t inner = axis->inner, step = l->state->reverse ? -inner : inner;                    \
        struct lines one = *l;                                                                     \
        if (inner > 1 && l->count == COLUMNS)                                                      \
            name##_loop(l, COLUMNS, 1, step, exclusive);                                           \
        else if (inner > 1)                                                                        \
            name##_loop(l, l->count, 1, step, exclusive);                                          \
        else if (l->count == LINES)                                                                \
            name##_loop(l, LINES, axis->size, step, exclusive);                                    \
        for (int64_t k = 0; inner == 1 && l->count < LINES && k < l->count; k++) {                 \
            name##_loop(&one, 1, 0, step, exclusive);                                              \
            one.x += axis->size * (int64_t)sizeof(type);                                           \
            one.y += axis->size * (int64_t)sizeof(type);                                           \
        }                                                                                          \
    }                                                                                              \
    static void name(const struct lines *l)                                                        \
    {                                                                                              \
        if (l->state->exclusive)                                                                   \
            name##_any(l, true);                                                                   \
        else                                                                                       \
            name##_any(l, false);                                                                  \
    }

LOOP(sum_f32, float, double)
LOOP(sum_i32, uint32_t, uint32_t) /* overflow wraps */
LOOP(sum_i64, uint64_t, uint64_t)

static enum status check(const struct kernel_query *q, struct error *why)
{
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (q->in[0].dtype != q->out[0].dtype)
        return UNSUPPORTED(why, "the sums are of another type");
    if (!desc_is_plain(&q->in[0]) || !desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "only plain tensors");
    if (!query_fixed(q, 1))
        return UNSUPPORTED(why, "the axis comes with each launch");
    return STATUS_OK;
}

static lines_fn *find(enum dtype dtype)
{
    return dtype == DTYPE_F32   ? sum_f32
           : dtype == DTYPE_I32 ? sum_i32
           : dtype == DTYPE_I64 ? sum_i64
                                : NULL;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    struct op_args args = args_of_query(q);
    struct int_list list;
    TRY(check(q, why));
    TRY(args_ints(&args, 1, NULL, &list, why));
    int which = list.count == 1 ? shape_axis(&q->in[0].shape, list.at[0]) : NONE;
    s->run = find(q->in[0].dtype);
    if (which < 0)
        return UNSUPPORTED(why, "no such axis");
    if (!s->run)
        return UNSUPPORTED(why, "sums of %s", dtype_name(q->in[0].dtype));
    s->axis = axis_at(&q->in[0].shape, which);
    s->exclusive = node_int(q->node, "exclusive", 0) != 0;
    s->reverse = node_int(q->node, "reverse", 0) != 0;
    s->element = dtype_size(q->in[0].dtype);
    s->group = s->axis.inner > 1 ? COLUMNS : LINES;
    s->groups = divide_up(s->axis.inner > 1 ? s->axis.inner : s->axis.outer, s->group);
    s->units = s->axis.inner > 1 ? s->axis.outer * s->groups : s->groups;
    if (shape_count(&q->in[0].shape) == 0)
        s->units = 0;
    s->groups_per_task = rows_of_tile(s->units, s->group * s->axis.size, TASK_ELEMENTS, q->threads);
    return STATUS_OK;
}

struct job {
    const struct kernel_state *state;
    const char *x;
    char *y;
};

static void run_task(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    const struct axis *axis = &s->axis;
    int64_t unit = task * s->groups_per_task, end = smaller(unit + s->groups_per_task, s->units);
    (void)thread;
    for (; unit < end; unit++) {
        int64_t outer = axis->inner > 1 ? unit / s->groups : unit * s->group;
        int64_t column = axis->inner > 1 ? unit % s->groups * s->group : 0;
        int64_t first = s->reverse ? axis->size - 1 : 0;
        int64_t at = ((outer * axis->size + first) * axis->inner + column) * (int64_t)s->element;
        int64_t left = axis->inner > 1 ? axis->inner - column : axis->outer - outer;
        struct lines lines = {s, job->x + at, job->y + at, smaller(left, s->group)};
        s->run(&lines);
    }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {s, args->in[0], args->out[0]};
    pool_run(args->pool, divide_up(s->units, s->groups_per_task), run_task, &job);
}

REGISTER_KERNEL(cum_sum_lines) = {
    NATIVE(cum_sum_lines), .ops = OPS("CumSum"), .state_size = sizeof(struct kernel_state),
    .plan = plan,          .launch = launch,
};
