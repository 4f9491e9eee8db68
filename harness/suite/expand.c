/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/suite/expand.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/hash.h"
#include "collective/backend.h"
#include "engine/run/device.h"
#include "engine/run/provider.h"
#include "harness/suite/point_params.h"
#include "workloads/model_file.h"

enum { AXES_MAX = KEY_COUNT + PARAM_MAX, POINTS_MAX = 5000 };

/* One choice of a value for every axis. */
struct selection {
    const struct suite_entry *entry;
    const struct suite_axis *axis[AXES_MAX]; /* keys, then parameters; NULL: nobody gave it */
    int at[AXES_MAX];
    int sweep[AXES_MAX]; /* axes of several values, the one that varies slowest first */
    int sweep_count;
};

static const char *const scenario_names[SCENARIO_COUNT] = {
    [SCENARIO_SINGLE_STREAM] = "single_stream",
    [SCENARIO_OFFLINE] = "offline",
    [SCENARIO_SERVER] = "server",
};

const char *scenario_name(enum scenario scenario)
{
    return scenario_names[scenario];
}

const char *entry_name(const struct suite_entry *entry)
{
    return entry->workload ? entry->workload->name : entry->path;
}

const struct suite_value *planner_value(const struct planner *planner, enum suite_key_id id)
{
    const struct suite_axis *axis = &planner->usual.axes[id];
    for (int s = 0; s < planner->suite_count; s++)
        if (planner->suites[s].axes[id].count)
            axis = &planner->suites[s].axes[id];
    if (planner->override[id].count)
        axis = &planner->override[id];
    return axis->values;
}

/* ---- the value of a key ---- */

static const struct suite_value *value_of(const struct selection *s, int key)
{
    return s->axis[key] ? &s->axis[key]->values[s->at[key]] : NULL;
}

static const char *text_of(const struct selection *s, int key)
{
    const struct suite_value *value = value_of(s, key);
    return value ? value->text : "";
}

static double number_of(const struct selection *s, int key)
{
    const struct suite_value *value = value_of(s, key);
    return value ? value->number : NAN;
}

static int64_t integer_of(const struct selection *s, int key)
{
    const struct suite_value *value = value_of(s, key);
    return value ? value->integer : 0;
}

static const struct suite_axis *find_axis(const struct planner *planner, const struct suite *suite,
                                          const struct suite_entry *entry, int key)
{
    const struct suite_axis *const order[] = {&planner->override[key], &entry->axes[key],
                                              &suite->axes[key], &planner->usual.axes[key]};
    for (int k = 0; k < ARRAY_COUNT(order); k++)
        if (order[k]->count)
            return order[k];
    return NULL;
}

/* Keys of a workload vary slower than those of [defaults], and those before them in a file slower
 * than those after them; what the command line sweeps varies fastest. */
static int rank(const struct planner *planner, const struct suite_entry *entry, int key,
                const struct suite_axis *axis)
{
    int group = 1;
    if (key >= KEY_COUNT || axis == &entry->axes[key])
        group = 0;
    else if (axis == &planner->override[key])
        group = 2;
    return group * 1000000 + axis->order;
}

static void add_sweep(const struct planner *planner, struct selection *s, int key)
{
    int mine = rank(planner, s->entry, key, s->axis[key]), k = s->sweep_count++;
    for (; k > 0; k--) {
        int other = s->sweep[k - 1];
        if (rank(planner, s->entry, other, s->axis[other]) <= mine)
            break;
        s->sweep[k] = other;
    }
    s->sweep[k] = key;
}

static void select_axes(const struct planner *planner, const struct suite *suite,
                        const struct suite_entry *entry, struct selection *s)
{
    *s = (struct selection){.entry = entry};
    for (int k = KEY_BATCH; k < KEY_COUNT; k++)
        s->axis[k] = find_axis(planner, suite, entry, k);
    for (int k = 0; k < PARAM_MAX; k++)
        s->axis[KEY_COUNT + k] = entry->params[k].count ? &entry->params[k] : NULL;
    for (int k = 0; k < AXES_MAX; k++)
        if (s->axis[k] && s->axis[k]->count > 1)
            add_sweep(planner, s, k);
}

/* The next combination; false after the last. */
static bool advance(struct selection *s)
{
    for (int k = s->sweep_count - 1; k >= 0; k--) {
        int key = s->sweep[k];
        if (++s->at[key] < s->axis[key]->count)
            return true;
        s->at[key] = 0;
    }
    return false;
}

