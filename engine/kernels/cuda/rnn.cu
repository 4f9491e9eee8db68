/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM, GRU, AUGRU and RNN over whole sequences. x W' + bias of all steps is one product at the
 * head. Where the recurrent weights fit into shared memory one launch makes all steps
 * (lib/rnn_sequence.h). Else, and as a variant, a launch per step (two where the reset gate scales
 * h) adds h R' and computes the cell from the sums of all its gates. Launches in a stream are the
 * barrier between steps; captured, they cost about a microsecond each.
 *
 * R is packed as [H][gates H], so that the threads of a warp, 32 neighbouring units, read beside
 * each other (lib/skinny.h). */
#include "engine/kernels/cuda/lib/packed.h"
#include "engine/kernels/cuda/lib/rnn_packed.h"
#include "engine/kernels/cuda/lib/rnn_query.h"
#include "engine/kernels/cuda/lib/rnn_sequence.h"
#include "engine/kernels/cuda/lib/skinny.h"
#include "engine/kernels/cuda/lib/tile.h"

enum { GATES_MAX = 4, ROWS = SKINNY_ROWS, EACH = 4, SIDE = 64 };
/* How many gates a step sums, which tells the cell and its phase: the one of RNN is a candidate. */
enum { SUMS_CANDIDATE = 1, SUMS_GATES, SUMS_LINEAR, SUMS_LSTM };

/* ---- x W' + bias ---- */

template <class element>
static __device__ __forceinline__ void load_tiles(const struct rnn &k, unsigned depth,
                                                  struct tile_memory<EACH> &m)
{
    const unsigned side = SIDE;
    unsigned row0 = blockIdx.y * side, column0 = blockIdx.x * side;
    unsigned rows = k.steps * k.batch, width = k.gates * k.hidden;
    const element *x = (const element *)k.x;
    const element *w = (const element *)k.w + (size_t)blockIdx.z * k.input * width;
    for (unsigned t = threadIdx.x; t < side * TILE_DEPTH; t += BLOCK) {
        unsigned i = t / TILE_DEPTH, d = t % TILE_DEPTH;
        bool inside = row0 + i < rows && depth + d < k.input;
        m.a[d][i] = inside ? to_float(x[(size_t)(row0 + i) * k.input + depth + d]) : 0.0f;
    }
    for (unsigned t = threadIdx.x; t < side * TILE_DEPTH; t += BLOCK) {
        unsigned j = t % side, d = t / side;
        bool inside = column0 + j < width && depth + d < k.input;
        m.b[d][j] = inside ? to_float(w[(size_t)(depth + d) * width + column0 + j]) : 0.0f;
    }
}

template <class element>
__global__ void __launch_bounds__(BLOCK) rnn_project(const __grid_constant__ struct rnn k)
{
    KERNEL_BEGIN();
    __shared__ struct tile_memory<EACH> m;
    struct tile_sums<EACH> sums = {
    };
    for (unsigned depth = 0; depth < k.input; depth += TILE_DEPTH) {
        load_tiles<element>(k, depth, m);
        __syncthreads();
        tile_multiply<EACH>(m, sums);
        __syncthreads();
    }
    const unsigned side = SIDE;
    unsigned rows = k.steps * k.batch, width = k.gates * k.hidden;
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++) {
            unsigned row = blockIdx.y * side + threadIdx.x / TILE_SIDE + TILE_SIDE * i;
            unsigned column = blockIdx.x * side + threadIdx.x % TILE_SIDE + TILE_SIDE * j;
            if (row < rows && column < width)
                k.projected[((size_t)blockIdx.z * rows + row) * width + column] =
                    sums.v[i][j] + k.bias[blockIdx.z * width + column];
        }
}

/* ---- states at both ends ---- */

