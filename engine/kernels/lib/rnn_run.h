/* SPDX-License-Identifier: Apache-2.0
 *
 * What the LSTM and GRU kernels share. x W' + bias of all steps is one matrix product at the head;
 * then the steps go by, and a cell turns h R' and the projected x into the new state while the sums
 * of all its gates are in registers. R is packed by blocks of VL hidden units, [H][gates][VL], so
 * that one pass over a block's panel gives all gates of these units.
 *
 * bf16: where AVX512-BF16 is there, or few sequences make memory bandwidth the limit, weights are
 * words of two elements along k (lib/gemm_tile.h), else they become floats when they are packed.
 * All the rest is in f32; states are rounded where results or instructions take bf16.
 *
 * Long batches with small weights are cut into parts that run through all steps by themselves;
 * otherwise the blocks of units are shared out in every step.
 */
#ifndef ENGINE_KERNELS_LIB_RNN_RUN_H
#define ENGINE_KERNELS_LIB_RNN_RUN_H

#include "engine/graph/kernel.h"
#include "engine/kernels/lib/gemm.h"
#include "engine/kernels/lib/gemm_body.h"
#include "engine/kernels/lib/simd_floats.h"
#include "engine/ops/lib/rnn.h"

enum { RNN_PHASES = 2, RNN_DIRECTIONS = 2 };

/* Which gates of R a phase of the cell multiplies. */
struct rnn_phase_gates {
    int first, count;
};

struct rnn_step_job;
/* Units of one block for the active rows [first, last) of the step. */
typedef void rnn_phase_fn(const struct rnn_step_job *step, int64_t block, int64_t first,
                          int64_t last);

struct rnn_kernel {
    int gates;
    int phases;
    struct rnn_phase_gates phase_gates[RNN_PHASES];
    rnn_phase_fn *phase[RNN_PHASES];
    bool memory;                    /* keeps c */
    bool attention;                 /* a weight per step and sequence: rnn_line.keep */
    bool delicate;                  /* rounding h would cost too much: no gate damps it */
    bool apart;                     /* the last gate's recurrent bias is not added to x W' */
    const char *const *activations; /* the only ones, NULL-terminated */
};

/* Packed weights of one direction. */
struct rnn_weights {
    float *w, *bias;      /* of the product x W'; bias padded to its panels */
    float *r[RNN_PHASES]; /* [block][words of H][gates of the phase][VL] */
    float *apart;         /* recurrent bias of the last gate, [blocks * VL] */
};

struct kernel_state {
    const struct rnn_kernel *kernel;
    struct rnn_shape shape;
    bool bf16;                   /* all floats outside */
    enum gemm_math math;         /* of R. GEMM_BF16: floats times bf16 */
    int64_t words;               /* of H: floats, or pairs of bf16 */
    int64_t row;                 /* floats from one state to the next: whole words */
    struct gemm_plan projection; /* of one direction, all steps */
    int64_t blocks;              /* of VL hidden units */
    int64_t parts;               /* of the batch that run by themselves */
    size_t workspace;            /* but for weights */
    unsigned given, wanted;      /* bit k: there is input k; output k is asked for */
    bool changing;               /* weights come with each launch */
    char *packed;                /* all weights; NULL: they are changing, and in the workspace */
    struct rnn_weights weights[RNN_DIRECTIONS];
};

/* One sequence that has not ended, at one step. */
struct rnn_line {
    const float *x; /* x W' + bias, [gates][H] */
    const float *h; /* [H]: state before */
    float *next;    /* [H]: state after */
    float *c;       /* [H]: LSTM: cell; GRU: reset h */
    float *z;       /* [H]: GRU: update gate between its phases */
    void *y;        /* [H]: output, floats of the node's type; NULL: not wanted */
    float keep;     /* AUGRU: 1 - attention scales the update gate; 1 otherwise */
    /* GEMM_BF16_DOT: h, next and GRU's c rounded, with zeros up to a word's end */
    uint16_t *narrow_h, *narrow_next, *narrow_c;
};

struct rnn_step_job {
    const struct kernel_state *state;
    const struct rnn_weights *weights;
    const struct rnn_line *lines;
    int phase;
    int64_t count, parts; /* active lines; into how many parts they are cut */
};

/* `math`, `rows` and `vectors` are constants here and below: sums += rows of left
 * times a panel [count][vectors][VL]. */
