/* SPDX-License-Identifier: Apache-2.0
 *
 * TopK of f32 lines. The best k so far are kept in order; vectors of the line are compared with the
 * worst of them, and only the few elements that beat it are put in place. On random data that is
 * k (1 + ln(n / k)) insertions for n elements.
 */
#include "engine/kernels/lib/simd.h"
#include "engine/ops/lib/axis.h"
#include "engine/ops/lib/op_args.h"

enum { LINE_BYTES_MIN = 64 };

struct kernel_state {
    struct axis axis;
    int64_t k;
    float sign;        /* -1: the smallest are wanted */
    size_t slot_bytes; /* per thread: k values, k places and, when the axis is not the last one, the
                          line */
    bool wants_places;
    int threads;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (q->in[0].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only f32");
    if (!desc_is_plain(&q->in[0]))
        return UNSUPPORTED(why, "input 0 is not plain");
    for (int k = 0; k < q->out_count; k++)
        if (q->out[k].dtype != DTYPE_NONE && !desc_is_plain(&q->out[k]))
            return UNSUPPORTED(why, "output %d is not plain", k);
    struct op_args args = args_of_query(q);
    int axis;
    TRY(args_axis(&args, &q->in[0].shape, -1, &axis, why));
    if (q->in[0].shape.dim[axis] > INT32_MAX)
        return UNSUPPORTED(why, "a line longer than 2^31");
    int output = q->out[0].dtype == DTYPE_NONE;
    s->axis = axis_at(&q->in[0].shape, axis);
    s->k = q->out[output].shape.dim[axis];
    s->sign = node_int(q->node, "largest", 1) ? 1.0f : -1.0f;
    size_t floats = (size_t)(2 * s->k + (s->axis.inner > 1 ? s->axis.size : 0)) + VL;
    s->slot_bytes = (floats * sizeof(float) + LINE_BYTES_MIN - 1) / LINE_BYTES_MIN * LINE_BYTES_MIN;
    s->wants_places = q->out_count > 1;
    s->threads = q->threads;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return s->slot_bytes * (size_t)s->threads;
}

/* The best so far, best first; equal ones in the order of their places. */
struct best {
    float *value;
    int32_t *place;
    int64_t held, k;
};

static void insert(struct best *b, float value, int32_t place)
{
    int64_t low = 0, high = b->held;
    while (low < high) { /* the first that is worse */
        int64_t middle = (low + high) / 2;
        if (b->value[middle] < value)
            high = middle;
        else
            low = middle + 1;
    }
    if (low == b->k)
        return;
    b->held += b->held < b->k;
    size_t moved = (size_t)(b->held - 1 - low);
    memmove(b->value + low + 1, b->value + low, moved * sizeof(*b->value));
    memmove(b->place + low + 1, b->place + low, moved * sizeof(*b->place));
    b->value[low] = value;
    b->place[low] = place;
}

static void search(const float *x, int64_t n, float sign, struct best *b)
{
    int64_t i = 0;
    for (; i < b->k; i++)
        insert(b, sign * x[i], (int32_t)i);
    vf signs = vf_set1(sign);
    for (; i < n && b->k; i += VL) {
        vf worst = vf_set1(b->value[b->k - 1]);
        vf v = vf_mul(signs, vf_load_m(x + i, vm_first(n - i)));
        if (vf_max_of(v) <= vf_max_of(worst))
            continue;
        for (int64_t j = i; j < i + VL && j < n; j++)
            if (sign * x[j] > b->value[b->k - 1])
                insert(b, sign * x[j], (int32_t)j);
    }
}

struct job {
    const struct kernel_state *state;
    const float *x;
    float *value;   /* NULL: not wanted */
    int64_t *place; /* NULL: not wanted */
    char *workspace;
};

static void line_work(void *context, int64_t line, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t inner = s->axis.inner, outer = line / inner, at = line % inner;
    float *slot = (float *)(void *)(job->workspace + (size_t)thread * s->slot_bytes);
    struct best best = {.value = slot, .place = (int32_t *)(void *)(slot + s->k), .k = s->k};
    const float *x = job->x + outer * s->axis.size * inner + at;
    if (inner > 1) {
        float *gathered = slot + 2 * s->k;
        for (int64_t k = 0; k < s->axis.size; k++)
            gathered[k] = x[k * inner];
        x = gathered;
    }
    search(x, s->axis.size, s->sign, &best);
    for (int64_t k = 0; k < s->k; k++) {
        int64_t to = (outer * s->k + k) * inner + at;
        if (job->value)
            job->value[to] = x[best.place[k]];
        if (job->place)
            job->place[to] = best.place[k];
    }
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {state, args->in[0], args->out[0], NULL, args->workspace};
    if (state->wants_places)
        job.place = args->out[1];
    pool_run(args->pool, state->axis.outer * state->axis.inner, line_work, &job);
}

REGISTER_KERNEL(top_k_lines) = {
    NATIVE(top_k_lines), .ops = OPS("TopK"),     .state_size = sizeof(struct kernel_state),
    .plan = plan,        .workspace = workspace, .launch = launch,
};