__global__ void __launch_bounds__(BLOCK) rnn_start(const __grid_constant__ struct rnn k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK, count = k.directions * k.batch * k.hidden;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < count; i += step) {
        unsigned from = rnn_outer_state(k, i);
        k.h[0][i] = k.initial_h ? group_as<1>(k.type, k.initial_h, from).v[0] : 0.0f;
        k.c[i] = k.initial_c ? group_as<1>(k.type, k.initial_c, from).v[0] : 0.0f;
    }
}

__global__ void __launch_bounds__(BLOCK) rnn_finish(const __grid_constant__ struct rnn k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK, count = k.directions * k.batch * k.hidden;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < count; i += step) {
        unsigned to = rnn_outer_state(k, i);
        if (k.last_h)
            group_store_as<1>(k.type, k.last_h, to, {{k.h[k.steps & 1][i]}});
        if (k.last_c)
            group_store_as<1>(k.type, k.last_c, to, {{k.c[i]}});
    }
}

/* ---- a step ---- */

/* The gates of a cell whose reset gate scales h, for its second phase. */
static __device__ __forceinline__ void reset_gates(const struct rnn &k, const struct rnn_line &l,
                                                   unsigned u, const float *sum, float h)
{
    k.update[l.state + u] = rnn_keep(k, l) * vf_sigmoid(l.x[u] + sum[0]);
    k.reset_h[l.state + u] = vf_sigmoid(l.x[k.hidden + u] + sum[1]) * h;
}

template <int count>
static __device__ __forceinline__ void finish_unit(const struct rnn &k, unsigned b, unsigned u,
                                                   const float *sum)
{
    struct rnn_line l = rnn_line_at(k, b, k.step, rnn_length_of(k, b));
    const float *x = l.x + u;
    float h = k.h[k.step & 1][l.state + u], next = h;
    if (count == SUMS_GATES) {
        reset_gates(k, l, u, sum, h);
        return;
    }
    if (l.active && count == SUMS_LSTM)
        next = rnn_lstm(x, k.hidden, sum, &k.c[l.state + u]);
    else if (l.active && count == SUMS_LINEAR)
        next = rnn_linear(x, k.hidden, sum, k.apart[blockIdx.z * k.hidden + u], h);
    else if (l.active && k.cell == CELL_PLAIN)
        next = tanhf(x[0] + sum[0]);
    else if (l.active)
        next = rnn_mix(k.update[l.state + u], x[2 * k.hidden] + sum[0], h);
    k.h[~k.step & 1][l.state + u] = next;
    if (k.y)
        group_store_as<1>(k.type, k.y, l.y + u, {{l.active ? next : 0.0f}});
}

/* Rows that are not there are the last one again. */
template <int count, int rows>
static __device__ __forceinline__ void step_of(const struct rnn &k, unsigned first)
{
    struct skinny_sums<count, rows> sums = {
    };
    struct skinny_place p = skinny_place_of(k.row_warps, rows);
    unsigned u = p.column, width = k.gates * k.hidden;
    bool scaled = count == SUMS_CANDIDATE && k.cell == CELL_GRU_RESET;
    const float *left[rows], *h = scaled ? k.reset_h : k.h[k.step & 1];
    for (int i = 0; i < rows; i++)
        left[i] = h + (size_t)(blockIdx.z * k.batch + min(p.row + i, k.batch - 1)) * k.hidden;
    size_t r = (size_t)blockIdx.z * k.hidden * width + first * k.hidden + u;
    if (u < k.hidden && p.row < k.batch)
        WITH_ELEMENT(k.type, 1,
                     (skinny_add<count, rows>(p, left, (const element *)k.r + r, width, k.hidden,
                                              k.hidden, sums)));
    if (!skinny_meet<count, rows>(p, sums) || u >= k.hidden)
        return;
#pragma unroll 1
    for (unsigned i = 0; i < rows && p.row + i < k.batch; i++) {
        float sum[GATES_MAX] = {};
        for (int g = 0; g < count; g++)
            sum[g] = sums.v[0][g];
        finish_unit<count>(k, p.row + i, u, sum);
        skinny_next_row(sums);
    }
}

