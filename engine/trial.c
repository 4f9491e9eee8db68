/* SPDX-License-Identifier: Apache-2.0
 *
 * Timing imitates a network's steady state: weights come from memory (a buffer larger than the last
 * cache is streamed between runs), small activations are in cache. Products too large for the plain
 * reference are compared with the first native kernel, which the operator tests have proven. */
#include "engine/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/probe.h"
#include "engine/reference.h"

enum { WARM_BYTES = 1 << 20, MIN_SAMPLES = 3, MAX_SAMPLES = 24 };
enum { PROBE_OUTPUTS = 8, PROBE_MS = 20000 };
static const double budget_ns = 25e6, reference_macs = 6e9;
/* What a kernel with threads of its own costs its neighbours: our workers sleep while it runs, and
 * waking them takes 35 to 50 us in a virtual machine. */
static const double hand_over_ns = 40e3;

static void fill_input(const struct exe *exe, int v, void *memory)
{
    const struct value *value = &exe->g->values[v];
    const struct place *place = &exe->places[v];
    if (value->kind == VALUE_INPUT) {
        value_materialise(value, memory);
        return;
    }
    memset(memory, 0, place->bytes);
    if (value->dtype != DTYPE_F32)
        return; /* zeros are valid indices, sizes and masks */
    float *data = memory;
    uint32_t state = 12345;
    for (size_t k = 0; k < place->bytes / sizeof(float); k++) {
        state = state * 1664525u + 1013904223u;
        data[k] = (float)(int32_t)state * 0x1p-31f;
    }
}

static enum status trial_open(struct trial *t, struct error *err)
{
    const struct node *node = t->step->query.node;
    t->in = calloc((size_t)node->input_count + 1, sizeof(*t->in));
    t->out = calloc((size_t)node->output_count + 1, sizeof(*t->out));
    t->expected = calloc((size_t)node->output_count + 1, sizeof(*t->expected));
    if (!t->in || !t->out || !t->expected)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < node->input_count; k++) {
        int v = node->inputs[k];
        if (v == NONE)
            continue;
        t->in[k] = t->step->query.fixed[k] ? t->exe->places[v].memory
                                           : memory_alloc(t->exe->places[v].bytes);
        if (!t->in[k])
            return FAIL_NO_MEMORY(err);
        if (!t->step->query.fixed[k])
            fill_input(t->exe, v, t->in[k]);
    }
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NONE &&
            !(t->out[k] = memory_alloc(t->exe->places[node->outputs[k]].bytes)))
            return FAIL_NO_MEMORY(err);
    return STATUS_OK;
}

static void trial_close(struct trial *t)
{
    const struct node *node = t->step->query.node;
    for (int k = 0; t->in && k < node->input_count; k++)
        if (t->in[k] && !t->step->query.fixed[k])
            memory_free(t->in[k], t->exe->places[node->inputs[k]].bytes);
    for (int k = 0; t->out && k < node->output_count; k++)
        if (t->out[k])
            memory_free(t->out[k], t->exe->places[node->outputs[k]].bytes);
    for (int k = 0; t->expected && k < node->output_count; k++)
        ref_release(&t->expected[k]);
    trial_there_close(t);
    free(t->in);
    free(t->out);
    free(t->expected);
}

static enum status read_output(const struct trial *t, int k, struct ref_tensor *r,
                               struct error *err)
{
    const struct desc *desc = &t->step->query.out[k];
    *r = (struct ref_tensor){
        .dtype = desc->dtype, .shape = desc->shape, .count = shape_count(&desc->shape)};
    void *memory = malloc((size_t)r->count * 8 + 8);
    if (!memory)
        return FAIL_NO_MEMORY(err);
    ref_place(r, memory);
    ref_load(r, desc, t->out[k]);
    return STATUS_OK;
}

static double bound_of(const struct op *op, const struct kernel *kernel)
{
    double bound = op->tolerance > 0 ? op->tolerance : 1e-5;
    return kernel->rel_error > bound ? kernel->rel_error : bound;
}

/* Compares the outputs with what is expected; the first candidate sets the expectation. */
static enum status judge(struct trial *t, const struct kernel *kernel, struct error *err)
{
    const struct node *node = t->step->query.node;
    double bound = bound_of(node->op, kernel);
    for (int k = 0; k < node->output_count; k++) {
        struct ref_tensor got = {0};
        if (node->outputs[k] == NONE)
            continue;
        TRY(read_output(t, k, &got, err));
        if (!t->expected[k].count && got.count) {
            t->expected[k] = got;
            continue;
        }
        double error = ref_rel_error(&got, &t->expected[k]);
        ref_release(&got);
        if (!(error <= bound))
            return FAIL(err, STATUS_INVALID, "wrong: relative error %.2g > %.2g in output %d",
                        error, bound, k);
    }
    return STATUS_OK;
}

static void evict_caches(struct trial *t)
{
    if (!t->cold || !t->evict)
        return;
    for (size_t k = 0; k < TRIAL_EVICT_BYTES; k += 64)
        t->evict[k]++;
    const struct node *node = t->step->query.node;
    volatile char sink = 0;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == NONE || t->step->query.fixed[i])
            continue;
        size_t bytes = t->exe->places[node->inputs[i]].bytes;
        for (size_t k = 0; bytes <= WARM_BYTES && k < bytes; k += 64)
            sink = (char)(sink + ((char *)t->in[i])[k]);
    }
}

