/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/rnn_run.h"

#include <limits.h>
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/kernels/lib/plain_floats.h"
#include "engine/kernels/lib/word_tunings.h"
#include "engine/kernels/lib/workspace.h"

enum {
    PART_BYTES = 768 << 10, /* recurrent weights that a second cache keeps between steps */
    PART_LINES = 8,         /* least batch of a part that runs by itself */
    TILE_WORK = 1 << 15,    /* multiply-adds that are worth a task */
    FEW_LINES = 2,          /* no more: words are worth taking apart for the bandwidth */
};

/* Pieces of the workspace, in floats but for the lines. */
struct scratch {
    float *projected, *h[2], *c, *z;
    uint16_t *narrow_h[2], *narrow_c; /* see struct rnn_line */
    float *x;                         /* widened: [T, B, I] */
    struct rnn_line *lines;
    void *gemm;
    size_t bytes;
};

/* One direction of one launch. */
struct walk {
    const struct kernel_state *state;
    const struct kernel_args *args;
    struct scratch scratch;
    int direction;
    bool backward;
};

/* ---- workspace ---- */

static size_t state_bytes(const struct kernel_state *state)
{
    return (size_t)(state->shape.batch * state->row) * sizeof(float);
}

static size_t narrow_bytes(const struct kernel_state *state)
{
    return state->math == GEMM_BF16_DOT ? state_bytes(state) / 2 : 0;
}

/* Whether x W' of bf16 is one of floats, because the CPU has no instruction for it. */
static bool widens_x(const struct kernel_state *state)
{
    return state->bf16 && state->projection.size.math == GEMM_F32;
}

static struct scratch lay_out(const struct kernel_state *state, void *base)
{
    const struct rnn_shape *s = &state->shape;
    struct scratch scratch = {0};
    size_t rows = (size_t)(s->steps * s->batch), width = (size_t)(s->gates * s->hidden);
    scratch.projected = take_bytes(base, &scratch.bytes, rows * width * sizeof(float));
    scratch.h[0] = take_bytes(base, &scratch.bytes, state_bytes(state));
    scratch.h[1] = take_bytes(base, &scratch.bytes, state_bytes(state));
    scratch.c = take_bytes(base, &scratch.bytes, state_bytes(state));
    scratch.z = take_bytes(base, &scratch.bytes, state_bytes(state));
    scratch.narrow_h[0] = take_bytes(base, &scratch.bytes, narrow_bytes(state));
    scratch.narrow_h[1] = take_bytes(base, &scratch.bytes, narrow_bytes(state));
    scratch.narrow_c = take_bytes(base, &scratch.bytes, narrow_bytes(state));
    scratch.x =
        take_floats(base, &scratch.bytes, widens_x(state) ? s->steps * s->batch * s->input : 0);
    scratch.lines = take_bytes(base, &scratch.bytes, (size_t)s->batch * sizeof(*scratch.lines));
    scratch.gemm = take_bytes(base, &scratch.bytes, gemm_workspace(&state->projection));
    return scratch;
}

static double projection_macs(const struct rnn_shape *s)
{
    return (double)(s->steps * s->batch) * (double)(s->gates * s->hidden) * (double)s->input;
}

static struct gemm_plan projection_of(const struct kernel_state *state, int variant, int threads)
{
    const struct rnn_shape *s = &state->shape;
    const struct word_tuning *t;
    struct gemm_size size = {.batch = 1,
                             .m = s->steps * s->batch,
                             .n = s->gates * s->hidden,
                             .taps = 1,
                             .k = s->input,
                             .vectors = VL == 16 ? 4 : 2,
                             .block_k = 512,
                             .threads = threads};
    if (state->bf16)
        word_tunings(sizeof(uint16_t), projection_macs(s), variant, &t);
    if (state->bf16 && t->math == GEMM_BF16_DOT) {
        size.k = divide_up(s->input, 2);
        size.math = t->math;
        size.row_bytes = s->input * (int64_t)sizeof(uint16_t);
        size.copy = s->input % 2 != 0;
        size.vectors = t->vectors;
        size.rows = t->rows;
    }
    return gemm_plan_for(&size);
}

/* ---- what is supported ---- */

static bool usual_activations(const struct node *node, const struct rnn_kernel *kernel)
{
    const struct attr *names = node_attr(node, "activations");
    int count = 0;
    while (kernel->activations[count])
        count++;
    if (names && names->kind != ATTR_STRINGS)
        return false;
    for (int k = 0; names && k < names->count; k++)
        if (strcmp(names->strings[k], kernel->activations[k % count]) != 0)
            return false;
    return true;
}

