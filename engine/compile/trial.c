/* SPDX-License-Identifier: Apache-2.0
 *
 * One step's candidates on trial. Each candidate runs once on generated data and is compared with
 * the reference; one that is wrong, crashes or hangs is refused with its reason. A distrusted
 * kernel makes that first run in a child process (engine/run/probe.h). The right ones are timed.
 *
 * First the first variant of every kernel, then further variants of those kernels whose first one
 * took at most `variant_gain` times the best. On the host candidates are timed in turns
 * (trial_turns.c), on a device as captured launches (trial_device_time.c). The reference kernel is
 * tried only where nothing else is right.
 *
 * Products too large for the plain reference, and everything in a quick tuning, are compared with
 * the first native kernel, which the operator tests have proven; on a device with the first kernel
 * that came with the device. */
#include "engine/compile/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "engine/ops/family/narrow.h"
#include "engine/reference/ref_odd.h"
#include "engine/reference/reference.h"
#include "engine/run/probe.h"

enum { PROBE_OUTPUTS = 8, PROBE_MS = 20000 };
static const double reference_macs = 6e9;
static const double variant_gain = 1.6;
static const double alike = 1.05; /* on a device: clocks move by as much between two candidates */

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
            trial_fill(t->exe, v, t->in[k]);
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
            memory_free(t->in[k]);
    for (int k = 0; t->out && k < node->output_count; k++)
        if (t->out[k])
            memory_free(t->out[k]);
    for (int k = 0; t->expected && k < node->output_count; k++)
        ref_release(&t->expected[k]);
    trial_device_close(t);
    free(t->in);
    free(t->out);
    free(t->expected);
}

/* Where nothing lies between the elements, their order in memory is as good as any other for
 * comparing, and faster. */
static struct desc order_of(const struct desc *desc)
{
    return desc_is_dense(desc) ? desc_dense(desc->dtype, &desc->shape, LAYOUT_PLAIN) : *desc;
}

static enum status read_from(const struct desc *desc, const void *data, struct ref_tensor *r,
                             struct error *err)
{
    *r = (struct ref_tensor){
        .dtype = desc->dtype, .shape = desc->shape, .count = shape_count(&desc->shape)};
    void *memory = malloc((size_t)r->count * 8 + 8);
    if (!memory)
        return FAIL_NO_MEMORY(err);
    ref_place(r, memory);
    ref_load(r, desc, data);
    return STATUS_OK;
}

/* With tf32 both factors of a product are rounded to f16's 10 bits of mantissa. */
static double bound_of(const struct kernel_query *q, const struct kernel *kernel, enum dtype out)
{
    const struct op *op = q->node->op;
    double bound = op->tolerance > 0 ? op->tolerance : 1e-5;
    double tf32 = q->tf32 && out == DTYPE_F32 ? 2 * narrow_tolerance(op, DTYPE_F16) : 0;
    return fmax(kernel->rel_error, bound) + narrow_tolerance(op, out) + tf32;
}

/* Of output k, whose expectation is known. */
static enum status error_of(const struct trial *t, int k, double *error, struct error *err)
{
    struct ref_tensor got, *expected = &t->expected[k];
    const struct desc *out = &t->step->query.out[k];
    if (expected->f && desc_is_dense(out)) {
        *error = ref_native_error(t->exe->pool, out->dtype, t->out[k], expected,
                                  t->on_device ? t->on_device->looked_at[k] : NULL);
        return isnan(*error) ? FAIL_NO_MEMORY(err) : STATUS_OK;
    }
    struct desc order = order_of(out);
    TRY(read_from(&order, t->out[k], &got, err));
    *error = ref_rel_error(&got, expected);
    ref_release(&got);
    return STATUS_OK;
}

/* What no bound speaks of: NaN, infinities. On a device that fetched a sample of the output alone
 * the error must do. */
static void odd_of(const struct trial *t, int k, double error, char *text, size_t size)
{
    struct ref_tensor got;
    struct ref_odd odd;
    const struct desc *out = &t->step->query.out[k];
    struct desc order = order_of(out);
    bool sampled = t->on_device && t->on_device->looked_at[k];
    text[0] = '\0';
    if (isfinite(error) || sampled || read_from(&order, t->out[k], &got, NULL) != STATUS_OK)
        return;
    bool plain = desc_same_memory(&order, out);
    struct shape line = {.rank = 1, .dim = {got.count}};
    ref_odd_count(&got, &t->expected[k], false, &odd);
    ref_odd_text(&odd, plain ? &out->shape : &line, text, size);
    ref_release(&got);
}

