/* SPDX-License-Identifier: Apache-2.0
 *
 * From arguments to points: every argument becomes a suite, and every entry of a suite is expanded
 * to all combinations of its values. The value of a key is the command line's, else the entry's,
 * else that of [defaults], else the default. */
#include "harness/suite/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/cpus.h"
#include "base/system/hash.h"
#include "engine/run/device.h"
#include "harness/suite/expand.h"

/* The overrides as axes: option, key, where its text is. */
struct override_row {
    const char *option;
    enum suite_key_id key;
    const char *text;
};

static enum status add_override(struct planner *planner, const struct override_row *row)
{
    if (!row->text)
        return STATUS_OK;
    planner->overridden = true;
    return suite_axis_from_text(&planner->usual, row->key, row->option, row->text,
                                &planner->override[row->key], planner->err);
}

static enum status read_overrides(struct planner *planner, const struct plan_overrides *o)
{
    char samples[32], seconds[32], seconds_max[32], budget[32];
    snprintf(samples, sizeof(samples), "%lld", (long long)o->samples);
    snprintf(seconds, sizeof(seconds), "%.10g", o->seconds.value);
    snprintf(seconds_max, sizeof(seconds_max), "%.10g", o->seconds_max);
    snprintf(budget, sizeof(budget), "%.10g", o->budget_s.value);
    const struct override_row rows[] = {
        {"--batch", KEY_BATCH, o->batch},
        {"--threads", KEY_THREADS, o->threads},
        {"--providers", KEY_PROVIDERS, o->providers},
        {"--quick-tune", KEY_TUNING, o->tuning},
        {"--device", KEY_DEVICE, o->device},
        {"--precision", KEY_PRECISION, o->precision},
        {"--mode", KEY_MODE, o->mode},
        {"--recompute", KEY_RECOMPUTE, o->recompute ? "true" : NULL},
        {"--segments", KEY_SEGMENTS, o->segments},
        {"--scenario", KEY_SCENARIO, o->scenario},
        {"--profilers", KEY_PROFILERS, o->profilers},
        {"--interval", KEY_INTERVAL, o->interval},
        {"--latency-bound", KEY_LATENCY_BOUND, o->latency_bound},
        {"--quantile", KEY_QUANTILE, o->quantile},
        {"--samples", KEY_SAMPLES_MIN, o->samples ? samples : NULL},
        {"--seconds", KEY_SECONDS_MIN, o->seconds.given ? seconds : NULL},
        {"--seconds-max", KEY_SECONDS_MAX, o->seconds_max != 0 ? seconds_max : NULL},
        {"--budget", KEY_BUDGET, o->budget_s.given ? budget : NULL},
        {"--rounds", KEY_ROUNDS, o->rounds},
        {"--cold", KEY_COLD, o->cold ? "true" : NULL},
        {"--no-verify", KEY_VERIFY, o->no_verify ? "false" : NULL},
        {"--no-layers", KEY_LAYERS, o->no_layers ? "false" : NULL},
        {"--no-ceilings", KEY_CEILINGS, o->no_ceilings ? "false" : NULL},
        {"--db", KEY_DB, o->db},
        {"--report", KEY_REPORT, o->report},
        {"--no-report", KEY_REPORT, o->no_report ? "" : NULL},
    };
    for (int k = 0; k < ARRAY_COUNT(rows); k++)
        TRY(add_override(planner, &rows[k]));
    return STATUS_OK;
}

static enum status read_usual(struct planner *planner)
{
    for (int k = 0; k < KEY_COUNT; k++) {
        const struct suite_key *key = suite_key((enum suite_key_id)k);
        if (key->usual)
            TRY(suite_axis_from_text(&planner->usual, (enum suite_key_id)k, key->name, key->usual,
                                     &planner->usual.axes[k], planner->err));
    }
    return STATUS_OK;
}

/* ---- only ---- */

static bool list_has(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* Every name of --only must match something; one that does not is a typing error. */
static enum status check_only(const struct planner *planner, const char *only)
{
    enum { NAMES_MAX = 256 };
    const char *names[NAMES_MAX];
    int count = 0;
    for (int s = 0; s < planner->suite_count; s++)
        for (size_t k = 0; k < planner->suites[s].count && count < NAMES_MAX; k++)
            names[count++] = entry_name(&planner->suites[s].entries[k]);
    for (const char *at = only; at; at = strchr(at, ',')) {
        at += *at == ',';
        char name[256];
        bool found = false;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, ","), at);
        for (int k = 0; k < count; k++)
            found = found || strcmp(names[k], name) == 0;
        const char *near = found ? NULL : nearest_word(name, names, count);
        if (near)
            return FAIL(planner->err, STATUS_FAILED,
                        "--only: \"%s\" is not in the suite, did you mean \"%s\"?", name, near);
        if (!found)
            return FAIL(planner->err, STATUS_FAILED,
                        "--only: \"%s\" is not in the suite; `ridge plan` shows what is", name);
    }
    return STATUS_OK;
}

/* ---- suites ---- */

static bool ends_in(const char *word, const char *end)
{
    size_t length = strlen(word), tail = strlen(end);
    return length > tail && strcmp(word + length - tail, end) == 0;
}

static bool is_suite(const char *word)
{
    return ends_in(word, ".toml") || (!workload_find(word) && !workload_is_file(word) &&
                                      !strchr(word, ':') && suite_exists(word));
}