/* ---- texts ---- */

static const char *params_text(struct arena *arena, const struct selection *s)
{
    const struct param *known = s->entry->known;
    const char *words[PARAM_MAX];
    int count = 0;
    for (int k = 0; known && known[k].name && k < PARAM_MAX; k++) {
        const struct suite_value *value = value_of(s, KEY_COUNT + k);
        const char *text = value ? value->text : known[k].value;
        if (strcmp(text, known[k].value) == 0 && !point_states(s->entry->workload, known[k].name))
            continue;
        words[count] = arena_printf(arena, "%s=%s", known[k].name, text);
        if (!words[count++])
            return NULL;
    }
    return point_params_join(arena, words, count);
}

static const char *recompute_text(struct arena *arena, const char *before, const struct point *p)
{
    if (!p->recompute)
        return "";
    return p->segments ? arena_printf(arena, "%srecompute=%lld", before, (long long)p->segments)
                       : arena_printf(arena, "%srecompute=auto", before);
}

static const char *canonical_text(struct arena *arena, const struct point *p)
{
    const char *text = arena_printf(
        arena,
        "workload=%s params=%s mode=%s device=%s precision=%s batch=%lld threads=%d scenario=%s "
        "cache=%s providers=%s",
        p->workload, p->params, p->mode, p->device, p->precision, (long long)p->batch, p->threads,
        scenario_name(p->protocol.scenario), p->protocol.cold ? "cold" : "warm", p->providers);
    if (text && p->ranks)
        text = arena_printf(arena, "%s scaling=%s backend=%s algorithm=", text,
                            p->strong ? "strong" : "weak", p->backend);
    if (text && p->protocol.quick_tune)
        text = arena_printf(arena, "%s tuning=quick", text);
    const char *again = p->ranks ? "" : recompute_text(arena, " ", p);
    text = text && again ? arena_printf(arena, "%s%s", text, again) : NULL;
    if (text && p->protocol.scenario == SCENARIO_SERVER)
        text = arena_printf(arena, "%s bound=%.10g quantile=%.10g", text,
                            p->protocol.latency_bound_s, p->protocol.latency_quantile);
    const char *code = code_choice_canonical(arena, &p->code, p->device);
    return text && code ? arena_printf(arena, "%s%s", text, code) : NULL;
}

void plan_id(const char *canonical, char id[17])
{
    snprintf(id, 17, "%016llx", (unsigned long long)hash_fnv1a(canonical));
}

/* ---- one point ---- */

static bool given(const struct planner *planner, const struct selection *s, int key)
{
    return s->axis[key] != &planner->usual.axes[key];
}

static enum status conflict(struct planner *planner, const struct selection *s, int low, int high)
{
    return FAIL(planner->err, STATUS_FAILED, "%s: %s = %s is above %s = %s of %s",
                s->axis[low]->origin, s->axis[low]->name, text_of(s, low), s->axis[high]->name,
                text_of(s, high), s->axis[high]->origin);
}

/* Where a floor is above a cap, the one that was not given explicitly is adjusted. */
static enum status fill_stop(struct planner *planner, const struct selection *s, struct protocol *p)
{
    if (p->samples_min > p->samples_max) {
        bool low = given(planner, s, KEY_SAMPLES_MIN), high = given(planner, s, KEY_SAMPLES_MAX);
        if (low && high)
            return conflict(planner, s, KEY_SAMPLES_MIN, KEY_SAMPLES_MAX);
        p->samples_min = low ? p->samples_min : p->samples_max;
        p->samples_max = p->samples_min;
    }
    if (p->seconds_min > p->seconds_max) {
        bool low = given(planner, s, KEY_SECONDS_MIN), high = given(planner, s, KEY_SECONDS_MAX);
        if (low && high)
            return conflict(planner, s, KEY_SECONDS_MIN, KEY_SECONDS_MAX);
        p->seconds_min = low ? p->seconds_min : p->seconds_max;
        p->seconds_max = p->seconds_min;
    }
    return STATUS_OK;
}

/* The search of scenario server cannot be divided, and a visit takes at least three samples. */
static int visits_of(const struct protocol *p, int rounds)
{
    int64_t rounds_max = p->scenario == SCENARIO_SERVER ? 1 : p->samples_max / 3;
    return rounds_max < 1 ? 1 : rounds_max < rounds ? (int)rounds_max : rounds;
}