SIMD_INLINE void rnn_multiply(enum gemm_math math, const void *const *left, const float *panel,
                              int64_t count, vf (*sums)[4], int rows, int vectors)
{
    int halves = math == GEMM_BF16 ? 2 : 1;
    for (int64_t k = 0; k < count; k++, panel += vectors * VL)
        for (int half = 0; half < halves; half++) {
            vf b[4];
            for (int v = 0; v < vectors; v++)
                b[v] = gemm_part(math, vf_load(panel + v * VL), half, true);
            for (int r = 0; r < rows; r++) {
                const float *word = (const float *)left[r] + k * halves + half;
                vf a = vf_set1(gemm_word(math, word));
                for (int v = 0; v < vectors; v++)
                    sums[r][v] = gemm_dot(math, sums[r][v], a, b[v]);
            }
        }
}

/* What R multiplies: the state before. */
SIMD_INLINE const void *rnn_left(enum gemm_math math, const struct rnn_line *line)
{
    return math == GEMM_BF16_DOT ? (const void *)line->narrow_h : line->h;
}

SIMD_INLINE void rnn_store_state(enum gemm_math math, const struct rnn_step_job *step,
                                 const struct rnn_line *line, int64_t unit, vm lanes, vf state)
{
    vf_store_m(line->next + unit, lanes, state);
    if (math == GEMM_BF16_DOT)
        vf_store_bf16_m(line->narrow_next + unit, lanes, state);
    if (line->y && !step->state->bf16)
        vf_write_m(line->y, unit, lanes, state, false);
    else if (line->y && unit + VL <= step->state->shape.hidden)
        vf_write(line->y, unit, state, true);
    else if (line->y)
        vf_write_m(line->y, unit, lanes, state, true); /* slow with AVX2 */
}

/* Defines a rnn_phase_fn: for each math a copy of `body`, which takes it as the last argument;
 * apart, for a function that holds several sets up the stack for the largest in each step. */
#define RNN_PHASE_OF(name, body, math)                                                             \
    static __attribute__((noinline)) void name(const struct rnn_step_job *step, int64_t block,     \
                                               int64_t first, int64_t last)                        \
    {                                                                                              \
        body(step, block, first, last, math);                                                      \
    }
#define RNN_PHASE(name, body)                                                                      \
    RNN_PHASE_OF(name##_floats, body, GEMM_F32)                                                    \
    RNN_PHASE_OF(name##_halves, body, GEMM_BF16)                                                   \
    RNN_PHASE_OF(name##_dots, body, VL == 16 ? GEMM_BF16_DOT : GEMM_BF16)                          \
    static void name(const struct rnn_step_job *step, int64_t block, int64_t first, int64_t last)  \
    {                                                                                              \
        if (step->state->math == GEMM_F32)                                                         \
            name##_floats(step, block, first, last);                                               \
        else if (step->state->math == GEMM_BF16_DOT)                                               \
            name##_dots(step, block, first, last);                                                 \
        else                                                                                       \
            name##_halves(step, block, first, last);                                               \
    }

#define rnn_plan SIMD_FN(rnn_plan)
enum status rnn_plan(const struct kernel_query *q, const struct rnn_kernel *kernel, int variant,
                     struct kernel_state *state, struct error *why);
#define rnn_variants SIMD_FN(rnn_variants)
int rnn_variants(const struct kernel_state *state);
#define rnn_workspace SIMD_FN(rnn_workspace)
size_t rnn_workspace(const struct kernel_state *state);
#define rnn_prepare SIMD_FN(rnn_prepare)
enum status rnn_prepare(const struct kernel_query *q, struct kernel_state *state,
                        size_t *packed_bytes, struct error *err);
#define rnn_pack SIMD_FN(rnn_pack)
void rnn_pack(struct kernel_state *state, const struct kernel_args *args);
#define rnn_launch SIMD_FN(rnn_launch)
void rnn_launch(const struct kernel_state *state, const struct kernel_args *args);
#define rnn_release SIMD_FN(rnn_release)
void rnn_release(struct kernel_state *state);

/* All hooks but plan. */
#define RNN_HOOKS                                                                                  \
    .packs = 1u << RNN_W | 1u << RNN_R | 1u << RNN_BIAS, .variants = rnn_variants,                 \
    .state_size = sizeof(struct kernel_state), .workspace = rnn_workspace, .prepare = rnn_prepare, \
    .pack = rnn_pack, .launch = rnn_launch, .release = rnn_release

#endif
