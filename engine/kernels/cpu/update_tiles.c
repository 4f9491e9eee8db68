/* SPDX-License-Identifier: Apache-2.0
 *
 * Every optimiser, over all its weights at once (lib/pieces.h): what one vector of elements becomes
 * is written once per optimiser, in the letters of its operator's file. Memory is what counts: each
 * tensor is read once and written once. LARS and LAMB need norms of whole weights first, whose sums
 * are taken tile by tile and added up in the order of the tiles, so that any number of threads gets
 * the same bits. Results may lie in the memory of what they follow.
 */
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/kernels/lib/pieces.h"
#include "engine/kernels/lib/simd.h"
#include "engine/ops/family/update.h"

/* What holds for a step, as the vectors need it. */
struct numbers {
    float scale, rate, decay;
    float p[UPDATE_PARAMETERS], rest[UPDATE_PARAMETERS]; /* parameters, and 1 minus them */
    float first, second;                                 /* struct update_step */
    float per_rate;                                      /* 1 / rate */
    float trust;
};

/* Moves vectors of a weight and its slots on. What it returns counts in passes that sum alone. */
typedef vf expression(const struct numbers *c, vf gradient, vf *weight, vf *slot);

/* What one pass over the elements does beside reading the weight. */
enum {
    PASS_GRADIENT = 1, /* reads it */
    PASS_READ_OUT = 2, /* slots as an earlier pass left them */
    PASS_WEIGHT = 4,   /* writes the weight */
    PASS_SLOTS = 8,    /* writes the slots */
    PASS_SUM = 16,     /* sums squares of the weight and of what the expression returns */
    PASS_WHOLE = PASS_GRADIENT | PASS_WEIGHT | PASS_SLOTS,
};

struct job;
typedef void tile_fn(void *job, int64_t tile, int thread);

struct optimiser {
    const struct op *op;
    tile_fn *norms; /* the pass that sums; NULL: no norms are needed */
    tile_fn *update;
    double (*trust)(const struct update_step *s, double weight_norm, double other_norm);
};

struct kernel_state {
    const struct optimiser *optimiser;
    struct update_step step;
    const struct op *op;
    struct pieces pieces;
    int width;
    int64_t parts; /* whose sums lie in the workspace, and the trusts after them */
};

struct sum {
    double weight, other;
};

struct job {
    const struct kernel_state *state;
    const struct kernel_args *args;
    struct numbers numbers;
    struct sum *sums; /* per part */
    float *trust;     /* per weight; NULL: 1 */
};

/* ---- one part of a weight ---- */

struct place {
    const float *weight, *gradient, *slot[UPDATE_SLOTS_MAX];
    float *weight_out, *slot_out[UPDATE_SLOTS_MAX];
};

static struct place place_of(const struct job *job, int tensor, int slots, int pass)
{
    const void *const *in = job->args->in + UPDATE_WEIGHTS + tensor * job->state->width;
    void *const *out = job->args->out + tensor * (job->state->width - 1);
    struct place p = {.weight = in[0], .gradient = in[1], .weight_out = out[0]};
    for (int k = 0; k < slots; k++) {
        p.slot_out[k] = out[1 + k];
        p.slot[k] = pass & PASS_READ_OUT ? out[1 + k] : in[2 + k];
    }
    return p;
}

SIMD_INLINE vf load(const float *p, bool whole, vm lanes)
{
    return whole ? vf_load(p) : vf_load_m(p, lanes);
}

SIMD_INLINE void store(float *p, bool whole, vm lanes, vf v)
{
    if (whole)
        vf_store(p, v);
    else
        vf_store_m(p, lanes, v);
}

/* Elements from i on: a whole vector, or as many as lanes has. */
SIMD_INLINE void vector(const struct numbers *c, const struct place *p, int64_t i, bool whole,
                        vm lanes, expression *each, int slots, int pass, vf *sum)
{
    vf weight = load(p->weight + i, whole, lanes), slot[UPDATE_SLOTS_MAX], gradient = vf_zero();
    if (pass & PASS_GRADIENT)
        gradient = vf_mul(load(p->gradient + i, whole, lanes), vf_set1(c->scale));
    for (int k = 0; k < slots; k++)
        slot[k] = load(p->slot[k] + i, whole, lanes);
    vf before = weight, other = each(c, gradient, &weight, slot);
    if (pass & PASS_WEIGHT)
        store(p->weight_out + i, whole, lanes, weight);
    for (int k = 0; k < slots && pass & PASS_SLOTS; k++)
        store(p->slot_out[k] + i, whole, lanes, slot[k]);
    if (pass & PASS_SUM) {
        other = whole ? other : vf_select(lanes, other, vf_zero());
        sum[0] = vf_fma(before, before, sum[0]);
        sum[1] = vf_fma(other, other, sum[1]);
    }
}