static enum status fill_protocol(struct planner *planner, const struct selection *s,
                                 struct protocol *p)
{
    *p = (struct protocol){
        .cold = integer_of(s, KEY_COLD) != 0,
        .warmup_s = number_of(s, KEY_WARMUP_S),
        .warmup_runs = integer_of(s, KEY_WARMUP_RUNS),
        .samples_min = integer_of(s, KEY_SAMPLES_MIN),
        .samples_max = integer_of(s, KEY_SAMPLES_MAX),
        .seconds_min = number_of(s, KEY_SECONDS_MIN),
        .seconds_max = number_of(s, KEY_SECONDS_MAX),
        .interval = number_of(s, KEY_INTERVAL),
        .latency_bound_s = s->axis[KEY_LATENCY_BOUND] ? number_of(s, KEY_LATENCY_BOUND) : 0,
        .latency_quantile = number_of(s, KEY_QUANTILE),
        .server_queries = integer_of(s, KEY_QUERIES),
        .verify = integer_of(s, KEY_VERIFY) != 0,
        .layers = integer_of(s, KEY_LAYERS) != 0,
        .quick_tune = !planner->code.no_tune && strcmp(text_of(s, KEY_TUNING), "quick") == 0,
        .interval_is_default = !given(planner, s, KEY_INTERVAL),
    };
    for (int k = 0; k < SCENARIO_COUNT; k++)
        if (strcmp(scenario_names[k], text_of(s, KEY_SCENARIO)) == 0)
            p->scenario = (enum scenario)k;
    p->rounds = visits_of(p, planner->plan->rounds);
    if (p->scenario == SCENARIO_SERVER && !s->axis[KEY_LATENCY_BOUND])
        return FAIL(planner->err, STATUS_FAILED,
                    "%s: %s: scenario \"server\" needs a bound: server.latency_bound_s, or "
                    "--latency-bound",
                    s->entry->origin, entry_name(s->entry));
    return fill_stop(planner, s, p);
}

/* Why ranks cannot learn together here; NULL: they can. */
static const char *ranks_reason(struct arena *arena, const struct point *p)
{
    struct error why;
    const struct backend *backend = backend_find(p->backend);
    if (strcmp(p->mode, "training") != 0)
        return "scaling.ranks: ranks learn together, and in mode \"inference\" nothing is learnt";
    if (p->protocol.scenario != SCENARIO_SINGLE_STREAM || p->protocol.cold)
        return "scaling.ranks: steps follow one another, with what caches hold by then";
    if (backend->launcher || backend->device || strcmp(p->device, "cpu") != 0)
        return arena_printf(arena, "ranks of %s on %s: `ridge scale --backend %s` measures them",
                            p->backend, p->device, p->backend);
    if (!backend->separate)
        return arena_printf(arena, "scaling.backend \"%s\": %s", p->backend, backend->summary);
    if (backend_ready(backend, &backend, &why) != STATUS_OK)
        return arena_strdup(arena, why.message);
    if (p->batch % p->ranks)
        return arena_printf(arena, "a batch of %lld cannot be shared by %d ranks",
                            (long long)p->batch, p->ranks);
    return NULL;
}

static const char *threads_reason(struct arena *arena, const struct point *p, int cpus)
{
    if (p->ranks > 1 && p->ranks * p->threads > cpus)
        return arena_printf(arena, "%d ranks of %d threads: this process may use %d CPU%s",
                            p->ranks, p->threads, cpus, cpus == 1 ? "" : "s");
    if (p->threads > cpus)
        return arena_printf(arena, "%d threads: this process may use %d CPU%s", p->threads, cpus,
                            cpus == 1 ? "" : "s");
    return NULL;
}

/* Caches are flushed before a sample, which only in single_stream is one execution of its own. */
static const char *cold_reason(const struct protocol *p)
{
    if (p->cold && p->scenario == SCENARIO_OFFLINE)
        return "cold, scenario \"offline\": of a block only the first execution finds cold caches";
    if (p->cold && p->scenario == SCENARIO_SERVER)
        return "cold, scenario \"server\": queries would wait while caches are flushed";
    return NULL;
}

