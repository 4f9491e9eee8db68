/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel for every step. For each distinct signature all kernels of the operator are asked; the
 * accepting ones are run, compared with the reference and timed; the fastest right one is kept, and
 * remembered on disk. Timing imitates a network's steady state: weights come from memory (a buffer
 * larger than the last cache is streamed between runs), small activations are in cache. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "engine/compile.h"
#include "engine/reference.h"

enum { EVICT_BYTES = 48 << 20, WARM_BYTES = 1 << 20, MIN_SAMPLES = 3, MAX_SAMPLES = 24 };
static const double budget_ns = 25e6, reference_macs = 6e9;

/* Memory of one step on trial. */
struct trial {
    struct exe *exe;
    struct step *step;
    void **in, **out; /* ours, except fixed inputs */
    struct ref_tensor *expected; /* per output; count 0: not known */
    char *evict;
    bool cold; /* weights of the network exceed the caches */
};

/* ---- candidates ---- */

static bool provider_wanted(const char *list, const char *provider)
{
    size_t length = strlen(provider);
    for (const char *at = list; at && *at;) {
        size_t word = strcspn(at, ",");
        if (word == length && strncmp(at, provider, length) == 0)
            return true;
        at += word + (at[word] == ',');
    }
    return !list || strcmp(provider, "reference") == 0;
}

static enum status ask(const struct exe *exe, const struct step *step, const struct kernel *kernel,
                       struct error *why)
{
    const struct op *op = step->query.node->op;
    double allowed = exe->options.max_error;
    (void)op;
    if (kernel->isa > exe->options.isa)
        return UNSUPPORTED(why, "needs %s", isa_name(kernel->isa));
    if (kernel->isa == ISA_SCALAR && exe->options.isa != ISA_SCALAR &&
        strcmp(kernel->provider, "native") == 0 && !exe->options.only)
        return UNSUPPORTED(why, "a vector form exists");
    if (kernel->isa == ISA_AVX2 && exe->options.isa == ISA_AVX512 && !exe->options.only &&
        strcmp(kernel->provider, "native") == 0)
        return UNSUPPORTED(why, "a wider form exists");
    if (allowed > 0 && kernel->rel_error > allowed)
        return UNSUPPORTED(why, "its error bound %g is above %g", kernel->rel_error, allowed);
    return kernel->supports(&step->query, why);
}

static enum status add_candidate(struct exe *exe, struct step *step, size_t *capacity,
                                 const struct candidate *candidate, struct error *err)
{
    struct candidate *grown = arena_grow(&exe->arena, step->candidates, capacity,
                                         (size_t)step->candidate_count + 1, sizeof(*grown));
    if (!grown)
        return FAIL_NO_MEMORY(err);
    step->candidates = grown;
    grown[step->candidate_count++] = *candidate;
    return STATUS_OK;
}

static enum status gather_kernel(struct exe *exe, struct step *step, const struct kernel *kernel,
                                 size_t *capacity, struct error *err)
{
    struct error why = {0};
    struct candidate c = {.kernel = kernel};
    if (ask(exe, step, kernel, &why) != STATUS_OK) {
        snprintf(c.reason, sizeof(c.reason), "%.159s", why.message);
        return add_candidate(exe, step, capacity, &c, err);
    }
    int variants = kernel->variants ? kernel->variants(&step->query) : 1;
    for (int v = 0; v < variants; v++) {
        if (exe->options.only && exe->options.only_variant >= 0 &&
            strcmp(exe->options.only, kernel->name) == 0 && v != exe->options.only_variant)
            continue;
        c.variant = v;
        if (kernel->describe)
            kernel->describe(&step->query, v, c.text, sizeof(c.text));
        TRY(add_candidate(exe, step, capacity, &c, err));
    }
    return STATUS_OK;
}

static enum status gather(struct exe *exe, struct step *step, struct error *err)
{
    size_t capacity = 0;
    const char *only = exe->options.only;
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        if (!kernel_computes(kernel, step->query.node->op) ||
            !provider_wanted(exe->options.providers, kernel->provider) ||
            (only && strcmp(only, kernel->name) != 0 && kernel != &kernel_reference))
            continue;
        TRY(gather_kernel(exe, step, kernel, &capacity, err));
    }
    return STATUS_OK;
}

/* ---- fixed inputs ---- */

