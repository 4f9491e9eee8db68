/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses a kernel for every step.
 *
 * 1. A step whose signature (operator, attributes, shapes, layouts, epilogue) an earlier step has
 *    takes that step's choice.
 * 2. Every kernel of the operator is asked. One that accepts is a candidate with each of its
 *    variants; one that refuses stays in the list with its reason. On a device the device's kernels
 *    are asked first, the host's only where none of those is left.
 * 3. The cache of earlier runs (tune_cache.c) is looked up. Its key contains the signature, the CPU
 *    or device, and name and code of every candidate, so that a new or changed kernel voids it.
 * 4. Otherwise the candidates go on trial (trial.c), and the winner is remembered.
 *
 * A quick tuning tries one step of those that differ only in sizes of one magnitude and lets the
 * others take its winner; distrusted kernels are then still tried once, alone. Its winners have
 * keys of their own, which a full tuning does not read. With --no-tune the first candidate is
 * taken; where it cannot be prepared, the next one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/system/hash.h"
#include "engine/compile/trial.h"
#include "engine/reference/reference.h"
#include "engine/run/kernels.h"
#include "engine/run/provider.h"

/* ---- candidates ---- */

/* What can be said of a kernel without asking it. */
static enum status is_wanted(const struct exe *exe, const struct kernel *kernel, struct error *why)
{
    double allowed = exe->options.max_error;
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
    return STATUS_OK;
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

/* Fills in one variant of c->kernel: how it describes itself, or why it is refused; *variants (may
 * be NULL): how many there are. */
static enum status ask(const struct exe *exe, const struct step *step, int variant,
                       struct candidate *c, int *variants, struct error *err)
{
    struct error why = {0};
    struct kernel_state *state = NULL;
    enum status status = variant > 0 ? STATUS_OK : is_wanted(exe, c->kernel, &why);
    if (status == STATUS_OK)
        status = kernel_plan(c->kernel, &step->query, variant, &state, &why);
    if (status == STATUS_NO_MEMORY)
        return FAIL_NO_MEMORY(err);
    c->variant = variant;
    c->text[0] = c->reason[0] = '\0';
    if (status == STATUS_OK)
        kernel_describe(c->kernel, state, c->text, sizeof(c->text));
    else
        snprintf(c->reason, sizeof(c->reason), "%.255s", why.message);
    if (status == STATUS_OK && variants)
        *variants = kernel_variants(c->kernel, state);
    kernel_release(c->kernel, state);
    return STATUS_OK;
}

static bool kernel_is_only(const struct exe *exe, const struct kernel *kernel)
{
    return exe->options.only && strcmp(exe->options.only, kernel->name) == 0;
}

static enum status gather_kernel(struct exe *exe, struct step *step, const struct kernel *kernel,
                                 size_t *capacity, struct error *err)
{
    struct candidate c = {.kernel = kernel};
    int only = kernel_is_only(exe, kernel) ? exe->options.only_variant : -1, variants = 1;
    for (int v = 0; v < variants; v++) {
        TRY(ask(exe, step, v, &c, v == 0 ? &variants : NULL, err));
        if (only < 0 || v == only || (v == 0 && c.reason[0]))
            TRY(add_candidate(exe, step, capacity, &c, err));
    }
    return STATUS_OK;
}

/* Which kernels compete. On a device its own do; the host's only where none of those computes the
 * node, because their time is not all that they cost. */
enum side { SIDE_DEVICE, SIDE_HOST };

static bool is_on_side(const struct kernel *kernel, const struct device_kind *kind, enum side side)
{
    const char *device = kernel->device ? kernel->device : "cpu";
    return strcmp(device, side == SIDE_HOST ? "cpu" : kind->name) == 0;
}

static enum status gather(struct exe *exe, struct step *step, enum side side, struct error *err)
{
    size_t capacity = (size_t)step->candidate_count;
    const char *only = exe->options.only;
    const struct device_kind *kind = exe_device(exe)->kind;
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        if (!kernel_computes(kernel, step->query.node->op) || !is_on_side(kernel, kind, side) ||
            !provider_allowed(exe->options.providers, kernel->provider) ||
            (only && strcmp(only, kernel->name) != 0 && kernel != &kernel_reference))
            continue;
        TRY(gather_kernel(exe, step, kernel, &capacity, err));
    }
    return STATUS_OK;
}

