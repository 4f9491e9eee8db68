/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/model/verify_training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/numbers/random.h"
#include "base/system/hash.h"
#include "base/system/pool.h"
#include "engine/compile/compile.h"
#include "engine/graph/cost.h"
#include "engine/ops/family/narrow.h"
#include "engine/reference/reference.h"
#include "engine/run/provider.h"
#include "engine/train/recompute.h"
#include "harness/model/admission.h"
#include "workloads/training.h"

#define BOUND_USUAL    1e-4
#define GRADIENT_FLOOR 0.1 /* of the largest gradient's norm */
#define DISTURBANCES   8

/* The reference of resnet50 at batch 1 makes 40 of its GFLOPs a second on two CPUs. */
static const double most_flops = 4e12;

/* A step and what the reference makes of it. Outputs of the graph: those of the loss, a gradient
 * per weight, and what states become, which is not compared: the first step of Adam, say, moves
 * each weight by the sign of its gradient, and zero has either. So the reference computes another
 * graph, whose outputs are the compared ones alone. */
struct step {
    struct graph *graph, *compared;
    struct pool *pool;
    struct exe *exe;                              /* it is gone when the reference runs */
    void **got;                                   /* what it has left in the compared outputs */
    struct ref_tensor *inputs, *expected, *other; /* of `compared` */
};

static bool is_gradient(const struct graph *g, int output)
{
    return strncmp(g->values[g->outputs[output]].name, "gradient.", strlen("gradient.")) == 0;
}

static bool is_after(const struct graph *g, int v)
{
    for (int s = 0; s < g->state_count; s++)
        if (g->states[s].after == v)
            return true;
    return false;
}

static double norm(const struct ref_tensor *t)
{
    double sum = 0;
    for (int64_t k = 0; t->f && k < t->count; k++)
        sum += t->f[k] * t->f[k];
    return sqrt(sum);
}

static double distance(const struct ref_tensor *a, const struct ref_tensor *b)
{
    double sum = 0;
    for (int64_t k = 0; k < b->count; k++) {
        double x = ref_get(a, k) - ref_get(b, k);
        sum += x * x;
    }
    return isfinite(sum) ? sqrt(sum) : (double)INFINITY;
}

static double largest_gradient(const struct step *s)
{
    double largest = 0;
    for (int k = 0; k < s->compared->output_count; k++)
        if (is_gradient(s->compared, k))
            largest = fmax(largest, norm(&s->expected[k]));
    return largest;
}

static double error_of(const struct step *s, int output, const struct ref_tensor *got,
                       double largest)
{
    double scale = norm(&s->expected[output]), apart = distance(got, &s->expected[output]);
    if (is_gradient(s->compared, output))
        scale = fmax(scale, GRADIENT_FLOOR * largest);
    return apart == 0 ? 0 : scale > 0 ? apart / scale : (double)INFINITY;
}

/* ---- how far f32 may be ---- */

/* Whether a node computes anything. */
static int computes(const struct graph *g, const struct node *node, enum precision precision)
{
    (void)g;
    (void)precision;
    return narrow_class_of(node->op) != NARROW_MOVE;
}

/* Rounding to f32 changes a number by up to 2^-24 of itself. */
static void disturb(struct ref_tensor *t, double roundings, uint64_t seed)
{
    for (int64_t k = 0; t->f && k < t->count; k++)
        t->f[k] *= 1 + 0x1p-24 * roundings * (2 * random_uniform(seed, (uint64_t)k) - 1);
}

static void release_all(struct ref_tensor *tensors, int count)
{
    for (int k = 0; tensors && k < count; k++)
        ref_release(&tensors[k]);
}

/* The largest error of an output of the reference that is given disturbed inputs. */
static enum status disturbed_error(struct step *s, int turn, double *worst, struct error *err)
{
    const struct graph *g = s->compared;
    double largest = largest_gradient(s);
    TRY(reference_inputs(g, s->inputs, s->pool, err));
    for (int k = 0; k < g->input_count; k++)
        disturb(&s->inputs[k], sqrt(1 + verify_depth(g, computes, PRECISION_F32)),
                hash_fnv1a(g->values[g->inputs[k]].name) + (uint64_t)turn);
    TRY(reference_run(g, s->inputs, s->other, s->pool, err));
    for (int k = 0; k < g->output_count; k++)
        *worst = fmax(*worst, error_of(s, k, &s->other[k], largest));
    release_all(s->inputs, g->input_count);
    release_all(s->other, g->output_count);
    return STATUS_OK;
}

/* One disturbance turns some of the decisions that are as close as roundings, another one others:
 * as many are tried as it takes to explain the error. */