template <int rows>
__global__ void __launch_bounds__(BLOCK) rnn_step_lstm(const __grid_constant__ struct rnn k)
{
    KERNEL_BEGIN();
    step_of<SUMS_LSTM, rows>(k, 0);
}

template <int rows>
__global__ void __launch_bounds__(BLOCK) rnn_step_linear(const __grid_constant__ struct rnn k)
{
    KERNEL_BEGIN();
    step_of<SUMS_LINEAR, rows>(k, 0);
}

template <int rows>
__global__ void __launch_bounds__(BLOCK) rnn_step_gates(const __grid_constant__ struct rnn k)
{
    KERNEL_BEGIN();
    step_of<SUMS_GATES, rows>(k, 0);
}

template <int rows>
__global__ void __launch_bounds__(BLOCK) rnn_step_candidate(const __grid_constant__ struct rnn k)
{
    KERNEL_BEGIN();
    step_of<SUMS_CANDIDATE, rows>(k, k.gates - 1);
}

/* ---- hooks ---- */

struct kernel_state {
    struct rnn k; /* pointers are left open, until prepare those to weights */
    const struct device *device;
    void *weights;
    size_t workspace;
    bool fits, whole; /* all steps can be, and are, in one launch */
    unsigned given, wanted;
    struct cuda_grid project, all; /* all: over the states of the batch */
};

/* Puts the parts of the workspace into k; returns how long it is. */
static size_t lay_out(struct rnn *k, char *memory)
{
    int64_t state = (int64_t)k->directions * k->batch * k->hidden;
    float **parts[] = {&k->h[0], &k->h[1], &k->c, &k->update, &k->reset_h};
    size_t at = 0;
    for (int i = 0; i < ARRAY_COUNT(parts); i++) {
        *parts[i] = (float *)(memory + at);
        at += padded_bytes(state, sizeof(float));
    }
    k->projected = (float *)(memory + at);
    return at + padded_bytes(state * k->gates * k->steps, sizeof(float));
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    struct rnn *k = &s->k;
    int64_t side = SIDE;
    TRY(rnn_supported(q, why));
    rnn_read(q, k);
    if (div_up(k->steps * (int64_t)k->batch, side) > GRID_YZ ||
        div_up(k->batch, (int64_t)ROWS * SKINNY_WARPS) > GRID_YZ)
        return REFUSE(why, "more rows than a grid has");
    k->row_warps = skinny_row_warps(k->batch, k->batch < ROWS ? 1 : (unsigned)ROWS);
    sequence_plan(k);
    s->device = q->device;
    s->fits = sequence_fits(k, q);
    s->whole = variant == 0 && s->fits;
    s->workspace = lay_out(k, NULL);
    s->given = inputs_given(q);
    s->wanted = outputs_wanted(q);
    s->project = cuda_size((unsigned)div_up((int64_t)k->gates * k->hidden, side),
                           (unsigned)div_up((int64_t)k->steps * k->batch, side), k->directions);
    s->all = grid_for(q, (int64_t)k->directions * k->batch * k->hidden);
    return STATUS_OK;
}

/* The first one makes all steps in one launch, where it can. */
static int variants(const struct kernel_state *state)
{
    return state->fits ? 2 : 1;
}

static void describe(const struct kernel_state *state, char *text, size_t size)
{
    snprintf(text, size, state->whole ? "all steps in one launch" : "a launch per step");
}

static size_t workspace(const struct kernel_state *state)
{
    return state->workspace;
}

static void release(struct kernel_state *state)
{
    if (state->weights)
        state->device->kind->free(state->device, state->weights);
}

/* ---- all steps in one launch ---- */

static const void *sequence_kernel(int cell)
{
    switch (cell) {
    case CELL_LSTM:
        return KERNEL_ADDRESS(rnn_sequence<CELL_LSTM, 4>);
    case CELL_GRU_LINEAR:
        return KERNEL_ADDRESS(rnn_sequence<CELL_GRU_LINEAR, 3>);
    case CELL_GRU_RESET:
        return KERNEL_ADDRESS(rnn_sequence<CELL_GRU_RESET, 3>);
    default:
        return KERNEL_ADDRESS(rnn_sequence<CELL_PLAIN, 1>);
    }
}