SIMD_INLINE void run_pass(const struct job *job, int64_t tile, expression *each, int slots,
                          int pass)
{
    enum { BLOCK = 64 * VL }; /* summed in floats, and blocks in double */
    const struct pieces *pieces = &job->state->pieces;
    struct part part = part_begin(pieces, tile);
    while (part_next(pieces, tile, &part)) {
        struct numbers c = job->numbers;
        struct place p = place_of(job, part.tensor, slots, pass);
        struct sum all = {0, 0};
        if (job->trust && pass & PASS_WEIGHT)
            c.trust = job->trust[part.tensor];
        for (int64_t first = part.from; first < part.to; first += BLOCK) {
            int64_t i = first, end = first + BLOCK < part.to ? first + BLOCK : part.to;
            vf sum[2] = {vf_zero(), vf_zero()};
            for (; i + VL <= end; i += VL)
                vector(&c, &p, i, true, vm_first(VL), each, slots, pass, sum);
            if (i < end)
                vector(&c, &p, i, false, vm_first(end - i), each, slots, pass, sum);
            if (pass & PASS_SUM) {
                all.weight += (double)vf_sum(sum[0]);
                all.other += (double)vf_sum(sum[1]);
            }
        }
        if (pass & PASS_SUM)
            job->sums[part.number] = all;
    }
}

/* ---- optimisers ---- */

SIMD_INLINE vf decayed(const struct numbers *c, vf gradient, vf weight)
{
    return vf_fma(vf_set1(c->decay), weight, gradient);
}

/* weight -= rate step */
SIMD_INLINE void step_by(const struct numbers *c, vf *weight, vf step)
{
    *weight = vf_fnma(vf_set1(c->rate), step, *weight);
}

/* The weight is the sum, the rate what is kept of it. */
SIMD_INLINE vf accumulate(const struct numbers *c, vf gradient, vf *weight, vf *slot)
{
    (void)slot;
    *weight = vf_fma(vf_set1(c->rate), *weight, gradient);
    return gradient;
}

SIMD_INLINE vf sgd(const struct numbers *c, vf gradient, vf *weight, vf *slot)
{
    (void)slot;
    step_by(c, weight, decayed(c, gradient, *weight));
    return gradient;
}

SIMD_INLINE vf momentum(const struct numbers *c, vf gradient, vf *weight, vf *slot)
{
    slot[0] = vf_fma(vf_set1(c->p[UPDATE_MOMENTUM]), slot[0], decayed(c, gradient, *weight));
    step_by(c, weight, slot[0]);
    return gradient;
}

SIMD_INLINE vf nesterov(const struct numbers *c, vf gradient, vf *weight, vf *slot)
{
    vf m = vf_set1(c->p[UPDATE_MOMENTUM]), d = decayed(c, gradient, *weight);
    slot[0] = vf_fma(m, slot[0], d);
    step_by(c, weight, vf_fma(m, slot[0], d));
    return gradient;
}

/* What the moments ask for as they are. */
SIMD_INLINE vf adam_step(const struct numbers *c, const vf *slot)
{
    vf root = vf_sqrt(vf_mul(vf_set1(c->second), slot[1]));
    vf divisor = vf_add(root, vf_set1(c->p[ADAM_EPSILON]));
    return vf_div(vf_mul(vf_set1(c->first), slot[0]), divisor);
}

SIMD_INLINE vf adam_moved(const struct numbers *c, vf gradient, vf *slot)
{
    vf beta1 = vf_set1(c->p[ADAM_BETA1]), beta2 = vf_set1(c->p[ADAM_BETA2]);
    vf rest1 = vf_set1(c->rest[ADAM_BETA1]), rest2 = vf_set1(c->rest[ADAM_BETA2]);
    slot[0] = vf_fma(beta1, slot[0], vf_mul(rest1, gradient));
    slot[1] = vf_fma(beta2, slot[1], vf_mul(vf_mul(rest2, gradient), gradient));
    return adam_step(c, slot);
}

SIMD_INLINE vf adam(const struct numbers *c, vf gradient, vf *weight, vf *slot)
{
    step_by(c, weight, adam_moved(c, decayed(c, gradient, *weight), slot));
    return gradient;
}

SIMD_INLINE vf adamw(const struct numbers *c, vf gradient, vf *weight, vf *slot)
{
    step_by(c, weight, decayed(c, adam_moved(c, gradient, slot), *weight));
    return gradient;
}