static bool any_accepts(const struct step *step)
{
    for (int k = 0; k < step->candidate_count; k++)
        if (!step->candidates[k].reason[0])
            return true;
    return false;
}

/* ---- fixed inputs ---- */

/* Makes the contents of the step's fixed inputs known to its query; fixed_end takes back what no
 * launch will read. */
static enum status fixed_begin(struct exe *exe, struct step *step, struct error *err)
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
            value_materialise_by(exe->pool, &exe->g->values[v], place->memory);
        }
        ((const void **)(uintptr_t)step->query.fixed)[k] = place->memory;
    }
    return STATUS_OK;
}

static void fixed_end(struct exe *exe, struct step *step)
{
    const struct node *node = step->query.node;
    for (int k = 0; k < node->input_count; k++) {
        int v = node->inputs[k];
        if (v == NONE || !value_is_fixed(&exe->g->values[v]))
            continue;
        struct place *place = &exe->places[v];
        place->kept = place->kept || kernel_reads(step->kernel, &step->query, k);
        if (--place->pending > 0 || place->kept)
            continue;
        struct value *value = &exe->g->values[v];
        if (place->owned)
            memory_free(place->memory);
        if (value->data_owned)
            free((void *)(uintptr_t)value->data);
        value->data = value->data_owned ? NULL : value->data;
        value->data_owned = place->owned = false;
        place->memory = NULL;
    }
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

/* A new kernel or variant makes old winners void, and so does a kernel that is another one now. */
static uint64_t with_competitors(uint64_t key, const struct step *step, bool variants)
{
    for (int k = 0; k < step->candidate_count; k++) {
        const struct candidate *c = &step->candidates[k];
        if (c->kernel != &kernel_reference && !c->reason[0])
            key = (key ^ hash_fnv1a(c->kernel->name) ^ hash_fnv1a(variants ? c->text : "") ^
                   provider_identity(c->kernel->provider)) *
                  0x100000001b3u;
    }
    return key;
}

static uint64_t key_of(const struct step *step)
{
    return with_competitors(hash_fnv1a(step->signature), step, true);
}

/* Where a quick tuning keeps its winner, which a full one does not take for the best. */
static uint64_t quick_key(uint64_t key)
{
    return key ^ hash_fnv1a("quick");
}

static const struct tune_entry *known_winner(const struct exe *exe, const struct step *step,
                                             struct tune_cache *cache)
{
    if (exe->options.retune || exe->options.only)
        return NULL;
    const struct tune_entry *entry = tune_cache_find(cache, key_of(step));
    if (!entry && exe->options.quick_tune)
        entry = tune_cache_find(cache, quick_key(key_of(step)));
    return entry;
}

/* What is taken without a trial: the first that accepts. On a device a library's kernels come
 * first, then those that came with the device, which are for what libraries lack, and of these the
 * general ones last. */
static struct candidate *untried(const struct exe *exe, struct step *step)
{
    struct candidate *device_own = NULL;
    const char *device = exe_device(exe)->kind->name;
    for (int k = 0; k < step->candidate_count; k++) {
        struct candidate *c = &step->candidates[k];
        if (c->reason[0])
            continue;
        if (strcmp(c->kernel->provider, device) != 0)
            return c;
        if (!device_own || (device_own->kernel->general && !c->kernel->general))
            device_own = c;
    }
    return device_own;
}

static double tensor_bytes(const struct kernel_query *q)
{
    double bytes = 0;
    for (int k = 0; k < q->in_count; k++)
        bytes += (double)desc_bytes(&q->in[k]);
    for (int k = 0; k < q->out_count; k++)
        bytes += (double)desc_bytes(&q->out[k]);
    return bytes;
}

/* The only one that accepts an optimiser's step too large to be tried for nothing; NULL: it is to
 * be tried. */
static struct candidate *unrivalled(const struct exe *exe, struct step *step)
{
    const struct kernel_query *q = &step->query;
    struct candidate *only = NULL;
    if (!q->node->op->update || exe_is_on_device(exe) || tensor_bytes(q) <= TRIAL_ALONE_BYTES)
        return NULL;
    for (int k = 0; k < step->candidate_count; k++) {
        struct candidate *c = &step->candidates[k];
        if (c->reason[0] || c->kernel == &kernel_reference)
            continue;
        if (only || c->kernel->distrusted)
            return NULL;
        only = c;
    }
    return only;
}

static void choose_known(struct exe *exe, struct step *step, struct tune_cache *cache)
{
    const struct tune_entry *entry = known_winner(exe, step, cache);
    struct candidate *c = entry ? find_candidate(step, entry->kernel, entry->variant) : NULL;
    if (!c && (exe->options.no_tune || exe->options.only))
        c = untried(exe, step);
    c = c ? c : unrivalled(exe, step);
    if (!c)
        return;
    c->chosen = true;
    c->time_ns = entry ? entry->time_ns : 0;
}

static void remember(struct tune_cache *cache, uint64_t key, const struct candidate *c)
{
    struct tune_entry entry = {.key = key, .variant = c->variant, .time_ns = c->time_ns};
    snprintf(entry.kernel, sizeof(entry.kernel), "%s", c->kernel->name);
    tune_cache_put(cache, &entry);
}

static enum status try_step(struct trial *t, struct tune_cache *cache, struct error *err)
{
    enum status status = trial_run(t, err);
    if (t->loser)
        record_loser(cache, t->step, t->loser);
    return status;
}

/* What won at another size; of a list that is another one here, the first. */
static struct candidate *find_similar(struct step *step, const struct tune_entry *entry)
{
    struct candidate *c = find_candidate(step, entry->kernel, entry->variant);
    struct candidate *first = find_candidate(step, entry->kernel, 0);
    bool ranked = (c && c->kernel->ranked_variants) || (first && first->kernel->ranked_variants);
    return ranked ? first : c;
}

/* A quick tuning tries one of the steps that are similar. What won there computes the others; a
 * distrusted kernel is on trial still, but alone. */
static enum status choose_quickly(struct exe *exe, struct step *step, struct tune_cache *cache,
                                  const struct trial *trial, struct error *err)
{
    uint64_t key = quick_key(key_of(step)); /* before the trial adds reasons */
    uint64_t similar_key = with_competitors(step_likeness(exe, step, LIKE_SIMILAR), step, false);
    const struct tune_entry *entry =
        exe->options.retune ? NULL : tune_cache_find(cache, similar_key);
    struct candidate *c = entry ? find_similar(step, entry) : NULL;
    if (c && !c->kernel->distrusted) {
        c->chosen = true;
        return STATUS_OK;
    }
    struct trial t = *trial;
    t.step = step;
    t.favourite = c;
    t.cache = exe->options.retune ? NULL : cache;
    t.operator_key = step_likeness(exe, step, LIKE_OPERATOR);
    TRY(try_step(&t, cache, err));
    remember(cache, key, chosen_of(step));
    if (!entry)
        remember(cache, similar_key, chosen_of(step));
    return STATUS_OK;
}

static enum status choose_tried(struct exe *exe, struct step *step, struct tune_cache *cache,
                                struct trial *trial, struct error *err)
{
    choose_known(exe, step, cache);
    if (chosen_of(step))
        return STATUS_OK;
    if (exe->options.quick_tune)
        return choose_quickly(exe, step, cache, trial, err);
    uint64_t key = key_of(step); /* before the trial adds reasons */
    struct trial t = *trial;
    t.step = step;
    TRY(try_step(&t, cache, err));
    remember(cache, key, chosen_of(step));
    return STATUS_OK;
}

static enum status choose(struct exe *exe, struct step *step, struct tune_cache *cache,
                          struct trial *trial, struct error *err)
{
    const struct step *same = same_before(exe, step);
    if (same) {
        step->candidates = same->candidates;
        step->candidate_count = same->candidate_count;
        return STATUS_OK;
    }
    if (exe_is_on_device(exe)) {
        TRY(gather(exe, step, SIDE_DEVICE, err));
        if (!exe->options.retune)
            record_refuse_losers(cache, step);
        if (any_accepts(step)) {
            enum status status = choose_tried(exe, step, cache, trial, err);
            if (status == STATUS_OK || status == STATUS_LOST || any_accepts(step))
                return status; /* the device itself has failed, not one candidate after another */
        }
    }
    TRY(gather(exe, step, SIDE_HOST, err));
    return choose_tried(exe, step, cache, trial, err);
}

static enum status settle(struct exe *exe, struct step *step, struct error *err)
{
    const struct candidate *c = chosen_of(step);
    step->kernel = c->kernel;
    step->variant = c->variant;
    TRY(kernel_plan(c->kernel, &step->query, c->variant, &step->state, err));
    step->workspace_bytes = kernel_workspace(c->kernel, step->state);
    enum status status =
        kernel_prepare(c->kernel, &step->query, step->state, &step->state_bytes, err);
    if (status != STATUS_OK) {
        kernel_release(c->kernel, step->state);
        step->state = NULL;
        return status;
    }
    step->packs = kernel_packs_each_time(c->kernel, &step->query);
    exe->sizes.weight_bytes += step->state_bytes;
    return STATUS_OK;
}

static struct candidate *next_untried(struct exe *exe, struct step *step, struct error *err)
{
    struct candidate *c = untried(exe, step);
    bool on_device = exe_is_on_device(exe) && exe_runs_on_device(exe, step->kernel);
    if (!c && on_device && gather(exe, step, SIDE_HOST, err) == STATUS_OK)
        c = untried(exe, step);
    return c;
}

/* The first choice was not tried: where it cannot be prepared the next one that accepts is taken,
 * at last one of the host. What is short or lost is so for all. */
static enum status settle_untried(struct exe *exe, struct step *step, struct error *err)
{
    struct error why = {0};
    enum status status;
    while ((status = settle(exe, step, &why)) != STATUS_OK) {
        struct candidate *c = chosen_of(step), *next = NULL;
        if (exe_is_on_device(exe))
            status = device_blame(&exe->on_device->device, exe->on_device->stream, &why);
        if (status != STATUS_NO_MEMORY && status != STATUS_LOST) {
            snprintf(c->reason, sizeof(c->reason), "%.255s", why.message);
            c->chosen = false;
            next = next_untried(exe, step, &why);
        }
        if (!next && err)
            *err = why;
        if (!next)
            return status;
        next->chosen = true;
    }
    return STATUS_OK;
}

static bool takes_untried(const struct exe *exe)
{
    return exe->options.no_tune && !exe->options.only;
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
            status = takes_untried(exe) ? settle_untried(exe, step, err) : settle(exe, step, err);
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
    struct trial trial = {
        .exe = exe, .cold = weights > 8e6 && !exe_is_on_device(exe), .evict = NULL};
    trial.evict = trial.cold ? memory_alloc(TRIAL_EVICT_BYTES) : NULL;
    tune_cache_load(&cache, exe->options.cache);
    cache.build = providers_identity();
    enum status status = tune_all(exe, &cache, &trial, err);
    tune_cache_save(&cache, exe->options.cache);
    tune_cache_release(&cache);
    if (trial.evict)
        memory_free(trial.evict);
    return status;
}