static enum status check_tensors(const struct kernel_query *q, bool bf16, struct error *why)
{
    enum dtype floats = bf16 ? DTYPE_BF16 : DTYPE_F32;
    for (int k = 0; k < q->in_count; k++) {
        if (!query_in(q, k))
            continue;
        if (q->in[k].dtype != (k == RNN_LENGTHS ? DTYPE_I32 : floats))
            return UNSUPPORTED(why, "input %d is %s", k, dtype_name(q->in[k].dtype));
        if (!desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    }
    for (int k = 0; k < q->out_count; k++)
        if (q->out[k].dtype != DTYPE_NONE &&
            (q->out[k].dtype != floats || !desc_is_plain(&q->out[k])))
            return UNSUPPORTED(why, "output %d is not plain %s", k, dtype_name(floats));
    return STATUS_OK;
}

static int64_t parts_of(const struct kernel_state *state, int64_t threads)
{
    const struct rnn_shape *s = &state->shape;
    int64_t bytes = s->gates * s->hidden * state->words * (int64_t)sizeof(float);
    if (threads == 1 || bytes > PART_BYTES || s->batch < threads * PART_LINES)
        return 1;
    int64_t parts = s->batch / PART_LINES;
    return parts < 4 * threads ? parts : 4 * threads;
}

static void plan_recurrence(struct kernel_state *state)
{
    const struct rnn_shape *s = &state->shape;
    state->math = state->projection.size.math;
    if (state->bf16 && (state->kernel->delicate || state->math != GEMM_BF16_DOT))
        state->math = s->batch > FEW_LINES ? GEMM_F32 : GEMM_BF16;
    state->words = state->math == GEMM_F32 ? s->hidden : divide_up(s->hidden, 2);
    state->row = state->math == GEMM_F32 ? s->hidden : 2 * state->words;
}

enum status rnn_plan(const struct kernel_query *q, const struct rnn_kernel *kernel, int variant,
                     struct kernel_state *state, struct error *why)
{
    struct rnn_shape *s = &state->shape;
    if (q->node->post_count || query_in(q, RNN_PEEPHOLE))
        return UNSUPPORTED(why, "no fused epilogue and no peepholes");
    if (node_attr(q->node, "clip") || node_int(q->node, "input_forget", 0))
        return UNSUPPORTED(why, "no clip and no input_forget");
    if (!usual_activations(q->node, kernel))
        return UNSUPPORTED(why, "activations other than the usual ones");
    state->bf16 = q->in[RNN_X].dtype == DTYPE_BF16;
    TRY(check_tensors(q, state->bf16, why));
    TRY(rnn_shape_from(q->node, kernel->gates, &q->in[RNN_X].shape, &q->in[RNN_R].shape, s, why));
    if (s->steps * s->batch * s->input * s->hidden == 0)
        return UNSUPPORTED(why, "an empty sequence");
    state->kernel = kernel;
    state->projection = projection_of(state, variant, q->threads);
    plan_recurrence(state);
    state->blocks = divide_up(s->hidden, VL);
    state->parts = parts_of(state, q->threads);
    state->workspace = lay_out(state, NULL).bytes;
    for (int k = 0; k < q->in_count; k++) {
        bool weight = k == RNN_W || k == RNN_R || k == RNN_BIAS;
        state->given |= query_in(q, k) ? 1u << k : 0;
        state->changing = state->changing || (weight && query_in(q, k) && !q->fixed[k]);
    }
    for (int k = 0; k < q->out_count; k++)
        state->wanted |= q->out[k].dtype != DTYPE_NONE ? 1u << k : 0;
    return STATUS_OK;
}

int rnn_variants(const struct kernel_state *state)
{
    const struct word_tuning *none;
    double macs = projection_macs(&state->shape);
    bool tuned = state->projection.size.math == GEMM_BF16_DOT;
    return tuned ? word_tunings(sizeof(uint16_t), macs, INT_MAX, &none) : 1;
}

/* ---- running ---- */

struct projected_rows {
    const char *x;
    int64_t bytes; /* of a row */
};

static void rows_of_x(const struct gemm_rows *rows, const float **to, int64_t step)
{
    const struct projected_rows *from = rows->source;
    (void)step;
    for (int64_t m = 0; m < rows->count; m++)
        to[m] = (const float *)(const void *)(from->x + (rows->row + m) * from->bytes);
}

static void widen_x(void *context, int64_t row, int thread)
{
    const struct walk *w = context;
    int64_t input = w->state->shape.input;
    (void)thread;
    floats_widen(float_at(w->args->in[RNN_X], row * input, true), w->scratch.x + row * input,
                 input);
}

static void project(const struct walk *w)
{
    const struct kernel_state *state = w->state;
    const struct rnn_weights *weights = &state->weights[w->direction];
    bool floats = state->projection.size.math == GEMM_F32;
    const void *x = widens_x(state) ? w->scratch.x : w->args->in[RNN_X];
    struct projected_rows source = {x, state->shape.input * (floats ? 4 : 2)};
    struct gemm_call call = {.rows = rows_of_x,
                             .source = &source,
                             .b = weights->w,
                             .bias = weights->bias,
                             .c = w->scratch.projected,
                             .c_row = state->shape.gates * state->shape.hidden,
                             .workspace = w->scratch.gemm};
    gemm_run(&state->projection, &call, w->args->pool);
}

/* Where the state of sequence b lies in a tensor of states. */
static int64_t state_at(const struct walk *w, int64_t b)
{
    const struct rnn_shape *s = &w->state->shape;
    return s->batch_first ? (b * s->directions + w->direction) * s->hidden
                          : (w->direction * s->batch + b) * s->hidden;
}

/* One state, from or to memory of the node's type. */
static void copy_state(const struct walk *w, const void *from, bool from_bf16, void *to,
                       bool to_bf16)
{
    int64_t hidden = w->state->shape.hidden;
    if (!from_bf16 && !to_bf16)
        memcpy(to, from, (size_t)hidden * sizeof(float));
    for (int64_t k = 0; (from_bf16 || to_bf16) && k < hidden; k++)
        float_write(to, k, float_read(from, k, from_bf16), to_bf16);
}

static void load_state(const struct walk *w, int input, float *to)
{
    int64_t hidden = w->state->shape.hidden;
    bool bf16 = w->state->bf16;
    const void *given = w->state->given >> input & 1 ? w->args->in[input] : NULL;
    for (int64_t b = 0; b < w->state->shape.batch; b++)
        if (given)
            copy_state(w, float_at(given, state_at(w, b), bf16), bf16, to + b * w->state->row,
                       false);
        else
            memset(to + b * w->state->row, 0, (size_t)hidden * sizeof(float));
}

/* States of zeros: no step writes what completes the last word. */
static void clear_states(const struct walk *w)
{
    const struct scratch *scratch = &w->scratch;
    for (int k = 0; k < 2 && w->state->bf16; k++) {
        memset(scratch->h[k], 0, state_bytes(w->state));
        memset(scratch->narrow_h[k], 0, narrow_bytes(w->state));
    }
    if (w->state->bf16) {
        memset(scratch->c, 0, state_bytes(w->state));
        memset(scratch->narrow_c, 0, narrow_bytes(w->state));
    }
}

static void load_states(const struct walk *w)
{
    const struct kernel_state *state = w->state;
    clear_states(w);
    load_state(w, RNN_H, w->scratch.h[0]);
    if (state->kernel->memory)
        load_state(w, RNN_C, w->scratch.c);
    for (int64_t b = 0; state->math == GEMM_BF16_DOT && b < state->shape.batch; b++)
        copy_state(w, w->scratch.h[0] + b * state->row, false,
                   w->scratch.narrow_h[0] + b * state->row, true);
}

static void *output(const struct walk *w, int index)
{
    return w->state->wanted >> index & 1 ? w->args->out[index] : NULL;
}

static void store_state(const struct walk *w, int index, const float *from)
{
    bool bf16 = w->state->bf16;
    char *to = output(w, index);
    for (int64_t b = 0; to && b < w->state->shape.batch; b++)
        copy_state(w, from + b * w->state->row, false, to + state_at(w, b) * (bf16 ? 2 : 4), bf16);
}

static int64_t length_of(const struct walk *w, int64_t b)
{
    int64_t steps = w->state->shape.steps;
    const int32_t *lengths = w->state->given >> RNN_LENGTHS & 1 ? w->args->in[RNN_LENGTHS] : NULL;
    return lengths && lengths[b] < steps ? lengths[b] : steps;
}

static void *output_row(const struct walk *w, int64_t b, int64_t time)
{
    const struct rnn_shape *s = &w->state->shape;
    char *y = output(w, 0);
    int64_t row = s->batch_first ? (b * s->steps + time) * s->directions + w->direction
                                 : (time * s->directions + w->direction) * s->batch + b;
    return y ? y + row * s->hidden * (w->state->bf16 ? 2 : 4) : NULL;
}

/* Sequence b has ended before the step: it keeps its state, and its output at this moment is
 * zero. */
static void keep_line(const struct walk *w, int64_t step, int64_t b)
{
    const struct kernel_state *state = w->state;
    const struct scratch *scratch = &w->scratch;
    int64_t at = b * state->row, next = (step + 1) % 2;
    size_t row = (size_t)state->row;
    void *y = output_row(w, b, step); /* moments past the end, in any order */
    memcpy(scratch->h[next] + at, scratch->h[step % 2] + at, row * sizeof(float));
    if (state->math == GEMM_BF16_DOT)
        memcpy(scratch->narrow_h[next] + at, scratch->narrow_h[step % 2] + at,
               row * sizeof(uint16_t));
    if (y)
        memset(y, 0, (size_t)state->shape.hidden * (state->bf16 ? 2 : 4));
}

/* Where sequence 0 has its states in this step; the others follow. */
static struct rnn_line first_line(const struct walk *w, int64_t step)
{
    const struct scratch *scratch = &w->scratch;
    int64_t now = step % 2, next = 1 - now;
    return (struct rnn_line){
        .h = scratch->h[now],
        .next = scratch->h[next],
        .c = scratch->c,
        .z = scratch->z,
        .keep = 1,
        .narrow_h = scratch->narrow_h[now],
        .narrow_next = scratch->narrow_h[next],
        .narrow_c = scratch->narrow_c,
    };
}

static inline void make_line(const struct walk *w, const struct rnn_line *first, int64_t b,
                             int64_t time, struct rnn_line *to)
{
    const struct rnn_shape *s = &w->state->shape;
    int64_t at = b * w->state->row;
    int64_t row = s->batch_first ? b * s->steps + time : time * s->batch + b;
    to->x = w->scratch.projected + row * s->gates * s->hidden;
    to->h = first->h + at;
    to->next = first->next + at;
    to->c = first->c + at;
    to->z = first->z + at;
    to->y = output_row(w, b, time);
    to->keep = first->keep;
    if (w->state->kernel->attention)
        to->keep -= float_read(w->args->in[RNN_ATTENTION], row, w->state->bf16);
    to->narrow_h = first->narrow_h + at;
    to->narrow_next = first->narrow_next + at;
    to->narrow_c = first->narrow_c + at;
}

/* Collects the sequences of [first, last) that are still going on in lines[first ...]. */
static int64_t make_lines(const struct walk *w, int64_t step, int64_t first, int64_t last)
{
    struct rnn_line start = first_line(w, step), *lines = w->scratch.lines + first;
    int64_t count = 0;
    for (int64_t b = first; b < last; b++) {
        int64_t length = length_of(w, b), time = w->backward ? length - 1 - step : step;
        if (step >= length)
            keep_line(w, step, b);
        else
            make_line(w, &start, b, time, &lines[count++]);
    }
    return count;
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct rnn_step_job *step = context;
    int64_t block = tile / step->parts, part = tile % step->parts;
    int64_t first = step->count * part / step->parts;
    int64_t last = step->count * (part + 1) / step->parts;
    step->state->kernel->phase[step->phase](step, block, first, last);
}

/* All steps of the sequences [first, last). */
static void run_steps(const struct walk *w, int64_t first, int64_t last, struct pool *pool)
{
    const struct kernel_state *state = w->state;
    int64_t hidden = state->shape.hidden, threads = pool_threads(pool);
    struct rnn_step_job job = {.state = state,
                               .weights = &state->weights[w->direction],
                               .lines = w->scratch.lines + first};
    for (int64_t step = 0; step < state->shape.steps; step++) {
        job.count = make_lines(w, step, first, last);
        int64_t work = job.count * hidden * hidden * state->kernel->gates;
        bool alone = threads == 1 || work < 2 * TILE_WORK;
        job.parts = state->blocks < 2 * threads && !alone ? 2 * threads / state->blocks : 1;
        for (int p = 0; p < state->kernel->phases && job.count > 0; p++) {
            job.phase = p;
            pool_run(alone ? NULL : pool, state->blocks * job.parts, run_tile, &job);
        }
    }
}

static void run_part(void *context, int64_t part, int thread)
{
    (void)thread;
    const struct walk *w = context;
    int64_t batch = w->state->shape.batch, parts = w->state->parts;
    run_steps(w, batch * part / parts, batch * (part + 1) / parts, NULL);
}

void rnn_launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct walk w = {.state = state, .args = args};
    w.scratch = lay_out(state, args->workspace);
    if (widens_x(state))
        pool_run(args->pool, state->shape.steps * state->shape.batch, widen_x, &w);
    for (int d = 0; d < state->shape.directions; d++) {
        w.direction = d;
        w.backward = state->shape.backward || d == 1;
        project(&w);
        load_states(&w);
        if (state->parts > 1)
            pool_run(args->pool, state->parts, run_part, &w);
        else
            run_steps(&w, 0, state->shape.batch, args->pool);
        store_state(&w, 1, w.scratch.h[state->shape.steps % 2]);
        if (state->kernel->memory)
            store_state(&w, 2, w.scratch.c);
    }
}
