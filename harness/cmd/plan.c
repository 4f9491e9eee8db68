/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge plan: what `ridge run` with the same arguments would measure, without measuring it. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text/json.h"
#include "base/text/table.h"
#include "harness/campaign/plan_time.h"
#include "harness/cli/command.h"
#include "harness/model/model_options.h"

struct values {
    struct model_options model; /* of which code choices are part of a point's id */
    struct plan_overrides plan;
    bool json;
};

static const struct option options[] = {
    PLAN_OPTIONS(struct values, plan),
    COMPILE_OPTIONS(struct values),
    {"json", 0, OPTION_FLAG, offsetof(struct values, json), NULL, "machine-readable"},
    {.name = NULL},
};

static int count_over_budget(const struct plan *plan)
{
    int count = 0;
    for (int k = 0; k < plan->count; k++)
        count += plan->points[k].over_budget;
    return count;
}

/* Of sampling alone, over the points that run; `unknown` of these have no end that is known before.
 */
static struct time_range sum_of_ranges(const struct plan *plan, int *running, int *unknown)
{
    struct time_range sum = {0, 0};
    *running = *unknown = 0;
    for (int k = 0; k < plan->count; k++) {
        struct time_range range = plan_time_range(&plan->points[k]);
        if (plan->points[k].skip || plan->points[k].over_budget)
            continue;
        sum.shortest_s += range.shortest_s;
        sum.longest_s += isnan(range.longest_s) ? 0 : range.longest_s;
        *unknown += isnan(range.longest_s);
        ++*running;
    }
    return sum;
}

/* Sum over the points that were measured before, and how many these are. */
static double sum_of_estimates(const struct plan *plan, int *known)
{
    double sum = 0;
    *known = 0;
    for (int k = 0; k < plan->count; k++) {
        if (plan->points[k].skip || plan->points[k].over_budget ||
            isnan(plan->points[k].estimate_s))
            continue;
        sum += plan->points[k].estimate_s;
        ++*known;
    }
    return sum;
}

/* ---- JSON ---- */

static void protocol_json(struct json *json, const struct protocol *p)
{
    json_open(json, "protocol", '{');
    json_text(json, "scenario", scenario_name(p->scenario));
    json_bool(json, "cold", p->cold);
    json_number(json, "warmup_s", p->warmup_s);
    json_int(json, "warmup_runs", p->warmup_runs);
    json_int(json, "samples_min", p->samples_min);
    json_int(json, "samples_max", p->samples_max);
    json_number(json, "seconds_min", p->seconds_min);
    json_number(json, "seconds_max", p->seconds_max);
    json_number(json, "interval", p->interval);
    if (p->scenario == SCENARIO_SERVER) {
        json_number(json, "latency_bound_s", p->latency_bound_s);
        json_number(json, "quantile", p->latency_quantile);
        json_int(json, "queries", p->server_queries);
    }
    json_bool(json, "verify", p->verify);
    json_bool(json, "layers", p->layers);
    json_int(json, "rounds", p->rounds);
    json_close(json);
}

static void point_json(struct json *json, const struct point *p)
{
    struct time_range range = plan_time_range(p);
    json_open(json, NULL, '{');
    json_text(json, "id", p->id);
    json_text(json, "canonical", p->canonical);
    json_text(json, "spec", p->spec);
    json_text(json, "workload", p->workload);
    json_text(json, "params", p->params);
    json_text(json, "domain", p->domain);
    json_text(json, "mode", p->mode);
    json_text(json, "device", p->device);
    json_text(json, "precision", p->precision);
    if (p->batch)
        json_int(json, "batch", p->batch);
    else
        json_null(json, "batch");
    json_int(json, "threads", p->threads);
    if (p->ranks) {
        json_int(json, "ranks", p->ranks);
        json_bool(json, "strong", p->strong);
        json_text(json, "backend", p->backend);
        json_int(json, "steps", p->steps);
    }
    json_text(json, "providers", p->providers);
    json_text(json, "profilers", p->profilers);
    protocol_json(json, &p->protocol);
    json_text(json, "skip", p->skip);
    json_bool(json, "over_budget", p->over_budget);
    json_text(json, "origin", p->origin);
    json_number(json, "sampling_least_s", p->skip ? 0 : range.shortest_s);
    json_number(json, "sampling_most_s", p->skip ? 0 : range.longest_s);
    json_number(json, "estimate_s", p->estimate_s);
    json_close(json);
}

static void print_json(const struct plan *plan)
{
    int running, unknown;
    struct time_range sum = sum_of_ranges(plan, &running, &unknown);
    struct json json;
    json_begin(&json, stdout);
    json_open(&json, NULL, '{');
    json_text(&json, "suite", plan->suite);
    json_text(&json, "hash", plan->hash);
    json_text(&json, "db", plan->db);
    json_text(&json, "report", plan->report);
    json_bool(&json, "ceilings", plan->ceilings);
    json_number(&json, "budget_s", plan->budget_s);
    json_int(&json, "over_budget", count_over_budget(plan));
    json_int(&json, "rounds", plan->rounds);
    json_int(&json, "running", running);
    json_int(&json, "skipped", plan->count - running);
    json_number(&json, "sampling_least_s", sum.shortest_s);
    json_number(&json, "sampling_most_s", unknown ? (double)NAN : sum.longest_s);
    int known;
    double seconds = sum_of_estimates(plan, &known);
    json_int(&json, "known", known);
    json_number(&json, "estimate_s", known ? seconds : NAN);
    json_open(&json, "points", '[');
    for (int k = 0; k < plan->count; k++)
        point_json(&json, &plan->points[k]);
    json_close(&json);
    json_close(&json);
}