/* Why it cannot run here; NULL: it can. */
static const char *skip_reason(struct arena *arena, const struct workload *w, const struct point *p,
                               int cpus)
{
    struct error why;
    bool on_device = point_has_device(p);
    if (on_device && device_check(p->device, &why) != STATUS_OK)
        return arena_strdup(arena, why.message);
    if (providers_find(p->providers, &why) != STATUS_OK)
        return arena_strdup(arena, why.message);
    if (workload_batch_check(w, p->ranks ? p->batch / p->ranks : p->batch, &why) != STATUS_OK)
        return arena_strdup(arena, why.message);
    bool trains = strcmp(p->mode, "training") == 0;
    if (p->recompute && !trains)
        return "recompute: only a step of training has activations to compute again";
    if (trains && (!w || !w->training))
        return arena_printf(arena, "mode \"training\": %s has no loss to be trained by",
                            p->workload);
    if (trains && strcmp(p->precision, "f32") != 0)
        return arena_printf(arena, "precision \"%s\": training is in f32", p->precision);
    if (trains && p->protocol.scenario == SCENARIO_SERVER)
        return "scenario \"server\": nobody waits for the answer of a training step";
    enum precision precision;
    if (precision_from_name(p->precision, &precision, &why) != STATUS_OK ||
        !workload_has_precision(w, precision, !on_device))
        return arena_printf(arena, "precision \"%s\": %s cannot run in it on %s", p->precision,
                            p->workload, on_device ? p->device : "the CPU");
    const char *reason = p->ranks ? ranks_reason(arena, p) : cold_reason(&p->protocol);
    return reason ? reason : threads_reason(arena, p, cpus);
}

static enum status fill_model(struct planner *planner, const struct selection *s, struct point *p)
{
    struct arena *arena = &planner->plan->arena;
    const struct workload *w = s->entry->workload;
    p->workload = arena_strdup(arena, entry_name(s->entry));
    p->params = params_text(arena, s);
    p->domain = w ? w->domain : "file";
    if (!p->workload || !p->params)
        return FAIL_NO_MEMORY(planner->err);
    p->spec = *p->params ? arena_printf(arena, "%s:%s", p->workload, p->params) : p->workload;
    if (!p->spec)
        return FAIL_NO_MEMORY(planner->err);
    if (s->axis[KEY_BATCH])
        p->batch = integer_of(s, KEY_BATCH);
    else
        p->batch = w ? w->batch : model_file_batch(p->spec);
    return STATUS_OK;
}

static enum status fill_texts(struct planner *planner, const struct selection *s, struct point *p)
{
    struct arena *arena = &planner->plan->arena;
    char device[DEVICE_NAME_SIZE];
    device_canonical(text_of(s, KEY_DEVICE), device);
    bool learns = p->ranks && !given(planner, s, KEY_MODE);
    p->mode = arena_strdup(arena, learns ? "training" : text_of(s, KEY_MODE));
    p->backend = arena_strdup(arena, text_of(s, KEY_BACKEND));
    p->device = arena_strdup(arena, device);
    p->precision = arena_strdup(arena, text_of(s, KEY_PRECISION));
    p->providers = point_words(arena, text_of(s, KEY_PROVIDERS));
    p->profilers = arena_strdup(arena, text_of(s, KEY_PROFILERS));
    p->origin = arena_strdup(arena, s->entry->origin);
    if (!p->mode || !p->device || !p->precision || !p->providers || !p->profilers || !p->origin ||
        !p->backend)
        return FAIL_NO_MEMORY(planner->err);
    const char *again = recompute_text(arena, ",", p);
    if (p->ranks && again)
        p->params = arena_printf(arena, "%s%sranks=%d%s", p->params, *p->params ? "," : "",
                                 p->ranks, again);
    if (!p->params || !again)
        return FAIL_NO_MEMORY(planner->err);
    p->canonical = canonical_text(arena, p);
    if (!p->canonical)
        return FAIL_NO_MEMORY(planner->err);
    plan_id(p->canonical, p->id);
    return STATUS_OK;
}

/* What several ranks share: threads are those of each, and a batch of each is one of all. */
static void divide_among_ranks(const struct planner *planner, const struct selection *s,
                               struct point *p)
{
    const struct suite_axis *ranks = s->axis[KEY_RANKS];
    if (!ranks)
        return;
    for (int k = 0; k < ranks->count; k++)
        p->ranks_most = ranks->values[k].integer > p->ranks_most ? (int)ranks->values[k].integer
                                                                 : p->ranks_most;
    p->ranks = (int)integer_of(s, KEY_RANKS);
    p->strong = integer_of(s, KEY_STRONG) != 0;
    p->steps = integer_of(s, KEY_STEPS);
    p->protocol.rounds = 1;
    if (!p->strong)
        p->batch *= p->ranks;
    if (value_of(s, KEY_THREADS)->is_word)
        p->threads = planner->usual.cpus / p->ranks_most;
    p->threads = p->threads > 1 ? p->threads : 1;
}