enum status fixed_begin(struct exe *exe, struct step *step, struct error *err)
{
    const struct node *node = step->query.node;
    for (int k = 0; k < node->input_count; k++) {
        int v = node->inputs[k];
        if (v == NONE || !value_is_fixed(&exe->g->values[v]))
            continue;
        struct place *place = &exe->places[v];
        if (!place->memory && exe->g->values[v].data) {
            place->memory = (void *)(uintptr_t)exe->g->values[v].data;
        } else if (!place->memory) {
            place->memory = memory_alloc(place->bytes);
            if (!place->memory)
                return FAIL_NO_MEMORY(err);
            place->owned = true;
            value_materialise(&exe->g->values[v], place->memory);
        }
        ((const void **)(uintptr_t)step->query.fixed)[k] = place->memory;
    }
    return STATUS_OK;
}

void fixed_end(struct exe *exe, struct step *step)
{
    const struct node *node = step->query.node;
    for (int k = 0; k < node->input_count; k++) {
        int v = node->inputs[k];
        if (v == NONE || !value_is_fixed(&exe->g->values[v]))
            continue;
        struct place *place = &exe->places[v];
        bool packed = k < 32 && step->kernel->packs >> k & 1;
        place->kept = place->kept || !packed;
        if (--place->pending > 0 || place->kept)
            continue;
        struct value *value = &exe->g->values[v];
        if (place->owned)
            memory_free(place->memory, place->bytes);
        if (value->data_owned)
            free((void *)(uintptr_t)value->data);
        value->data = value->data_owned ? NULL : value->data;
        value->data_owned = place->owned = false;
        place->memory = NULL;
    }
}

/* ---- one trial ---- */

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
    free(t->in);
    free(t->out);
    free(t->expected);
}

static enum status read_output(const struct trial *t, int k, struct ref_tensor *r,
                               struct error *err)
{
    const struct desc *desc = &t->step->query.out[k];
    *r = (struct ref_tensor){.dtype = desc->dtype, .shape = desc->shape,
                             .count = shape_count(&desc->shape)};
    void *memory = malloc((size_t)r->count * 8 + 8);
    if (!memory)
        return FAIL_NO_MEMORY(err);
    ref_place(r, memory);
    ref_load(r, desc, t->out[k]);
    return STATUS_OK;
}

/* Compares the outputs with what is expected; the first candidate sets the expectation. */
static enum status judge(struct trial *t, const struct kernel *kernel, struct error *err)
{
    const struct node *node = t->step->query.node;
    double bound = node->op->tolerance > 0 ? node->op->tolerance : 1e-5;
    if (kernel->rel_error > bound)
        bound = kernel->rel_error;
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
    for (size_t k = 0; k < EVICT_BYTES; k += 64)
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
    struct kernel_args args = {.in = (const void *const *)t->in, .out = t->out,
                               .workspace = workspace, .pool = t->exe->pool};
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
        if (k > 0 && least > 2 * best)
            break;
    }
    return least;
}

/* Prepares, checks and times one candidate; a refusal on the way becomes its reason. */
static enum status try_candidate(struct trial *t, struct candidate *c, double best,
                                 struct error *err)
{
    struct kernel_state *state = NULL;
    size_t bytes = 0;
    const struct kernel *kernel = c->kernel;
    const struct kernel_query *q = &t->step->query;
    if (kernel->prepare)
        TRY(kernel->prepare(q, c->variant, &state, &bytes, err));
    size_t workspace_bytes = kernel->workspace ? kernel->workspace(q, c->variant) : 0;
    void *workspace = memory_alloc(workspace_bytes);
    enum status status = workspace ? STATUS_OK : FAIL_NO_MEMORY(err);
    if (status == STATUS_OK) {
        run_once(t, kernel, state, workspace);
        status = judge(t, kernel, err);
    }
    if (status == STATUS_OK && kernel != &kernel_reference)
        c->time_ns = time_it(t, c, state, workspace, best);
    memory_free(workspace, workspace_bytes);
    if (kernel->release)
        kernel->release(state);
    return status;
}

/* The reference goes first where it is affordable, so that all others are compared with it. */
static void expect_from_reference(struct trial *t)
{
    struct candidate c = {.kernel = &kernel_reference};
    if (t->step->cost.macs <= reference_macs)
        try_candidate(t, &c, INFINITY, NULL);
}