static enum status bound_by_roundings(struct step *s, struct verification *out, struct error *err)
{
    double worst = 0;
    for (int turn = 0; turn < DISTURBANCES && out->error > out->bound; turn++) {
        TRY(disturbed_error(s, turn, &worst, err));
        out->bound = fmax(out->bound, 2 * worst);
    }
    return STATUS_OK;
}

static void add_note(struct verification *out, const char *text)
{
    size_t used = strlen(out->note);
    snprintf(out->note + used, sizeof(out->note) - used, "%s%s", used ? "; " : "", text);
}

/* A bound that is met by what has little to do with the reference says so. */
static void note_wide_bound(struct verification *out)
{
    const double telling = 0.1;
    if (out->bound > telling)
        add_note(out, "roundings grow so much in this network that the bound proves little");
}

/* ---- comparing ---- */

static enum status compare(const struct step *s, struct verification *out, struct error *err)
{
    const struct graph *g = s->compared;
    double largest = largest_gradient(s);
    char name[60], worst[80] = "";
    out->error = 0;
    for (int k = 0; k < g->output_count; k++) {
        const struct value *value = &g->values[g->outputs[k]];
        struct ref_tensor got;
        TRY(ref_from_data(&got, value->dtype, &value->shape, s->got[k], err));
        double error = error_of(s, k, &got, largest);
        clean_copy(name, sizeof(name), value->name);
        if (error > out->error)
            snprintf(worst, sizeof(worst), "the worst is %s", name);
        if (isinf(error) && !out->odd[0])
            snprintf(out->odd, sizeof(out->odd), "%s is not finite, or is zero in the reference",
                     name);
        out->error = fmax(out->error, error);
        ref_release(&got);
    }
    if (worst[0])
        add_note(out, worst);
    return STATUS_OK;
}

static size_t output_bytes(const struct graph *g, int output)
{
    return value_size(&g->values[g->outputs[output]]);
}