/* Compares the outputs with what is expected; the first candidate sets the expectation. */
static enum status judge(struct trial *t, const struct kernel *kernel, struct error *err)
{
    const struct node *node = t->step->query.node;
    for (int k = 0; k < node->output_count; k++) {
        const struct desc *out = &t->step->query.out[k];
        if (node->outputs[k] == NONE)
            continue;
        if (!t->expected[k].f && !t->expected[k].i) {
            struct desc order = order_of(out);
            TRY(read_from(&order, t->out[k], &t->expected[k], err));
            t->truth = kernel;
            continue;
        }
        double error = NAN, bound = bound_of(&t->step->query, kernel, out->dtype);
        TRY(error_of(t, k, &error, err));
        char odd[160];
        odd_of(t, k, error, odd, sizeof(odd));
        if (odd[0])
            return FAIL(err, STATUS_INVALID, "wrong: %s in output %d, compared with %s", odd, k,
                        t->truth ? t->truth->name : "the reference");
        if (!(error <= bound))
            return FAIL(err, STATUS_INVALID,
                        "wrong: relative error %.2g > %.2g in output %d, compared with %s", error,
                        bound, k, t->truth ? t->truth->name : "the reference");
    }
    return STATUS_OK;
}

static bool knows_result(const struct trial *t)
{
    const struct node *node = t->step->query.node;
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NONE && !t->expected[k].f && !t->expected[k].i)
            return false;
    return true;
}

/* What all candidates are compared with. */
static void expect_from_reference(struct trial *t)
{
    struct kernel_state *state;
    if (kernel_plan(&kernel_reference, &t->step->query, 0, &state, NULL) != STATUS_OK)
        return; /* then the first native kernel sets the expectation */
    size_t bytes = kernel_workspace(&kernel_reference, state);
    void *workspace = memory_alloc(bytes);
    struct error why = {0};
    if (workspace)
        trial_run_once(t, &kernel_reference, state, workspace, &why);
    if (workspace && why.code == STATUS_OK)
        judge(t, &kernel_reference, NULL);
    memory_free(workspace);
    kernel_release(&kernel_reference, state);
}

/* The first call of a distrusted kernel happens in a child that may die of it, and shows there
 * whether it writes outside its outputs. What it writes is judged later. */
static enum status probe(const struct trial *t, const struct candidate *c, struct error *err)
{
    const double *expected[PROBE_OUTPUTS] = {NULL};
    if (t->step->query.node->output_count > PROBE_OUTPUTS)
        return UNSUPPORTED(err, "more outputs than a probe has room for");
    struct probe_data data = {.in = (const void *const *)t->in, .expected = expected};
    return probe_kernel(c->kernel, &t->step->query, c->variant, &data, PROBE_MS, err);
}

/* So that the first run, which shows whether a long launch is worth a second, does not wait for the
 * pages of a large workspace: in a network they have long been there. */
static void touch_pages(char *memory, size_t bytes)
{
    enum { PAGE = 4096 };
    for (size_t k = 0; k < bytes; k += PAGE)
        ((volatile char *)memory)[k] = 0;
}

/* Prepares and checks; it takes its turns with the others, who then own its state. */
static enum status try_here(struct trial *t, struct entrant *e, struct turns *turns,
                            struct error *err)
{
    const struct kernel *kernel = e->candidate->kernel;
    TRY(kernel_prepare(kernel, &t->step->query, e->state, &e->bytes, err));
    e->workspace_bytes = kernel_workspace(kernel, e->state);
    e->workspace = memory_alloc(e->workspace_bytes);
    if (!e->workspace)
        return FAIL_NO_MEMORY(err);
    touch_pages(e->workspace, e->workspace_bytes);
    struct error why = {0};
    e->first_ns = trial_run_once(t, kernel, e->state, e->workspace, &why);
    enum status status = why.code ? FAIL_NO_MEMORY(err) : judge(t, kernel, err);
    if (status == STATUS_OK && kernel != &kernel_reference)
        turns_enter(t, turns, e);
    else
        memory_free(e->workspace);
    return status;
}

/* Plans, prepares, checks and enters one candidate of the host. */
static enum status try_on_host(struct trial *t, struct candidate *c, struct turns *turns,
                               struct error *err)
{
    struct entrant e = {.candidate = c};
    const struct kernel *kernel = c->kernel;
    if (kernel->distrusted) {
        if (t->expected[0].f == NULL && t->expected[0].i == NULL)
            expect_from_reference(t);
        TRY(probe(t, c, err));
    }
    TRY(kernel_plan(kernel, &t->step->query, c->variant, &e.state, err));
    enum status status = try_here(t, &e, turns, err);
    if (status != STATUS_OK || kernel == &kernel_reference) /* otherwise the turns have it */
        kernel_release(kernel, e.state);
    return status;
}