static enum status add_suite(struct planner *planner, const char *word)
{
    struct suite *suite = &planner->suites[planner->suite_count];
    int cpus = planner->usual.cpus;
    if (is_suite(word)) {
        TRY(suite_load(word, cpus, suite, planner->err));
        planner->suite_count++;
        return STATUS_OK;
    }
    *suite = (struct suite){.path = NULL, .text = "", .cpus = cpus};
    planner->suite_count++;
    return suite_add_word(suite, word, planner->err);
}

/* What the plan says about its origin, and what concerns the plan as a whole. */
static enum status describe(struct planner *planner)
{
    struct plan *plan = planner->plan;
    plan->suite = "";
    plan->suite_text = "";
    for (int s = 0; s < planner->suite_count; s++) {
        const struct suite *suite = &planner->suites[s];
        if (!suite->path)
            continue;
        plan->suite =
            arena_printf(&plan->arena, "%s%s%s", plan->suite, *plan->suite ? " " : "", suite->path);
        plan->suite_text = arena_printf(&plan->arena, "%s%s", plan->suite_text, suite->text);
        if (!plan->suite || !plan->suite_text)
            return FAIL_NO_MEMORY(planner->err);
    }
    if (!*plan->suite)
        plan->suite = "command line";
    plan->db = arena_strdup(&plan->arena, planner_value(planner, KEY_DB)->text);
    plan->report = arena_strdup(&plan->arena, planner_value(planner, KEY_REPORT)->text);
    plan->ceilings = planner_value(planner, KEY_CEILINGS)->truth;
    plan->budget_s = planner_value(planner, KEY_BUDGET)->number;
    plan->rounds = (int)planner_value(planner, KEY_ROUNDS)->integer;
    if (plan->db && !*plan->db)
        return FAIL(planner->err, STATUS_FAILED,
                    "the database has no name: --db, or db of [output]; --no-db stores nothing");
    return plan->db && plan->report ? STATUS_OK : FAIL_NO_MEMORY(planner->err);
}

static enum status expand_all(struct planner *planner, const char *only)
{
    if (only)
        TRY(check_only(planner, only));
    for (int s = 0; s < planner->suite_count; s++)
        for (size_t k = 0; k < planner->suites[s].count; k++) {
            const struct suite_entry *entry = &planner->suites[s].entries[k];
            if (!only || list_has(only, entry_name(entry)))
                TRY(expand_entry(planner, &planner->suites[s], entry));
        }
    uint64_t hash = hash_fnv1a("");
    for (int k = 0; k < planner->plan->count; k++) {
        char text[40];
        snprintf(text, sizeof(text), "%016llx %s", (unsigned long long)hash,
                 planner->plan->points[k].id);
        hash = hash_fnv1a(text);
    }
    snprintf(planner->plan->hash, sizeof(planner->plan->hash), "%016llx", (unsigned long long)hash);
    return STATUS_OK;
}

/* An option that no point makes use of would be ignored silently. */
static enum status check_effects(const struct planner *planner, const struct plan_overrides *o)
{
    const struct plan *plan = planner->plan;
    bool recomputes = false, serves = false;
    for (int k = 0; k < plan->count; k++) {
        recomputes = recomputes || plan->points[k].recompute;
        serves = serves || plan->points[k].protocol.scenario == SCENARIO_SERVER;
    }
    if (o->segments && !recomputes)
        return FAIL(planner->err, STATUS_FAILED, "--segments belongs to --recompute");
    if ((o->latency_bound || o->quantile) && !serves)
        return FAIL(planner->err, STATUS_FAILED, "--%s belongs to --scenario server",
                    o->latency_bound ? "latency-bound" : "quantile");
    return STATUS_OK;
}

static enum status make(struct planner *planner, char *const *words, int count,
                        const struct plan_overrides *overrides)
{
    TRY(read_usual(planner));
    if (overrides->no_report && overrides->report)
        return FAIL(planner->err, STATUS_FAILED,
                    "--report says where the report goes, and --no-report writes none");
    TRY(read_overrides(planner, overrides));
    for (int k = 0; k < count; k++)
        TRY(add_suite(planner, words[k]));
    TRY(describe(planner));
    planner->plan->order_seed = overrides->order_seed;
    TRY(expand_all(planner, overrides->only));
    return check_effects(planner, overrides);
}

enum status plan_from_words(char *const *words, int count, const struct plan_overrides *overrides,
                            struct plan *plan, struct error *err)
{
    static const struct plan_overrides nothing = {.batch = NULL};
    char suite_toml[] = "suite.toml", quick[] = "quick";
    char *const usual[] = {access(suite_toml, R_OK) == 0 ? suite_toml : quick};
    if (count == 0)
        return plan_from_words(usual, 1, overrides, plan, err);
    if (!overrides)
        overrides = &nothing;
    *plan = (struct plan){.count = 0};
    struct planner planner = {.plan = plan, .err = err, .code = overrides->code};
    planner.usual.cpus = overrides->cpus > 0 ? overrides->cpus : cpus_allowed();
    planner.suites = calloc((size_t)count, sizeof(*planner.suites));
    enum status status =
        planner.suites ? make(&planner, words, count, overrides) : FAIL_NO_MEMORY(err);
    for (int s = 0; s < planner.suite_count; s++)
        suite_release(&planner.suites[s]);
    suite_release(&planner.usual);
    free(planner.suites);
    if (status != STATUS_OK)
        plan_release(plan);
    return status;
}

void plan_release(struct plan *plan)
{
    arena_release(&plan->arena);
    *plan = (struct plan){.count = 0};
}

bool point_is_null(const struct point *point)
{
    return strcmp(point->device, "null") == 0;
}

bool point_has_device(const struct point *point)
{
    return !point_is_null(point) && !device_is_host(point->device);
}