SIMD_INLINE vf adagrad(const struct numbers *c, vf gradient, vf *weight, vf *slot)
{
    vf d = decayed(c, gradient, *weight);
    slot[0] = vf_fma(d, d, slot[0]);
    vf divisor = vf_add(vf_sqrt(slot[0]), vf_set1(c->p[ADAGRAD_EPSILON]));
    step_by(c, weight, vf_div(vf_mul(vf_set1(c->first), d), divisor));
    return gradient;
}

SIMD_INLINE vf ftrl(const struct numbers *c, vf gradient, vf *weight, vf *slot)
{
    vf l1 = vf_set1(c->p[FTRL_L1]), per_rate = vf_set1(c->per_rate), before = vf_sqrt(slot[0]);
    if (c->rate == 0) /* all stays as it is */
        return gradient;
    slot[0] = vf_fma(gradient, gradient, slot[0]);
    vf after = vf_sqrt(slot[0]), grown = vf_mul(vf_sub(after, before), per_rate);
    vf z = vf_add(slot[1], vf_fnma(grown, *weight, gradient));
    slot[1] = z;
    vf excess = vf_sub(z, vf_max(vf_neg(l1), vf_min(z, l1))); /* beyond [-l1, l1] */
    vf moved = vf_div(vf_neg(excess), vf_fma(after, per_rate, vf_set1(c->decay)));
    *weight = vf_select(vf_lt(l1, vf_abs(z)), moved, vf_zero());
    return gradient;
}

SIMD_INLINE vf rmsprop(const struct numbers *c, vf gradient, vf *weight, vf *slot)
{
    vf rho = vf_set1(c->p[RMS_RHO]), rest = vf_set1(c->rest[RMS_RHO]);
    vf epsilon = vf_set1(c->p[RMS_EPSILON]), m = vf_set1(c->p[RMS_MOMENTUM]);
    vf d = decayed(c, gradient, *weight);
    slot[0] = vf_fma(rho, slot[0], vf_mul(vf_mul(rest, d), d));
    if (c->p[RMS_TENSORFLOW] != 0) {
        vf step = vf_div(vf_mul(vf_set1(c->rate), d), vf_sqrt(vf_add(slot[0], epsilon)));
        slot[1] = vf_fma(m, slot[1], step);
        *weight = vf_sub(*weight, slot[1]);
        return gradient;
    }
    slot[1] = vf_fma(m, slot[1], vf_div(d, vf_add(vf_sqrt(slot[0]), epsilon)));
    step_by(c, weight, slot[1]);
    return gradient;
}

SIMD_INLINE vf of_gradient(const struct numbers *c, vf gradient, vf *weight, vf *slot)
{
    (void)c;
    (void)weight;
    (void)slot;
    return gradient;
}

SIMD_INLINE vf lars(const struct numbers *c, vf gradient, vf *weight, vf *slot)
{
    vf rate = vf_set1(c->rate * c->trust);
    slot[0] =
        vf_fma(vf_set1(c->p[LARS_MOMENTUM]), slot[0], vf_mul(rate, decayed(c, gradient, *weight)));
    *weight = vf_sub(*weight, slot[0]);
    return gradient;
}

SIMD_INLINE vf lamb_moments(const struct numbers *c, vf gradient, vf *weight, vf *slot)
{
    return decayed(c, adam_moved(c, gradient, slot), *weight);
}

SIMD_INLINE vf lamb(const struct numbers *c, vf gradient, vf *weight, vf *slot)
{
    vf d = decayed(c, adam_step(c, slot), *weight);
    *weight = vf_fnma(vf_set1(c->rate * c->trust), d, *weight);
    return gradient;
}

#define PASS(name, each, slots, pass)                                                              \
    static void name(void *job, int64_t tile, int thread)                                          \
    {                                                                                              \
        (void)thread;                                                                              \
        run_pass(job, tile, each, slots, pass);                                                    \
    }
PASS(accumulate_tile, accumulate, 0, PASS_WHOLE)
PASS(sgd_tile, sgd, 0, PASS_WHOLE)
PASS(momentum_tile, momentum, 1, PASS_WHOLE)
PASS(nesterov_tile, nesterov, 1, PASS_WHOLE)
PASS(adam_tile, adam, 2, PASS_WHOLE)
PASS(adamw_tile, adamw, 2, PASS_WHOLE)
PASS(adagrad_tile, adagrad, 1, PASS_WHOLE)
PASS(ftrl_tile, ftrl, 2, PASS_WHOLE)
PASS(rmsprop_tile, rmsprop, 2, PASS_WHOLE)
PASS(lars_norms, of_gradient, 0, PASS_GRADIENT | PASS_SUM)
PASS(lars_tile, lars, 1, PASS_WHOLE)
PASS(lamb_norms, lamb_moments, 2, PASS_GRADIENT | PASS_SLOTS | PASS_SUM)
PASS(lamb_tile, lamb, 2, PASS_READ_OUT | PASS_WEIGHT)