static void launch_sequence(struct rnn *k, const struct kernel_args *args)
{
    struct cuda_launch launch = {
        "rnn_sequence",
        sequence_kernel(k->cell),
        cuda_size((unsigned)div_up(k->batch, SEQUENCE_ROWS), 1, k->directions),
        cuda_size(k->band / SEQUENCE_UNITS * WARP),
        sequence_bytes(k, element_bytes((enum dtype)k->type)),
        k,
        true};
    cuda_launch(&launch, args);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    struct rnn *k = &s->k;
    size_t size = (size_t)element_bytes(q->in[X].dtype);
    struct rnn_parts p = rnn_parts_of(k, size);
    *packed_bytes = p.count * sizeof(float);
    TRY(upload_packed(q->device, rnn_pack(q, k, &p), *packed_bytes, &s->weights, err));
    k->bias = (const float *)s->weights;
    k->apart = k->bias + p.bias;
    k->w = k->apart + p.apart;
    k->r = (const char *)k->w + p.w * size;
    return s->whole ? cuda_allow_shared(s->device, sequence_kernel(k->cell), err) : STATUS_OK;
}

/* ---- a launch per step ---- */

/* As many rows per block as the batch fills. */
#define LAUNCH_STEP(step)                                                                          \
    do {                                                                                           \
        if (many)                                                                                  \
            LAUNCH(step<ROWS>, grid, block, 0, k, args);                                           \
        else                                                                                       \
            LAUNCH(step<1>, grid, block, 0, k, args);                                              \
    } while (0)

static void launch_step(const struct rnn *k, const struct kernel_args *args)
{
    bool many = k->batch >= ROWS;
    unsigned rows = many ? (unsigned)ROWS : 1;
    struct cuda_grid grid = skinny_grid(k->hidden, k->batch, rows, k->directions);
    struct cuda_grid block = cuda_size(BLOCK);
    if (k->cell == CELL_LSTM)
        LAUNCH_STEP(rnn_step_lstm);
    else if (k->cell == CELL_GRU_LINEAR)
        LAUNCH_STEP(rnn_step_linear);
    else if (k->cell == CELL_GRU_RESET)
        LAUNCH_STEP(rnn_step_gates);
    if (k->cell == CELL_GRU_RESET || k->cell == CELL_PLAIN)
        LAUNCH_STEP(rnn_step_candidate);
}

static void launch_steps(struct rnn *k, struct cuda_grid all, const struct kernel_args *args)
{
    LAUNCH(rnn_start, all, cuda_size(BLOCK), 0, k, args);
    for (k->step = 0; k->step < k->steps; k->step++)
        launch_step(k, args);
    if (k->last_h || k->last_c)
        LAUNCH(rnn_finish, all, cuda_size(BLOCK), 0, k, args);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct rnn k = state->k;
    lay_out(&k, (char *)args->workspace);
    rnn_resolve(&k, args, state->given, state->wanted);
    LAUNCH_FLOATS(k.type, rnn_project<element>, state->project, cuda_size(BLOCK), 0, &k, args);
    if (state->whole)
        launch_sequence(&k, args);
    else
        launch_steps(&k, state->all, args);
}

static const char *const ops[] = {"LSTM", "GRU", "AUGRU", "RNN", NULL};

CUDA_KERNEL(rnn) = {CUDA_NAME(rnn),
                    .ops = ops,
                    .packs = 1u << W | 1u << R | 1u << BIAS,
                    CUDA_PLAN,
                    CUDA_HOOK(variants),
                    CUDA_HOOK(describe),
                    CUDA_HOOK(workspace),
                    CUDA_HOOK(prepare),
                    CUDA_HOOK(launch),
                    CUDA_HOOK(release),
                    .general = true};