static double run_once(struct trial *t, const struct kernel *kernel, struct kernel_state *state,
                       void *workspace)
{
    struct kernel_args args = {.in = (const void *const *)t->in,
                               .out = t->out,
                               .workspace = workspace,
                               .pool = t->exe->pool};
    if (kernel->own_threads)
        pool_park(t->exe->pool);
    uint64_t start = clock_now_ns();
    kernel->launch(state, &t->step->query, &args);
    return (double)(clock_now_ns() - start);
}

static double time_it(struct trial *t, const struct candidate *c, struct kernel_state *state,
                      void *workspace, double best)
{
    double least = INFINITY, spent = 0;
    for (int k = 0; k < MAX_SAMPLES && (k < MIN_SAMPLES || spent < budget_ns); k++) {
        evict_caches(t);
        double ns = run_once(t, c->kernel, state, workspace);
        least = ns < least ? ns : least;
        spent += ns;
        /* It will not win. One sample may be another program's fault, three hardly. */
        if (least > (k > 1 ? 1.25 : k > 0 ? 1.6 : 3) * best)
            break;
    }
    return least;
}

/* What all candidates are compared with. */
static void expect_from_reference(struct trial *t)
{
    size_t bytes = kernel_reference.workspace(&t->step->query, 0);
    void *workspace = memory_alloc(bytes);
    if (!workspace)
        return; /* then the first native kernel sets the expectation */
    run_once(t, &kernel_reference, NULL, workspace);
    judge(t, &kernel_reference, NULL);
    memory_free(workspace, bytes);
}

/* The first call of a distrusted kernel happens in a child that may die of it. */
static enum status probe(struct trial *t, const struct candidate *c, double bound,
                         struct error *err)
{
    const struct node *node = t->step->query.node;
    const double *expected[PROBE_OUTPUTS] = {NULL};
    for (int k = 0; k < node->output_count && k < PROBE_OUTPUTS; k++)
        expected[k] = t->expected[k].f;
    struct probe_data data = {
        .in = (const void *const *)t->in, .expected = expected, .tolerance = bound};
    if (node->output_count > PROBE_OUTPUTS)
        return UNSUPPORTED(err, "more outputs than a probe compares");
    return probe_kernel(c->kernel, &t->step->query, c->variant, &data, PROBE_MS, err);
}

/* A prepared candidate of the device: checked and timed. */
static enum status try_there(struct trial *t, struct candidate *c, struct kernel_state *state,
                             struct error *err)
{
    TRY(trial_there_run(t, c->kernel, state, err));
    TRY(judge(t, c->kernel, err));
    return trial_there_time(t, c->kernel, state, &c->time_ns, err);
}

static enum status try_here(struct trial *t, struct candidate *c, struct kernel_state *state,
                            double best, struct error *err)
{
    const struct kernel *kernel = c->kernel;
    const struct kernel_query *q = &t->step->query;
    size_t workspace_bytes = kernel->workspace ? kernel->workspace(q, c->variant) : 0;
    void *workspace = memory_alloc(workspace_bytes);
    if (!workspace)
        return FAIL_NO_MEMORY(err);
    run_once(t, kernel, state, workspace);
    enum status status = judge(t, kernel, err);
    if (status == STATUS_OK && kernel != &kernel_reference)
        c->time_ns = time_it(t, c, state, workspace, best) +
                     (kernel->own_threads && q->threads > 1 ? hand_over_ns : 0);
    memory_free(workspace, workspace_bytes);
    return status;
}

/* Prepares, checks and times one candidate; a refusal on the way becomes its reason. */
static enum status try_candidate(struct trial *t, struct candidate *c, double best,
                                 struct error *err)
{
    struct kernel_state *state = NULL;
    size_t bytes = 0;
    const struct kernel *kernel = c->kernel;
    const struct kernel_query *q = &t->step->query;
    bool there = exe_is_on_device(t->exe) && exe_runs_there(t->exe, kernel);
    if (kernel->distrusted && !there) {
        if (t->expected[0].f == NULL && t->expected[0].i == NULL)
            expect_from_reference(t);
        TRY(probe(t, c, bound_of(q->node->op, kernel), err));
    }
    if (there)
        TRY(trial_there_open(t, err));
    if (kernel->prepare)
        TRY(kernel->prepare(q, c->variant, &state, &bytes, err));
    enum status status = there ? trial_there_workspace(t, c, err) : STATUS_OK;
    if (status == STATUS_OK)
        status = there ? try_there(t, c, state, err) : try_here(t, c, state, best, err);
    if (kernel->release)
        kernel->release(state);
    return status;
}

static enum status try_all(struct trial *t, struct error *err)
{
    struct step *step = t->step;
    double best = INFINITY;
    struct candidate *winner = NULL;
    if (step->cost.macs <= reference_macs)
        expect_from_reference(t);
    for (int k = 0; k < step->candidate_count; k++) {
        struct candidate *c = &step->candidates[k];
        struct error why = {0};
        if (c->reason[0] || (winner && c->kernel == &kernel_reference))
            continue;
        if (try_candidate(t, c, best, &why) != STATUS_OK) {
            snprintf(c->reason, sizeof(c->reason), "%.159s", why.message);
            continue;
        }
        if (!winner || c->time_ns < best) {
            winner = c;
            best = c->time_ns;
        }
    }
    if (!winner)
        return FAIL(err, STATUS_FAILED, "no kernel computes node \"%s\" (%s)",
                    step->query.node->name, step->query.node->op->name);
    winner->chosen = true;
    return STATUS_OK;
}

enum status trial_run(struct trial *t, struct error *err)
{
    enum status status = trial_open(t, err);
    if (status == STATUS_OK)
        status = try_all(t, err);
    trial_close(t);
    return status;
}
