/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/model/verify_training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/numbers/random.h"
#include "engine/compile/compile.h"
#include "engine/ops/family/narrow.h"
#include "engine/reference/reference.h"
#include "engine/run/provider.h"
#include "harness/model/admission.h"
#include "workloads/training.h"

#define BOUND_USUAL    1e-4
#define GRADIENT_FLOOR 0.1 /* of the largest gradient's norm */

/* A step and what the reference makes of it. Outputs of the graph: those of the loss, a gradient
 * per weight, and what states become, which is not compared: the first step of Adam, say, moves
 * each weight by the sign of its gradient, and zero has either. */
struct step {
    struct graph *graph;
    struct exe *exe;
    int compared; /* outputs, from the first on */
    struct ref_tensor *inputs, *expected, *other;
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
    for (int k = 0; k < s->compared; k++)
        if (is_gradient(s->graph, k))
            largest = fmax(largest, norm(&s->expected[k]));
    return largest;
}

static double error_of(const struct step *s, int output, const struct ref_tensor *got,
                       double largest)
{
    double scale = norm(&s->expected[output]), apart = distance(got, &s->expected[output]);
    if (is_gradient(s->graph, output))
        scale = fmax(scale, GRADIENT_FLOOR * largest);
    return apart == 0 ? 0 : scale > 0 ? apart / scale : (double)INFINITY;
}

/* ---- how far f32 may be ---- */

/* Results that are computed one after the other, at most. */
static int depth_of(const struct graph *g)
{
    int *depth = calloc((size_t)g->value_count + 1, sizeof(*depth)), deepest = 0;
    for (int n = 0; depth && n < g->node_count; n++) {
        const struct node *node = &g->nodes[n];
        int at = 0;
        for (int k = 0; k < node->input_count; k++)
            if (node->inputs[k] != NONE && depth[node->inputs[k]] > at)
                at = depth[node->inputs[k]];
        at += narrow_class_of(node->op) != NARROW_MOVE;
        deepest = at > deepest ? at : deepest;
        for (int k = 0; k < node->output_count; k++)
            if (node->outputs[k] != NONE)
                depth[node->outputs[k]] = at;
    }
    free(depth);
    return deepest;
}

/* Rounding to f32 changes a number by up to 2^-24 of itself. */
static void disturb(struct ref_tensor *t, double roundings, uint64_t seed)
{
    for (int64_t k = 0; t->f && k < t->count; k++)
        t->f[k] *= 1 + 0x1p-24 * roundings * (2 * random_uniform(seed, (uint64_t)k) - 1);
}

static enum status bound_by_roundings(struct step *s, double *bound, struct error *err)
{
    const struct graph *g = s->graph;
    double worst = 0, largest = largest_gradient(s);
    for (int k = 0; k < g->input_count; k++)
        disturb(&s->inputs[k], sqrt(1 + depth_of(g)), random_hash(g->values[g->inputs[k]].name));
    TRY(reference_run(g, s->inputs, s->other, exe_pool(s->exe), err));
    for (int k = 0; k < s->compared; k++)
        worst = fmax(worst, error_of(s, k, &s->other[k], largest));
    *bound = fmax(*bound, 2 * worst);
    return STATUS_OK;
}

/* A bound that is met by what has little to do with the reference says so. */
static void note_wide_bound(struct verification *out)
{
    const double telling = 0.1;
    size_t used = strlen(out->note);
    if (out->bound > telling)
        snprintf(out->note + used, sizeof(out->note) - used,
                 "%sroundings grow so much in this network that the bound proves little",
                 used ? "; " : "");
}

/* ---- comparing ---- */

static enum status compare(const struct step *s, struct verification *out, struct error *err)
{
    const struct graph *g = s->graph;
    double largest = largest_gradient(s);
    out->error = 0;
    for (int k = 0; k < s->compared; k++) {
        const struct value *value = &g->values[g->outputs[k]];
        struct ref_tensor got;
        char name[60];
        TRY(ref_from_data(&got, value->dtype, &value->shape, exe_output(s->exe, k), err));
        double error = error_of(s, k, &got, largest);
        if (error > out->error)
            snprintf(out->note, sizeof(out->note), "the worst is %s",
                     clean_copy(name, sizeof(name), value->name));
        if (isinf(error) && !out->odd[0])
            snprintf(out->odd, sizeof(out->odd), "%s is not finite, or is zero in the reference",
                     clean_copy(name, sizeof(name), value->name));
        out->error = fmax(out->error, error);
        ref_release(&got);
    }
    return STATUS_OK;
}

static enum status run_step(struct step *s, struct verification *out, struct error *err)
{
    struct graph *g = s->graph;
    size_t outputs = (size_t)g->output_count + 1;
    s->inputs = calloc((size_t)g->input_count + 1, sizeof(*s->inputs));
    s->expected = calloc(outputs, sizeof(*s->expected));
    s->other = calloc(outputs, sizeof(*s->other));
    if (!s->inputs || !s->expected || !s->other)
        return FAIL_NO_MEMORY(err);
    while (s->compared < g->output_count && !is_after(g, g->outputs[s->compared]))
        s->compared++;
    *out = (struct verification){
        .error = NAN, .bound = BOUND_USUAL, .how = "a step of training, reference f64"};
    for (int k = 0; k < exe_step_count(s->exe); k++)
        out->bound = fmax(out->bound, exe_step_at(s->exe, k).kernel->rel_error);
    exe_run(s->exe); /* twice: nothing may depend on what memory held before */
    exe_reset(s->exe);
    exe_run(s->exe);
    TRY(exe_status(s->exe, err));
    TRY(reference_inputs(g, s->inputs, exe_pool(s->exe), err));
    TRY(reference_run(g, s->inputs, s->expected, exe_pool(s->exe), err));
    TRY(compare(s, out, err));
    if (out->error > out->bound)
        TRY(bound_by_roundings(s, &out->bound, err));
    note_wide_bound(out);
    return STATUS_OK;
}

static void release(struct step *s)
{
    for (int k = 0; s->inputs && k < s->graph->input_count; k++)
        ref_release(&s->inputs[k]);
    for (int k = 0; s->expected && s->other && k < s->graph->output_count; k++) {
        ref_release(&s->expected[k]);
        ref_release(&s->other[k]);
    }
    free(s->inputs);
    free(s->expected);
    free(s->other);
    exe_free(s->exe);
    graph_free(s->graph);
}

static enum status open_step(const char *spec, const struct model_options *m, struct pool *pool,
                             struct step *s, struct error *err)
{
    static const struct train_options shown = {.gradients_as_outputs = true};
    const struct training *training;
    char path[512];
    struct exe_options options;
    TRY(model_exe_options(m, &options, path, sizeof(path), err));
    options.pool = pool;
    if (options.precision != PRECISION_F32)
        return UNSUPPORTED(err, "precision \"%s\": training is in f32",
                           precision_name(options.precision));
    TRY(providers_load(m->providers, err));
    TRY(workload_open_training(spec, m->batch, &shown, &s->graph, &training, err));
    if (!m->no_memory_check)
        TRY(admission_check(s->graph, &options, true, err));
    return exe_new(s->graph, &options, &s->exe, err);
}

enum status verify_training(const char *spec, const struct model_options *m, struct pool *pool,
                            struct verification *out, struct error *err)
{
    struct step s = {.graph = NULL};
    enum status status = open_step(spec, m, pool, &s, err);
    if (status == STATUS_OK)
        status = run_step(&s, out, err);
    release(&s);
    return status;
}
