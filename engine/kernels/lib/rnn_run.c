/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/rnn_run.h"

#include <string.h>

#include "base/memory.h"
#include "base/numbers/integers.h"
#include "engine/kernels/lib/simd_square.h"
#include "engine/kernels/lib/workspace.h"

enum {
    PART_BYTES = 768 << 10, /* recurrent weights that a second cache keeps between steps */
    PART_LINES = 8,         /* least batch of a part that runs by itself */
    TILE_WORK = 1 << 15,    /* multiply-adds that are worth a task */
};

/* Pieces of the workspace, in floats but for the lines. */
struct scratch {
    float *projected, *h[2], *c, *z;
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

static struct scratch lay_out(const struct rnn_shape *s, const struct gemm_plan *projection,
                              void *base)
{
    struct scratch scratch = {0};
    size_t state = (size_t)(s->batch * s->hidden) * sizeof(float);
    size_t rows = (size_t)(s->steps * s->batch), width = (size_t)(s->gates * s->hidden);
    scratch.projected = take_bytes(base, &scratch.bytes, rows * width * sizeof(float));
    scratch.h[0] = take_bytes(base, &scratch.bytes, state);
    scratch.h[1] = take_bytes(base, &scratch.bytes, state);
    scratch.c = take_bytes(base, &scratch.bytes, state);
    scratch.z = take_bytes(base, &scratch.bytes, state);
    scratch.lines = take_bytes(base, &scratch.bytes, (size_t)s->batch * sizeof(*scratch.lines));
    scratch.gemm = take_bytes(base, &scratch.bytes, gemm_workspace(projection));
    return scratch;
}

static struct gemm_plan projection_of(const struct rnn_shape *s, int threads)
{
    struct gemm_size size = {.batch = 1,
                             .m = s->steps * s->batch,
                             .n = s->gates * s->hidden,
                             .taps = 1,
                             .k = s->input,
                             .vectors = VL == 16 ? 4 : 2,
                             .block_k = 512,
                             .threads = threads};
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

static enum status check_tensors(const struct kernel_query *q, struct error *why)
{
    for (int k = 0; k < q->in_count; k++) {
        if (!query_in(q, k))
            continue;
        if (q->in[k].dtype != (k == RNN_LENGTHS ? DTYPE_I32 : DTYPE_F32))
            return UNSUPPORTED(why, "input %d is %s", k, dtype_name(q->in[k].dtype));
        if (!desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    }
    for (int k = 0; k < q->out_count; k++)
        if (q->out[k].dtype != DTYPE_NONE && !desc_is_plain(&q->out[k]))
            return UNSUPPORTED(why, "output %d is not plain", k);
    return STATUS_OK;
}

static int64_t parts_of(const struct kernel_state *state, int64_t threads)
{
    const struct rnn_shape *s = &state->shape;
    int64_t bytes = s->gates * s->hidden * s->hidden * (int64_t)sizeof(float);
    if (threads == 1 || bytes > PART_BYTES || s->batch < threads * PART_LINES)
        return 1;
    int64_t parts = s->batch / PART_LINES;
    return parts < 4 * threads ? parts : 4 * threads;
}

enum status rnn_plan(const struct kernel_query *q, const struct rnn_kernel *kernel,
                     struct kernel_state *state, struct error *why)
{
    struct rnn_shape *s = &state->shape;
    if (q->node->post_count || query_in(q, RNN_PEEPHOLE))
        return UNSUPPORTED(why, "no fused epilogue and no peepholes");
    if (node_attr(q->node, "clip") || node_int(q->node, "input_forget", 0))
        return UNSUPPORTED(why, "no clip and no input_forget");
    if (!usual_activations(q->node, kernel))
        return UNSUPPORTED(why, "activations other than the usual ones");
    TRY(check_tensors(q, why));
    TRY(rnn_shape_from(q->node, kernel->gates, &q->in[RNN_X].shape, &q->in[RNN_R].shape, s, why));
    if (s->steps * s->batch * s->input * s->hidden == 0)
        return UNSUPPORTED(why, "an empty sequence");
    state->kernel = kernel;
    state->projection = projection_of(s, q->threads);
    state->blocks = divide_up(s->hidden, VL);
    state->parts = parts_of(state, q->threads);
    state->workspace = lay_out(s, &state->projection, NULL).bytes;
    for (int k = 0; k < q->in_count; k++) {
        bool weight = k == RNN_W || k == RNN_R || k == RNN_BIAS;
        state->given |= query_in(q, k) ? 1u << k : 0;
        state->changing = state->changing || (weight && query_in(q, k) && !q->fixed[k]);
    }
    for (int k = 0; k < q->out_count; k++)
        state->wanted |= q->out[k].dtype != DTYPE_NONE ? 1u << k : 0;
    return STATUS_OK;
}

/* ---- packing ---- */

/* R of one launch, and where its blocks of units go. */
struct recurrent {
    const struct kernel_state *state;
    const float *r; /* [gates][H][H] */
    const struct rnn_weights *to;
};

static void pack_block(void *context, int64_t block, int thread)
{
    const struct recurrent *from = context;
    const struct rnn_kernel *kernel = from->state->kernel;
    int64_t hidden = from->state->shape.hidden, unit = block * VL;
    int64_t units = hidden - unit < VL ? hidden - unit : VL;
    (void)thread;
    for (int p = 0; p < kernel->phases; p++) {
        int first = kernel->phase_gates[p].first, count = kernel->phase_gates[p].count;
        struct turn turn = {.from_row = hidden, .to_row = count * VL};
        for (int g = 0; g < count; g++) {
            turn.from = from->r + ((first + g) * hidden + unit) * hidden;
            turn.to = from->to->r[p] + (unit * hidden) * count + g * VL;
            turn_rows(turn, units, hidden, vf_set1(1.0f));
        }
    }
}

/* bias: x's half, then r's. */
static void pack_bias(const struct kernel_state *state, const float *bias, struct rnn_weights *to)
{
    int64_t hidden = state->shape.hidden, width = state->shape.gates * hidden;
    memset(to->bias, 0, (size_t)gemm_bias_floats(&state->projection) * sizeof(float));
    memset(to->apart, 0, (size_t)(state->blocks * VL) * sizeof(float));
    for (int64_t k = 0; bias && k < width; k++) {
        bool apart = state->kernel->apart && k >= width - hidden;
        to->bias[k] = bias[k] + (apart ? 0 : bias[width + k]);
        if (apart)
            to->apart[k - (width - hidden)] = bias[width + k];
    }
}

/* Places all packed weights from base on, NULL: nowhere; returns their bytes. */
static size_t place_weights(const struct kernel_state *state, char *base, struct rnn_weights *to)
{
    const struct rnn_kernel *kernel = state->kernel;
    size_t at = 0, number = sizeof(float);
    for (int d = 0; d < state->shape.directions; d++, to++) {
        to->w = take_bytes(base, &at, (size_t)gemm_packed_floats(&state->projection) * number);
        to->bias = take_bytes(base, &at, (size_t)gemm_bias_floats(&state->projection) * number);
        to->apart = take_bytes(base, &at, (size_t)(state->blocks * VL) * number);
        for (int p = 0; p < kernel->phases; p++) {
            int64_t panel = state->shape.hidden * kernel->phase_gates[p].count * VL;
            to->r[p] = take_bytes(base, &at, (size_t)(state->blocks * panel) * number);
        }
    }
    return at;
}

static size_t weight_bytes(const struct kernel_state *state)
{
    struct rnn_weights nowhere[RNN_DIRECTIONS];
    return place_weights(state, NULL, nowhere);
}

size_t rnn_workspace(const struct kernel_state *state)
{
    return state->workspace + (state->changing ? weight_bytes(state) : 0);
}

void rnn_release(struct kernel_state *state)
{
    memory_free(state->packed);
}

enum status rnn_prepare(const struct kernel_query *q, struct kernel_state *state,
                        size_t *packed_bytes, struct error *err)
{
    (void)q;
    if (state->changing)
        return STATUS_OK;
    *packed_bytes = weight_bytes(state);
    state->packed = memory_alloc(*packed_bytes);
    return state->packed ? STATUS_OK : FAIL_NO_MEMORY(err);
}

void rnn_pack(struct kernel_state *state, const struct kernel_args *args)
{
    const struct rnn_shape *s = &state->shape;
    int64_t width = s->gates * s->hidden;
    const float *w = args->in[RNN_W], *r = args->in[RNN_R];
    const float *bias = state->given >> RNN_BIAS & 1 ? args->in[RNN_BIAS] : NULL;
    char *base = state->packed ? state->packed : (char *)args->workspace + state->workspace;
    place_weights(state, base, state->weights);
    for (int d = 0; d < s->directions; d++) {
        struct rnn_weights *to = &state->weights[d];
        struct gemm_source_b from = {
            .b = w + d * width * s->input, .row = 1, .column = s->input, .scale = 1};
        struct recurrent recurrent = {state, r + d * width * s->hidden, to};
        gemm_pack(&state->projection, &from, args->pool, to->w);
        pool_run(args->pool, state->blocks, pack_block, &recurrent);
        pack_bias(state, bias ? bias + d * 2 * width : NULL, to);
    }
}

/* ---- running ---- */

struct projected_rows {
    const float *x;
    int64_t input;
};

static void rows_of_x(const struct gemm_rows *rows, const float **to, int64_t step)
{
    const struct projected_rows *from = rows->source;
    (void)step;
    for (int64_t m = 0; m < rows->count; m++)
        to[m] = from->x + (rows->row + m) * from->input;
}

static void project(const struct walk *w)
{
    const struct kernel_state *state = w->state;
    const struct rnn_weights *weights = &state->weights[w->direction];
    struct projected_rows source = {w->args->in[RNN_X], state->shape.input};
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

static void load_state(const struct walk *w, int input, float *to)
{
    int64_t hidden = w->state->shape.hidden;
    const float *given = w->state->given >> input & 1 ? w->args->in[input] : NULL;
    for (int64_t b = 0; b < w->state->shape.batch; b++)
        if (given)
            memcpy(to + b * hidden, given + state_at(w, b), (size_t)hidden * sizeof(float));
        else
            memset(to + b * hidden, 0, (size_t)hidden * sizeof(float));
}

static float *output(const struct walk *w, int index)
{
    return w->state->wanted >> index & 1 ? w->args->out[index] : NULL;
}

static void store_state(const struct walk *w, int index, const float *from)
{
    int64_t hidden = w->state->shape.hidden;
    float *to = output(w, index);
    for (int64_t b = 0; to && b < w->state->shape.batch; b++)
        memcpy(to + state_at(w, b), from + b * hidden, (size_t)hidden * sizeof(float));
}

static int64_t length_of(const struct walk *w, int64_t b)
{
    int64_t steps = w->state->shape.steps;
    const int32_t *lengths = w->state->given >> RNN_LENGTHS & 1 ? w->args->in[RNN_LENGTHS] : NULL;
    return lengths && lengths[b] < steps ? lengths[b] : steps;
}

static float *output_row(const struct walk *w, int64_t b, int64_t time)
{
    const struct rnn_shape *s = &w->state->shape;
    float *y = output(w, 0);
    int64_t row = s->batch_first ? (b * s->steps + time) * s->directions + w->direction
                                 : (time * s->directions + w->direction) * s->batch + b;
    return y ? y + row * s->hidden : NULL;
}

/* Collects the sequences of [first, last) that are still going on in lines[first ...]; those that
 * have ended keep their state, and their output at this moment is zero. */
static int64_t make_lines(const struct walk *w, int64_t step, int64_t first, int64_t last)
{
    const struct rnn_shape *s = &w->state->shape;
    const struct scratch *scratch = &w->scratch;
    int64_t hidden = s->hidden, width = s->gates * hidden, count = 0;
    const float *h = scratch->h[step % 2];
    const float *attention = w->state->kernel->attention ? w->args->in[RNN_ATTENTION] : NULL;
    float *next = scratch->h[(step + 1) % 2];
    for (int64_t b = first; b < last; b++) {
        int64_t length = length_of(w, b), time = w->backward ? length - 1 - step : step;
        if (step >= length) {
            float *y = output_row(w, b, step); /* moments past the end, in any order */
            memcpy(next + b * hidden, h + b * hidden, (size_t)hidden * sizeof(float));
            if (y)
                memset(y, 0, (size_t)hidden * sizeof(float));
            continue;
        }
        int64_t row = s->batch_first ? b * s->steps + time : time * s->batch + b;
        scratch->lines[first + count++] = (struct rnn_line){
            .x = scratch->projected + row * width,
            .h = h + b * hidden,
            .next = next + b * hidden,
            .c = scratch->c + b * hidden,
            .z = scratch->z + b * hidden,
            .y = output_row(w, b, time),
            .keep = attention ? 1 - attention[row] : 1,
        };
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
    w.scratch = lay_out(&state->shape, &state->projection, args->workspace);
    for (int d = 0; d < state->shape.directions; d++) {
        w.direction = d;
        w.backward = state->shape.backward || d == 1;
        project(&w);
        load_state(&w, RNN_H, w.scratch.h[0]);
        if (state->kernel->memory)
            load_state(&w, RNN_C, w.scratch.c);
        if (state->parts > 1)
            pool_run(args->pool, state->parts, run_part, &w);
        else
            run_steps(&w, 0, state->shape.batch, args->pool);
        store_state(&w, 1, w.scratch.h[state->shape.steps % 2]);
        if (state->kernel->memory)
            store_state(&w, 2, w.scratch.c);
    }
}