static const struct optimiser optimisers[] = {
    {&op_accumulate, NULL, accumulate_tile, NULL},
    {&op_sgd, NULL, sgd_tile, NULL},
    {&op_momentum, NULL, momentum_tile, NULL},
    {&op_nesterov, NULL, nesterov_tile, NULL},
    {&op_adam, NULL, adam_tile, NULL},
    {&op_adam_w, NULL, adamw_tile, NULL},
    {&op_adagrad, NULL, adagrad_tile, NULL},
    {&op_ftrl, NULL, ftrl_tile, NULL},
    {&op_rms_prop, NULL, rmsprop_tile, NULL},
    {&op_lars, lars_norms, lars_tile, lars_trust},
    {&op_lamb, lamb_norms, lamb_tile, lamb_trust},
};

/* ---- the kernel ---- */

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    s->op = q->node->op;
    for (int k = 0; k < ARRAY_COUNT(optimisers); k++)
        if (optimisers[k].op == s->op)
            s->optimiser = &optimisers[k];
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    for (int k = UPDATE_WEIGHTS; k < q->in_count; k++)
        if (q->in[k].dtype != DTYPE_F32 || !desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain f32", k);
    for (int k = 0; k < q->out_count; k++)
        if (q->out[k].dtype != DTYPE_F32 || !desc_is_plain(&q->out[k]))
            return UNSUPPORTED(why, "output %d is not wanted or not plain f32", k);
    s->step = update_step_of(q->node);
    s->width = update_width(s->op);
    s->parts = pieces_parts(q, UPDATE_WEIGHTS, s->width);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return s->optimiser->norms ? (size_t)s->parts * (sizeof(struct sum) + sizeof(float)) : 0;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s, size_t *bytes,
                           struct error *err)
{
    return pieces_make(&s->pieces, q, UPDATE_WEIGHTS, s->width, bytes, err);
}

static void release(struct kernel_state *s)
{
    pieces_release(&s->pieces);
}

static struct numbers numbers_of(const struct update_step *s)
{
    struct numbers n = {.scale = (float)s->scale,
                        .rate = (float)s->rate,
                        .per_rate = (float)(1 / s->rate),
                        .decay = (float)s->parameter[UPDATE_DECAY],
                        .first = (float)s->first,
                        .second = (float)s->second,
                        .trust = 1};
    for (int k = 0; k < UPDATE_PARAMETERS; k++) {
        n.p[k] = (float)s->parameter[k];
        n.rest[k] = (float)(1 - s->parameter[k]);
    }
    return n;
}

static void find_trusts(struct job *job)
{
    const struct kernel_state *s = job->state;
    pool_run(job->args->pool, s->pieces.tiles, s->optimiser->norms, job);
    for (int k = 0; k < s->pieces.count; k++) {
        struct sum all = {0, 0};
        const struct sum *part = job->sums + part_first(&s->pieces, k);
        for (int64_t i = 0; i < part_run(&s->pieces, k); i++) {
            all.weight += part[i].weight;
            all.other += part[i].other;
        }
        job->trust[k] = (float)s->optimiser->trust(&s->step, sqrt(all.weight), sqrt(all.other));
    }
}

/* No step is made. */
static void copy_all(const struct kernel_state *s, const struct kernel_args *args)
{
    int outs = s->pieces.count * (s->width - 1);
    for (int k = 0; k < outs; k++) {
        const void *from = args->in[update_follows(s->op, k)];
        size_t elements = (size_t)s->pieces.tensor[k / (s->width - 1)].size;
        if (from != args->out[k])
            memcpy(args->out[k], from, elements * sizeof(float));
    }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    const float *rate = args->in[UPDATE_RATE], *scale = args->in[UPDATE_SCALE];
    const int64_t *number = args->in[UPDATE_STEP];
    struct update_step step = s->step;
    if (*number < 1) {
        copy_all(s, args);
        return;
    }
    update_step_begin(&step, s->op, (double)*rate, scale ? (double)*scale : 1, *number);
    struct job job = {.state = s, .args = args, .numbers = numbers_of(&step)};
    if (s->optimiser->norms) {
        job.sums = args->workspace;
        job.trust = (float *)(void *)(job.sums + s->parts);
        find_trusts(&job);
    }
    pool_run(args->pool, s->pieces.tiles, s->optimiser->update, &job);
}

REGISTER_KERNEL(update_tiles) = {
    NATIVE(update_tiles),
    .ops = OPS("Accumulate", "Adagrad", "Adam", "AdamW", "Ftrl", "Lamb", "Lars", "Momentum",
               "Nesterov", "RMSProp", "Sgd"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .prepare = prepare,
    .launch = launch,
    .release = release,
};