/* ---- for people ---- */

static void stop_text(const struct point *point, char *text, size_t size)
{
    const struct protocol *p = &point->protocol;
    int used = 0;
    if (point->ranks) {
        snprintf(text, size, "%lld steps", (long long)point->steps);
        return;
    }
    if (p->scenario == SCENARIO_SERVER) {
        snprintf(text, size, "p%g below %g s", p->latency_quantile * 100, p->latency_bound_s);
        return;
    }
    if (p->interval > 0)
        used = snprintf(text, size, "+-%g %%, ", p->interval * 100);
    snprintf(text + used, size - (size_t)used, ">= %lld, %g to %g s", (long long)p->samples_min,
             p->seconds_min, p->seconds_max);
}

static void point_row(struct table *t, const struct point *p)
{
    char stop[96], ranks[32] = "";
    stop_text(p, stop, sizeof(stop));
    if (p->ranks)
        snprintf(ranks, sizeof(ranks), ", %d rank%s", p->ranks, p->ranks > 1 ? "s" : "");
    table_cell(t, "%s", p->id);
    table_cell(t, "%s", p->spec);
    if (p->batch)
        table_cell(t, "%lld", (long long)p->batch);
    else
        table_cell(t, "as is");
    table_cell(t, "%d", p->threads);
    table_cell(t, "%s", p->device);
    table_cell(t, "%s", p->precision);
    bool trains = strcmp(p->mode, "training") == 0;
    table_cell(t, "%s%s%s%s", scenario_name(p->protocol.scenario), p->protocol.cold ? ", cold" : "",
               trains ? ", training" : "", ranks);
    table_cell(t, "%s", *p->providers ? p->providers : "all");
    const char *left_out = p->skip ? p->skip : p->over_budget ? "budget" : NULL;
    table_cell(t, "%s%s", left_out ? "skipped: " : "", left_out ? left_out : stop);
}

static void print_table(const struct plan *plan)
{
    struct table t = {.column_count = 0};
    table_column(&t, "point", TABLE_LEFT);
    table_column(&t, "workload", TABLE_LEFT);
    table_column(&t, "batch", TABLE_RIGHT);
    table_column(&t, "threads", TABLE_RIGHT);
    table_column(&t, "device", TABLE_LEFT);
    table_column(&t, "precision", TABLE_LEFT);
    table_column(&t, "scenario", TABLE_LEFT);
    table_column(&t, "providers", TABLE_LEFT);
    table_column(&t, "interval, samples, seconds", TABLE_LEFT);
    for (int k = 0; k < plan->count; k++)
        point_row(&t, &plan->points[k]);
    table_print(&t, stdout);
    table_release(&t);
}

static void print_sum(const struct plan *plan)
{
    int running, unknown, known;
    double seconds = sum_of_estimates(plan, &known);
    struct time_range sum = sum_of_ranges(plan, &running, &unknown);
    printf("\n%d point%s from %s", running, running == 1 ? "" : "s", plan->suite);
    if (running < plan->count)
        printf(", %d skipped", plan->count - running);
    printf(".\nSampling takes %.3g to %.3g s by the stopping rules.", sum.shortest_s,
           sum.longest_s);
    if (unknown)
        printf(
            "\nWhat the rates of servers and the steps of several ranks take (%d point%s) is not "
            "known before.",
            unknown, unknown == 1 ? "" : "s");
    printf("\nBuilding, verifying%s and timing single steps come on top.\n",
           plan->ceilings ? ", ceilings" : "");
    if (known)
        printf("%d of these points %s measured before: %.3g s with everything.\n", known,
               known == 1 ? "was" : "were", seconds);
    if (plan->rounds > 1)
        printf("Each point is visited in %d rounds, in another order each time.\n", plan->rounds);
    int over = count_over_budget(plan);
    if (over)
        printf("%d point%s not fit into the budget of %g s, by %s.\n", over,
               over == 1 ? " does" : "s do", plan->budget_s,
               known ? "what earlier runs took" : "the least that their stopping rules allow");
    printf("Results go to %s%s%s.\n", *plan->db ? plan->db : "no database: they are printed only",
           *plan->report && *plan->db ? ", the report to " : "", *plan->db ? plan->report : "");
}

static int plan_main(int word_count, char **words, const void *values)
{
    const struct values *v = values;
    struct plan_overrides overrides = v->plan;
    struct plan plan;
    struct error err = {0};
    overrides.tuning = v->model.quick_tune ? "quick" : NULL;
    if (model_code_choice(&v->model, &overrides.code, &err) != STATUS_OK ||
        plan_from_words(words, word_count, &overrides, &plan, &err) != STATUS_OK)
        return command_fail(&err);
    plan_estimate_from(&plan, plan.db);
    plan_admit(&plan);
    if (v->json) {
        print_json(&plan);
    } else {
        print_table(&plan);
        print_sum(&plan);
    }
    plan_release(&plan);
    return EXIT_FINE;
}

REGISTER(command, plan) = {
    .name = "plan",
    .summary = "show what a run would measure, and how long it may take",
    .usage = "[SUITE|MODEL]... [options]",
    .help =
        "A suite is a file that ends in .toml, or the name of one that comes with ridge (quick,\n"
        "table1). Without an argument: ./suite.toml, else quick. `ridge help suite.toml` explains "
        "the\n"
        "format. Options override the suite; lists (--batch 1,8,32) make a point of\n"
        "each value. The id of a point stays the same on every machine, run after run.\n",
    .options = options,
    .values_size = sizeof(struct values),
    .main = plan_main,
};