static enum status run_trial(struct trial *t, struct error *err)
{
    struct step *step = t->step;
    double best = INFINITY;
    struct candidate *winner = NULL;
    TRY(trial_open(t, err));
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

/* ---- choosing ---- */

static struct candidate *find_candidate(struct step *step, const char *kernel, int variant)
{
    for (int k = 0; k < step->candidate_count; k++) {
        struct candidate *c = &step->candidates[k];
        if (!c->reason[0] && c->variant == variant && strcmp(c->kernel->name, kernel) == 0)
            return c;
    }
    return NULL;
}

static struct candidate *chosen_of(struct step *step)
{
    for (int k = 0; k < step->candidate_count; k++)
        if (step->candidates[k].chosen)
            return &step->candidates[k];
    return NULL;
}

static const struct step *same_before(const struct exe *exe, const struct step *step)
{
    for (const struct step *other = exe->steps; other < step; other++)
        if (strcmp(other->signature, step->signature) == 0)
            return other;
    return NULL;
}

static void choose_known(struct exe *exe, struct step *step, const struct tune_cache *cache)
{
    const struct tune_entry *entry =
        exe->options.retune || exe->options.only
            ? NULL
            : tune_cache_find(cache, random_hash(step->signature));
    struct candidate *c = entry ? find_candidate(step, entry->kernel, entry->variant) : NULL;
    if (!c && (exe->options.no_tune || exe->options.only))
        for (int k = 0; k < step->candidate_count && !c; k++)
            c = step->candidates[k].reason[0] ? NULL : &step->candidates[k];
    if (!c)
        return;
    c->chosen = true;
    c->time_ns = entry ? entry->time_ns : 0;
}

static enum status choose(struct exe *exe, struct step *step, struct tune_cache *cache,
                          struct trial *trial, struct error *err)
{
    const struct step *twin = same_before(exe, step);
    if (twin) {
        step->candidates = twin->candidates;
        step->candidate_count = twin->candidate_count;
        return STATUS_OK;
    }
    TRY(gather(exe, step, err));
    choose_known(exe, step, cache);
    if (chosen_of(step))
        return STATUS_OK;
    struct trial t = *trial;
    t.step = step;
    enum status status = run_trial(&t, err);
    trial_close(&t);
    TRY(status);
    struct candidate *c = chosen_of(step);
    struct tune_entry entry = {.key = random_hash(step->signature), .variant = c->variant,
                               .time_ns = c->time_ns};
    snprintf(entry.kernel, sizeof(entry.kernel), "%s", c->kernel->name);
    tune_cache_put(cache, &entry);
    return STATUS_OK;
}

static enum status settle(struct exe *exe, struct step *step, struct error *err)
{
    const struct candidate *c = chosen_of(step);
    step->kernel = c->kernel;
    step->variant = c->variant;
    if (c->kernel->workspace)
        step->workspace_bytes = c->kernel->workspace(&step->query, c->variant);
    if (c->kernel->prepare)
        TRY(c->kernel->prepare(&step->query, c->variant, &step->state, &step->state_bytes, err));
    exe->sizes.weight_bytes += step->state_bytes;
    return STATUS_OK;
}

static enum status tune_all(struct exe *exe, struct tune_cache *cache, struct trial *trial,
                            struct error *err)
{
    for (int s = 0; s < exe->step_count; s++) {
        struct step *step = &exe->steps[s];
        step->signature = step_signature(exe, step, &exe->arena);
        if (!step->signature)
            return FAIL_NO_MEMORY(err);
        TRY(fixed_begin(exe, step, err));
        enum status status = choose(exe, step, cache, trial, err);
        if (status == STATUS_OK)
            status = settle(exe, step, err);
        if (status != STATUS_OK)
            return error_context(err, "node \"%s\"", step->query.node->name);
        fixed_end(exe, step);
    }
    return STATUS_OK;
}

enum status tune_steps(struct exe *exe, struct error *err)
{
    struct tune_cache cache;
    double weights = 0;
    for (int v = 0; v < exe->g->value_count; v++)
        if (value_is_fixed(&exe->g->values[v]))
            weights += (double)exe->places[v].bytes;
    struct trial trial = {.exe = exe, .cold = weights > 8e6, .evict = NULL};
    trial.evict = trial.cold ? memory_alloc(EVICT_BYTES) : NULL;
    tune_cache_load(&cache, exe->options.cache);
    enum status status = tune_all(exe, &cache, &trial, err);
    tune_cache_save(&cache, exe->options.cache);
    tune_cache_release(&cache);
    if (trial.evict)
        memory_free(trial.evict, EVICT_BYTES);
    return status;
}