static enum status make_point(struct planner *planner, const struct selection *s, struct point *p)
{
    const struct workload *w = s->entry->workload;
    *p = (struct point){
        .threads = (int)integer_of(s, KEY_THREADS), .code = planner->code, .estimate_s = NAN};
    p->recompute = integer_of(s, KEY_RECOMPUTE) != 0;
    p->segments = p->recompute ? integer_of(s, KEY_SEGMENTS) : 0;
    if (p->segments == 1)
        return FAIL(planner->err, STATUS_FAILED,
                    "%s: segments = 1: of a single segment nothing is computed again; take 2 or "
                    "more, or 0",
                    s->axis[KEY_SEGMENTS]->origin);
    TRY(fill_model(planner, s, p));
    TRY(fill_protocol(planner, s, &p->protocol));
    divide_among_ranks(planner, s, p);
    TRY(fill_texts(planner, s, p));
    p->skip = skip_reason(&planner->plan->arena, w, p, planner->usual.cpus);
    return STATUS_OK;
}

/* ---- the list ---- */

static enum status append(struct planner *planner, const struct point *point)
{
    struct plan *plan = planner->plan;
    for (int k = 0; k < plan->count; k++) {
        if (strcmp(plan->points[k].id, point->id) != 0)
            continue;
        if (planner->overridden || k >= planner->first)
            return STATUS_OK; /* a bound has several values, but this scenario has none */
        return FAIL(planner->err, STATUS_FAILED,
                    "%s: %s, batch %lld, %d threads is there twice, "
                    "first at %s",
                    point->origin, point->spec, (long long)point->batch, point->threads,
                    plan->points[k].origin);
    }
    if (plan->count == POINTS_MAX)
        return FAIL(planner->err, STATUS_FAILED, "%s: more than %d points", point->origin,
                    POINTS_MAX);
    struct point *points = arena_grow(&plan->arena, plan->points, &planner->capacity,
                                      (size_t)plan->count + 1, sizeof(*points));
    if (!points)
        return FAIL_NO_MEMORY(planner->err);
    plan->points = points;
    points[plan->count++] = *point;
    return STATUS_OK;
}

/* A key of the workload itself that none of its points makes use of would be ignored silently.
 * One of [defaults] may be meant for other workloads. */
static enum status check_effects(const struct planner *planner, const struct suite_entry *entry,
                                 bool ranks, bool recomputes, bool serves)
{
    const struct {
        enum suite_key_id key;
        bool used;
        const char *table, *lacks;
    } rows[] = {
        {KEY_STRONG, ranks, "scaling.", "there are no scaling.ranks"},
        {KEY_BACKEND, ranks, "scaling.", "there are no scaling.ranks"},
        {KEY_STEPS, ranks, "scaling.", "there are no scaling.ranks"},
        {KEY_SEGMENTS, recomputes, "", "nothing here has recompute = true"},
        {KEY_LATENCY_BOUND, serves, "server.", "nothing here has scenario = \"server\""},
        {KEY_QUANTILE, serves, "server.", "nothing here has scenario = \"server\""},
        {KEY_QUERIES, serves, "server.", "nothing here has scenario = \"server\""},
    };
    for (int k = 0; k < ARRAY_COUNT(rows); k++)
        if (entry->axes[rows[k].key].count && !rows[k].used)
            return FAIL(planner->err, STATUS_FAILED, "%s: %s: %s%s has no effect: %s",
                        entry->axes[rows[k].key].origin, entry_name(entry), rows[k].table,
                        entry->axes[rows[k].key].name, rows[k].lacks);
    return STATUS_OK;
}

enum status expand_entry(struct planner *planner, const struct suite *suite,
                         const struct suite_entry *entry)
{
    struct selection selection;
    select_axes(planner, suite, entry, &selection);
    bool ranks = selection.axis[KEY_RANKS], recomputes = false;
    bool serves = planner->override[KEY_SCENARIO].count; /* which may have taken it away */
    planner->first = planner->plan->count;
    do {
        struct point point;
        TRY(make_point(planner, &selection, &point));
        TRY(append(planner, &point));
        recomputes = recomputes || point.recompute;
        serves = serves || point.protocol.scenario == SCENARIO_SERVER;
    } while (advance(&selection));
    return check_effects(planner, entry, ranks, recomputes, serves);
}