static bool is_first_variant(const struct step *step, int k)
{
    return k == 0 || step->candidates[k - 1].kernel != step->candidates[k].kernel;
}

/* Of further variants of a kernel a sample is looked at. */
static enum status check_on_device(struct trial *t, struct contestant *own, struct error *err)
{
    bool known = knows_result(t);
    struct candidate *c = own->candidate;
    bool whole = !known || is_first_variant(t->step, (int)(c - t->step->candidates));
    TRY(trial_device_run(t, own, whole, err));
    TRY(judge(t, c->kernel, err));
    if (!known)
        snprintf(c->note, sizeof(c->note), "compared with nothing, others with it");
    return STATUS_OK;
}

/* Prepares, checks and times one candidate of the device. */
static enum status try_on_device(struct trial *t, struct candidate *c, bool timed,
                                 struct error *err)
{
    struct contestant own = {.candidate = c};
    TRY(trial_device_open(t, err));
    enum status status = trial_device_prepare(t, &own, err);
    if (status == STATUS_OK)
        status = check_on_device(t, &own, err);
    if (status == STATUS_OK && timed)
        status = trial_device_time(t, &own, err);
    trial_device_release(t, &own);
    return status;
}

static bool is_on_device(const struct trial *t, const struct kernel *kernel)
{
    return exe_is_on_device(t->exe) && exe_runs_on_device(t->exe, kernel);
}

static enum status try_candidate(struct trial *t, struct candidate *c, struct turns *turns,
                                 struct error *err)
{
    return is_on_device(t, c->kernel) ? try_on_device(t, c, true, err)
                                      : try_on_host(t, c, turns, err);
}

/* Keeps who was on trial when the device was lost, whom nobody must try after that. */
static void check_lost(struct trial *t, const struct candidate *c, struct error *why)
{
    struct exe_device *on_device = t->exe->on_device;
    if (!on_device || device_blame(&on_device->device, on_device->stream, why) != STATUS_LOST)
        return;
    t->lost = *why;
    t->loser = c;
    error_context(&t->lost, "device lost with %s, variant %d%s%s%s on trial", c->kernel->name,
                  c->variant, c->text[0] ? " (" : "", c->text, c->text[0] ? ")" : "");
}

/* ---- all of them ---- */

static void refuse(struct trial *t, struct candidate *c, struct error *why)
{
    check_lost(t, c, why);
    t->short_of_memory = t->short_of_memory || why->code == STATUS_NO_MEMORY;
    snprintf(c->reason, sizeof(c->reason), "%.255s", why->message);
}

/* What came with the device computes what the others are compared with: its kernels have been
 * proven on all cases of the operators, a library's are taken on trust otherwise. */
static void expect_from_own(struct trial *t)
{
    for (int k = 0; k < t->step->candidate_count && !knows_result(t) && !t->lost.code; k++) {
        struct candidate *c = &t->step->candidates[k];
        struct error why = {0};
        if (c->reason[0] || !is_on_device(t, c->kernel) ||
            strcmp(c->kernel->provider, exe_device(t->exe)->kind->name) != 0)
            continue;
        if (try_on_device(t, c, false, &why) != STATUS_OK)
            refuse(t, c, &why);
        c->note[0] = 0;
    }
}

/* One step that cannot be captured spoils the replay of all. */
static bool is_better(const struct candidate *c, const struct candidate *winner)
{
    if (!winner || c->uncaptured != winner->uncaptured)
        return !winner || winner->uncaptured;
    return c->time_ns < winner->time_ns;
}

static void take_lead(struct trial *t, struct candidate *c, struct candidate **winner)
{
    *winner = c;
    if (t->on_device && !c->uncaptured)
        t->on_device->best_ns = c->time_ns;
}

/* The reference runs only where nothing else does. */
static void try_one(struct trial *t, int k, struct turns *turns, struct candidate **winner)
{
    struct candidate *c = &t->step->candidates[k];
    struct error why = {0};
    bool have = *winner || turns->count;
    if (c->reason[0] || t->lost.code || (have && c->kernel == &kernel_reference))
        return;
    if (have && t->cache && record_is_hopeless(t, c->kernel)) {
        snprintf(c->reason, sizeof(c->reason),
                 "not tried by a quick tuning: much slower on other steps like this");
        return;
    }
    if (try_candidate(t, c, turns, &why) != STATUS_OK)
        refuse(t, c, &why);
    else if (!turns->count && is_better(c, *winner))
        take_lead(t, c, winner);
}