static enum status run_exe(struct step *s, struct verification *out, struct error *err)
{
    for (int k = 0; k < exe_step_count(s->exe); k++)
        out->bound = fmax(out->bound, exe_step_at(s->exe, k).kernel->rel_error);
    exe_run(s->exe); /* twice: nothing may depend on what memory held before */
    exe_reset(s->exe);
    exe_run(s->exe);
    TRY(exe_status(s->exe, err));
    s->got = calloc((size_t)s->compared->output_count + 1, sizeof(*s->got));
    for (int k = 0; s->got && k < s->compared->output_count; k++) {
        s->got[k] = malloc(output_bytes(s->compared, k) + 1);
        if (!s->got[k])
            return FAIL_NO_MEMORY(err);
        memcpy(s->got[k], exe_output(s->exe, k), output_bytes(s->compared, k));
    }
    exe_free(s->exe);
    s->exe = NULL;
    return s->got ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status run_step(struct step *s, struct verification *out, struct error *err)
{
    size_t outputs = (size_t)s->compared->output_count + 1;
    s->inputs = calloc((size_t)s->compared->input_count + 1, sizeof(*s->inputs));
    s->expected = calloc(outputs, sizeof(*s->expected));
    s->other = calloc(outputs, sizeof(*s->other));
    if (!s->inputs || !s->expected || !s->other)
        return FAIL_NO_MEMORY(err);
    out->bound = BOUND_USUAL;
    TRY(run_exe(s, out, err));
    TRY(reference_run(s->compared, NULL, s->expected, s->pool, err));
    TRY(compare(s, out, err));
    TRY(bound_by_roundings(s, out, err));
    note_wide_bound(out);
    return STATUS_OK;
}

static void release(struct step *s)
{
    int outputs = s->compared ? s->compared->output_count : 0;
    release_all(s->inputs, s->compared ? s->compared->input_count : 0);
    release_all(s->expected, outputs);
    release_all(s->other, outputs);
    for (int k = 0; s->got && k < outputs; k++)
        free(s->got[k]);
    free(s->got);
    free(s->inputs);
    free(s->expected);
    free(s->other);
    exe_free(s->exe);
    graph_free(s->compared);
    graph_free(s->graph);
}

/* ---- which step ---- */

static bool is_used(const struct graph *g, int v)
{
    return graph_uses(g, v) > 0;
}

/* What leads to the compared outputs, and the inputs of that. */
static enum status keep_compared(struct step *s, struct error *err)
{
    struct graph *g = s->compared = graph_copy(s->graph);
    int outputs = 0, inputs = 0, states = 0;
    if (!g)
        return FAIL_NO_MEMORY(err);
    while (outputs < g->output_count && !is_after(g, g->outputs[outputs]))
        outputs++;
    g->output_count = outputs;
    graph_compact(g);
    for (int k = 0; k < g->input_count; k++)
        if (is_used(g, g->inputs[k]))
            g->inputs[inputs++] = g->inputs[k];
    for (int k = 0; k < g->state_count; k++)
        if (is_used(g, g->states[k].before))
            g->states[states++] = (struct state){.before = g->states[k].before, .after = NONE};
    g->input_count = inputs;
    g->state_count = states;
    return graph_check(g, err);
}

static enum status open_batch(const char *spec, const struct model_options *m, int64_t batch,
                              struct step *s, struct error *err)
{
    struct train_options options;
    const struct training *training;
    struct pool *pool = s->pool;
    release(s);
    *s = (struct step){.pool = pool};
    TRY(model_train_options(m, &options, err));
    options.gradients_as_outputs = true;
    TRY(workload_open_training(spec, batch, &options, &s->graph, &training, err));
    return keep_compared(s, err);
}

/* First the executable, then the reference beside what it has left and, on disturbed inputs, beside
 * what was expected. */
static enum status fits(const struct step *s, const struct exe_options *options, struct error *err)
{
    struct memory_need all, need;
    struct free_memory available = free_memory_find("");
    TRY(graph_need(s->compared, options, &need, err));
    TRY(graph_need(s->graph, options, &all, err));
    all.compile = fmax(all.compile, all.run);
    all.reference = need.reference;
    all.run = 0;
    for (int k = 0; k < s->compared->output_count; k++)
        all.run += 3 * (double)output_bytes(s->compared, k);
    return admission_judge(&all, true, options->threads, &available, err);
}

/* Why the reference is too much; NULL: it is not. *status: of an attempt all the same. Where memory
 * is short the reference computes activations again instead of keeping them. */
static const char *too_much(struct step *s, const struct model_options *m,
                            const struct exe_options *options, enum status *status,
                            struct error *err)
{
    bool takes_minutes = graph_flops(s->compared) > most_flops;
    if (!m->no_memory_check)
        *status = fits(s, options, err);
    if (*status == STATUS_UNSUPPORTED && recompute_forward(s->compared, 0, err) == STATUS_OK)
        *status = fits(s, options, err);
    if (*status == STATUS_UNSUPPORTED)
        return "needs more memory than is free";
    return takes_minutes ? "takes minutes" : NULL;
}

static int64_t batch_of(const struct step *s)
{
    struct graph_cost cost;
    graph_cost(s->graph, &cost);
    return cost.batch;
}

/* The batch asked for, halved until the reference bears it. */
static enum status open_step(const char *spec, const struct model_options *m,
                             const struct exe_options *options, struct step *s,
                             struct verification *out, struct error *err)
{
    enum status status = STATUS_OK;
    char text[120];
    TRY(open_batch(spec, m, m->batch, s, err));
    int64_t asked = batch_of(s), batch = asked;
    const char *why = too_much(s, m, options, &status, err), *first = why;
    while (why && batch > 1) {
        batch /= 2;
        status = STATUS_OK;
        TRY(open_batch(spec, m, batch, s, err));
        why = too_much(s, m, options, &status, err);
    }
    if (status == STATUS_OK && batch < asked) {
        snprintf(text, sizeof(text), "batch %lld, because the reference of batch %lld %s",
                 (long long)batch, (long long)asked, first);
        add_note(out, text);
    }
    return status;
}

static enum status verify_step(const char *spec, const struct model_options *m, struct step *s,
                               struct verification *out, struct error *err)
{
    char path[512];
    struct exe_options options;
    TRY(model_exe_options(m, &options, path, sizeof(path), err));
    options.pool = s->pool;
    if (options.precision != PRECISION_F32)
        return UNSUPPORTED(err, "precision \"%s\": training is in f32",
                           precision_name(options.precision));
    TRY(providers_load(m->providers, err));
    TRY(open_step(spec, m, &options, s, out, err));
    TRY(exe_new(s->graph, &options, &s->exe, err));
    return run_step(s, out, err);
}

enum status verify_training(const char *spec, const struct model_options *m, struct pool *pool,
                            struct verification *out, struct error *err)
{
    struct step s = {.pool = pool};
    *out = (struct verification){
        .error = NAN, .bound = NAN, .how = "a step of training, reference f64"};
    if (!pool)
        TRY(pool_new((int)m->threads, &s.pool, err));
    enum status status = verify_step(spec, m, &s, out, err);
    release(&s);
    if (!pool)
        pool_free(s.pool);
    return status;
}