/* A kernel whose first variant is much slower is not tried with others: variants differ by less,
 * unless the kernel says otherwise. */
static void try_variants(struct trial *t, struct turns *turns, struct candidate **winner)
{
    struct step *step = t->step;
    const struct candidate *first = NULL, *best = *winner;
    for (int k = 0; k < step->candidate_count; k++) {
        struct candidate *c = &step->candidates[k];
        if (is_first_variant(step, k)) {
            first = c;
            continue;
        }
        if (t->exe->options.quick_tune && !c->reason[0])
            snprintf(c->reason, sizeof(c->reason), "%s: not tried by a quick tuning", c->text);
        double slower = best && !first->reason[0] ? first->time_ns / best->time_ns : 1;
        if (!c->reason[0] && slower > variant_gain && !c->kernel->unlike_variants)
            snprintf(c->reason, sizeof(c->reason),
                     "%s: not tried, the kernel's first variant is %.1f times slower than the best",
                     c->text, slower);
        try_one(t, k, turns, winner);
    }
}

static struct candidate *try_each(struct trial *t, struct turns *turns)
{
    struct candidate *winner = NULL;
    for (int k = 0; k < t->step->candidate_count; k++)
        if (is_first_variant(t->step, k))
            try_one(t, k, turns, &winner);
    if (turns->count)
        winner = turns_play(t, turns, TURNS_FIRST);
    try_variants(t, turns, &winner);
    return turns->count ? turns_play(t, turns, TURNS_LAST) : winner;
}

static struct candidate *try_favourite(struct trial *t, struct turns *turns)
{
    struct candidate *winner = NULL;
    try_one(t, (int)(t->favourite - t->step->candidates), turns, &winner);
    return turns->count ? turns_play(t, turns, TURNS_FIRST) : winner;
}

/* ---- the end on a device ---- */

static bool competes(const struct trial *t, const struct candidate *c)
{
    return !c->reason[0] && c->time_ns > 0 && is_on_device(t, c->kernel);
}

/* The two best, if they are nearly alike, are timed once more, in turns. */
static struct candidate *last_look(struct trial *t, struct candidate *winner)
{
    struct candidate *second = NULL;
    struct error why = {0};
    for (int k = 0; k < t->step->candidate_count; k++) {
        struct candidate *c = &t->step->candidates[k];
        if (c != winner && competes(t, c) && c->uncaptured == winner->uncaptured &&
            is_better(c, second))
            second = c;
    }
    if (!second || second->time_ns > alike * winner->time_ns)
        return winner;
    if (trial_device_compare(t, winner, second, &why) == STATUS_OK)
        return is_better(second, winner) ? second : winner;
    check_lost(t, winner, &why);
    return winner;
}

static void refuse_uncaptured(const struct trial *t, const struct candidate *winner)
{
    for (int k = 0; k < t->step->candidate_count && !winner->uncaptured; k++) {
        struct candidate *c = &t->step->candidates[k];
        if (c->uncaptured && competes(t, c))
            snprintf(c->reason, sizeof(c->reason), "%.60s%s%.4g us, but it %.150s", c->text,
                     c->text[0] ? ": " : "", c->time_ns * 1e-3, c->note);
    }
}

static struct candidate *end_on_device(struct trial *t, struct candidate *winner)
{
    if (!winner || t->lost.code || !is_on_device(t, winner->kernel))
        return winner;
    if (!t->exe->options.quick_tune)
        winner = last_look(t, winner);
    refuse_uncaptured(t, winner);
    return winner;
}

static enum status try_all(struct trial *t, struct error *err)
{
    struct step *step = t->step;
    struct turns turns = {.count = 0};
    if (step->cost.macs <= reference_macs && !t->exe->options.quick_tune)
        expect_from_reference(t);
    if (exe_is_on_device(t->exe) && !knows_result(t))
        expect_from_own(t);
    struct candidate *winner = t->favourite ? try_favourite(t, &turns) : NULL;
    winner = winner || t->lost.code ? winner : try_each(t, &turns);
    turns_release(&turns);
    winner = end_on_device(t, winner);
    if (t->lost.code) {
        if (err)
            *err = t->lost;
        return STATUS_LOST;
    }
    if (!winner)
        return FAIL(err, t->short_of_memory ? STATUS_NO_MEMORY : STATUS_FAILED,
                    "no kernel computes node \"%s\" (%s)", step->query.node->name,
                    step->query.node->op->name);
    winner->chosen = true;
    if (t->cache)
        record_outcome(t, winner);
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
