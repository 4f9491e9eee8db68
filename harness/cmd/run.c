/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge run: measures what a suite or the command line names, keeps every sample in the database,
 * prints a row per point. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/numbers/stats.h"
#include "base/text/json.h"
#include "harness/campaign/campaign.h"
#include "harness/campaign/plan_time.h"
#include "harness/campaign/record.h"
#include "harness/cli/command.h"
#include "harness/compare/run_words.h"
#include "harness/measure/visits.h"
#include "harness/turns/count_apart.h"
#include "harness/turns/run_against.h"
#include "harness/turns/run_interleaved.h"
#include "harness/turns/sample_on_request.h"
#include "harness/watch/interrupt.h"
#include "plots/report.h"

struct run_options {
    struct model_options model;
    struct plan_overrides plan;
    const char *tag, *against;
    int64_t repeat;
    bool json, on_request, resume, quiet, redact, no_db, interleave;
};

static const struct option options[] = {
    PLAN_OPTIONS(struct run_options, plan),
    COMPILE_OPTIONS(struct run_options),
    {"tag", 0, OPTION_TEXT, offsetof(struct run_options, tag), "NAME",
     "a name for this run, for compare and history: without commas, not latest"},
    {"resume", 0, OPTION_FLAG, offsetof(struct run_options, resume), NULL,
     "continue the latest unfinished run of the same plan"},
    {"no-db", 0, OPTION_FLAG, offsetof(struct run_options, no_db), NULL, "store nothing"},
    {"redact", 0, OPTION_FLAG, offsetof(struct run_options, redact), NULL,
     "keep no host name, serial number, user name or path"},
    {"quiet", 'q', OPTION_FLAG, offsetof(struct run_options, quiet), NULL, "no progress bar"},
    {"against", 0, OPTION_TEXT, offsetof(struct run_options, against), "PROGRAM",
     "measure this program in turns with another, or with that of a baseline, and compare"},
    {"interleave", 0, OPTION_FLAG, offsetof(struct run_options, interleave), NULL,
     "the first two arguments are two ridge programs, which take turns and are compared"},
    {"repeat", 0, OPTION_COUNT, offsetof(struct run_options, repeat), "N",
     "with --interleave: fresh pairs of processes (5), of --samples (20) and --seconds (3) each"},
    {"on-request", 0, OPTION_FLAG, offsetof(struct run_options, on_request), NULL,
     "one sample (ms) per line read from standard input: lets another program take turns"},
    {"json", 0, OPTION_FLAG, offsetof(struct run_options, json), NULL, "machine-readable"},
    {.name = NULL},
};

struct printer {
    bool as_json, has_head;
    struct json json;
};

/* ---- rows ---- */

static const char *status_name(const struct record *r)
{
    static const char *const names[] = {"ok", "wrong", "failed", "skipped"};
    return r->status == RESULT_OK && !r->valid ? "invalid" : names[r->status];
}

/* A sentence that belongs beside the result, from the first metric from *next on that has one (see
 * RECORD_NOTE); *next is then after it. NULL: there is none. */
static const char *next_note(const struct record *record, int *next)
{
    const size_t length = strlen(RECORD_NOTE);
    while (*next < record->metric_count) {
        const struct metric_record *metric = &record->metrics[(*next)++];
        if (strncmp(metric->formula, RECORD_NOTE, length) == 0)
            return metric->formula + length;
    }
    return NULL;
}

static void put_notes(struct json *json, const struct record *r)
{
    const char *note;
    json_open(json, "notes", '[');
    for (int next = 0; (note = next_note(r, &next));)
        json_text(json, NULL, note);
    json_close(json);
}

static void print_json(struct json *json, const struct point *point, const struct record *r)
{
    const struct metric_record *time = record_metric(r, "time_s");
    json_open(json, NULL, '{');
    json_text(json, "point", point->id);
    json_text(json, "workload", point->spec);
    json_int(json, "batch", point->batch);
    json_int(json, "threads", point->threads);
    if (point->ranks)
        json_int(json, "ranks", point->ranks);
    json_text(json, "device", point->device);
    json_text(json, "mode", point->mode);
    json_text(json, "precision", point->precision);
    json_text(json, "scenario", scenario_name(point->protocol.scenario));
    json_text(json, "status", status_name(r));
    json_text(json, "reason", r->reason);
    json_int(json, "samples", time ? time->n : 0);
    json_number(json, "median_ms", time ? time->value * 1e3 : NAN);
    json_number(json, "min_ms", time ? time->min * 1e3 : NAN);
    json_number(json, "p90_ms", record_value(r, "latency_p90_s") * 1e3);
    json_number(json, "p99_ms", record_value(r, "latency_p99_s") * 1e3);
    json_number(json, "ci_low_ms", time ? time->ci_low * 1e3 : NAN);
    json_number(json, "ci_high_ms", time ? time->ci_high * 1e3 : NAN);
    json_number(json, "throughput", record_value(r, "throughput"));
    json_number(json, "gflops", record_value(r, "flop_rate") * 1e-9);
    json_number(json, "peak_gflops", record_value(r, "peak_flop_rate") * 1e-9);
    json_number(json, "peak_fraction", record_value(r, "fraction_of_peak"));
    json_number(json, "max_rel_error", r->verify_error);
    json_number(json, "arena_bytes", record_value(r, "arena_bytes"));
    json_number(json, "weight_bytes", record_value(r, "weight_bytes"));
    json_number(json, "peak_rss_bytes", record_value(r, "peak_rss_bytes"));
    json_text(json, "stop_reason", r->stop_reason);
    json_number(json, "reference_steps", record_value(r, "reference_steps"));
    json_number(json, "reference_time_share", record_value(r, "reference_time_share"));
    json_int(json, "visits", r->visit_count);
    json_int(json, "visits_apart", visits_apart(r->visits, r->visit_count));
    json_number(json, "round_spread", record_value(r, "round_spread"));
    put_notes(json, r);
    json_close(json);
}

/* digits: significant ones. */
static void print_number(double value, int digits, const char *unit)
{
    char text[32];
    snprintf(text, sizeof(text), "%.*g%s", digits, value, unit);
    printf(" %10s", isnan(value) ? "-" : text);
}

/* Visits that do not count, although the point does. */
static void print_apart(const struct record *r)
{
    int apart = visits_apart(r->visits, r->visit_count);
    for (int k = 0; k < r->visit_count && apart; k++)
        if (visits_apart(&r->visits[k], 1))
            printf("; visit %d of %d %s", r->visits[k].round + 1, r->visit_count,
                   r->visits[k].reason);
}

static void print_notes(const struct record *r)
{
    const char *note;
    for (int next = 0; (note = next_note(r, &next));)
        printf("    note: %s\n", note);
}

/* With what is not as usual, in the order of compare and history. */
static void name_row(const struct point *point, char *name, size_t size)
{
    const char *words[][2] = {{point->mode, "inference"},
                              {point->precision, "f32"},
                              {scenario_name(point->protocol.scenario), "single_stream"},
                              {point->protocol.cold ? "cold" : "", ""}};
    char ranks[24] = "";
    if (point->ranks)
        snprintf(ranks, sizeof(ranks), " ranks=%d", point->ranks);
    size_t used = (size_t)snprintf(name, size, "%s%s", point->spec, ranks);
    for (size_t k = 0; k < sizeof(words) / sizeof(*words) && used < size; k++)
        if (strcmp(words[k][0], words[k][1]) != 0)
            used += (size_t)snprintf(name + used, size - used, " %s", words[k][0]);
}

static void print_row(const struct point *point, const struct record *r)
{
    const struct metric_record *time = record_metric(r, "time_s");
    char name[192], shown[sizeof(name)]; /* a file may have any name */
    name_row(point, name, sizeof(name));
    printf("%-24s %6lld %7d %7lld", clean_copy(shown, sizeof(shown), name), (long long)point->batch,
           point->threads, time ? (long long)time->n : 0);
    print_number(time ? time->value * 1e3 : NAN, 4, "");
    double half = time ? stats_half_width(time->value, time->ci_low, time->ci_high) : NAN;
    print_number(time ? 100 * half / time->value : NAN, 2, " %");
    print_number(record_value(r, "latency_p90_s") * 1e3, 4, "");
    print_number(record_value(r, "throughput"), 4, "");
    print_number(record_value(r, "flop_rate") * 1e-9, 4, "");
    print_number(100 * record_value(r, "fraction_of_peak"), 3, " %");
    print_number(r->verify_error, 2, "");
    printf("  %s%s%s", status_name(r), r->reason[0] ? ": " : "", r->reason);
    print_apart(r);
    putchar('\n');
    print_notes(r);
    fflush(stdout);
}

static void print_head(void)
{
    printf("%-24s %6s %7s %7s %10s %10s %10s %10s %10s %10s %10s\n", "workload", "batch", "threads",
           "samples", "median ms", "+-", "p90 ms", "items/s", "GFLOP/s", "of peak", "error");
}

static void on_point(void *context, const struct point *point, const struct record *record)
{
    struct printer *printer = context;
    if (printer->as_json) {
        print_json(&printer->json, point, record);
        return;
    }
    if (!printer->has_head)
        print_head();
    printer->has_head = true;
    print_row(point, record);
}

/* ---- the command ---- */

static int exit_code(const struct campaign_result *r, const struct plan *plan)
{
    if (r->wrong || r->failed || r->lost || r->unasked)
        return EXIT_WRONG;
    if (r->invalid || r->interrupted || r->changed)
        return EXIT_INCONCLUSIVE;
    return r->skipped == plan->count && !r->over_budget ? EXIT_MISSING : EXIT_FINE;
}

static void print_end(const struct campaign_result *r, const struct plan *plan, const char *db)
{
    if (r->note[0])
        fprintf(stderr, "ridge: %s\n", r->note);
    if (r->interrupted)
        fprintf(stderr, "ridge: interrupted%s\n",
                db ? "; the same command with --resume goes on" : ", and nothing of it is kept");
    if (r->resumed)
        fprintf(stderr, "ridge: %d of %d points were there already\n", r->resumed, plan->count);
    if (r->unasked)
        fprintf(stderr,
                "ridge: %d point%s took 1 %% or more of the time in steps on the reference kernel, "
                "which "
                "is made to be right, not fast: no other kernel of these providers "
                "computes them (`ridge explain "
                "--all` says why). Name \"reference\" in --providers where that is wanted\n",
                r->unasked, r->unasked == 1 ? "" : "s");
    if (r->over_budget)
        fprintf(stderr, "ridge: the budget of %g s was too small for %d of %d points\n",
                plan->budget_s, r->over_budget, plan->count);
    if (db && r->spool[0])
        fprintf(stderr,
                "run %.8s is kept in %s, not yet in %s: `ridge ingest %s --db %s`, or the next run "
                "that can write there, takes it in\n",
                r->uuid, r->spool, db, r->spool, db);
    else if (db)
        fprintf(stderr, "run %.8s is in %s\n", r->uuid, db);
}

/* A report that cannot be written costs a message, not the run. */
static void write_report(const struct campaign_result *r, const char *db, const char *folder)
{
    struct error err = {0};
    struct store *store = NULL;
    struct report_outcome outcome;
    int64_t run;
    enum status status = store_open(db, STORE_READ, &store, &err);
    if (status == STATUS_OK)
        status = query_find_run(store, r->uuid, &run, &err);
    if (status == STATUS_OK)
        status = report_write(store, run, NULL, folder, &outcome, &err);
    store_close(store);
    if (status != STATUS_OK)
        fprintf(stderr, "ridge: no report: %s\n", err.message);
    else
        fprintf(stderr, "report: %s\n", outcome.file);
    if (status == STATUS_OK && outcome.not_drawn)
        fprintf(stderr, "ridge: %d plots are missing: %s\n", outcome.not_drawn,
                outcome.plot_reason);
}

static void on_resume(void *context, const char *uuid, bool found)
{
    (void)context;
    if (found)
        fprintf(stderr, "ridge: going on with run %.8s\n", uuid);
    else
        fprintf(stderr, "ridge: there is no unfinished run of this plan: run %.8s is a new one\n",
                uuid);
}

static int run_plan(const struct plan *plan, const struct run_options *o, const char *command)
{
    struct error err = {0};
    struct campaign_result result;
    struct printer printer = {.as_json = o->json};
    struct campaign_options campaign = {.model = &o->model,
                                        .db = o->no_db ? NULL : plan->db,
                                        .tag = o->tag,
                                        .command = command,
                                        .resume = o->resume,
                                        .quiet = o->quiet || o->json,
                                        .redact = o->redact,
                                        .listener = on_point,
                                        .resumes = on_resume,
                                        .context = &printer,
                                        .apart = count_in_own_process};
    interrupt_install();
    if (o->json) {
        json_begin(&printer.json, stdout);
        json_open(&printer.json, NULL, '[');
    }
    enum status status = campaign_run(plan, &campaign, &result, &err);
    interrupt_restore();
    if (o->json)
        json_close(&printer.json);
    if (status != STATUS_OK)
        return command_fail(&err);
    print_end(&result, plan, campaign.db);
    if (campaign.db && plan->report[0] && !result.interrupted)
        write_report(&result, result.spool[0] ? result.spool : campaign.db, plan->report);
    return exit_code(&result, plan);
}

/* The first option that has no meaning with --against, or NULL: it must not be ignored silently. */
static const char *useless_against(const struct run_options *o)
{
    return o->interleave    ? "--interleave"
           : o->on_request  ? "--on-request"
           : o->resume      ? "--resume"
           : o->no_db       ? "--no-db"
           : o->plan.report ? "--report"
                            : NULL;
}

/* What an option lacks to have an effect; NULL: nothing. */
static const char *without_effect(const struct run_options *o)
{
    return o->resume && o->no_db    ? "--resume goes on with a stored run, and --no-db stores none"
           : o->tag && o->no_db     ? "--tag names a stored run, and --no-db stores none"
           : o->plan.db && o->no_db ? "--db says where results go, and --no-db stores none"
           : o->plan.report && o->no_db  ? "--report shows a stored run, and --no-db stores none"
           : o->repeat && !o->interleave ? "--repeat belongs to --interleave"
                                         : NULL;
}

static int run_turns(const struct plan *plan, const struct run_options *o, const char *command)
{
    const struct against_options against = {.program = o->against,
                                            .model = &o->model,
                                            .tag = o->tag,
                                            .command = command,
                                            .json = o->json,
                                            .quiet = o->quiet || o->json,
                                            .redact = o->redact};
    return run_against(plan, &against);
}

static int run_main(int word_count, char **words, const void *values)
{
    struct run_options o = *(const struct run_options *)values;
    struct error err = {0};
    struct plan plan;
    struct arena arena = {0};
    if (o.against && useless_against(&o)) {
        fprintf(stderr,
                "ridge: %s has no meaning with --against, which stores two runs and compares "
                "them\n",
                useless_against(&o));
        return EXIT_USAGE;
    }
    if (without_effect(&o)) {
        fprintf(stderr, "ridge: %s\n", without_effect(&o));
        return EXIT_USAGE;
    }
    if (o.interleave) {
        struct interleaved_options ab = {o.repeat, &o.plan, &o.model, o.json};
        return run_interleaved(words, word_count, &ab);
    }
    if (o.on_request && word_count != 1) {
        fprintf(stderr, "ridge: --on-request takes one model\n");
        return EXIT_USAGE;
    }
    o.plan.tuning = o.model.quick_tune ? "quick" : NULL;
    /* Where an option makes every point impossible, the command line is wrong, not the points. */
    if ((o.tag && run_name_check("--tag", o.tag, &err) != STATUS_OK) ||
        model_code_choice(&o.model, &o.plan.code, &err) != STATUS_OK ||
        plan_from_words(words, word_count, &o.plan, &plan, &err) != STATUS_OK)
        return command_fail(&err);
    if (plan.budget_s > 0) {
        plan_estimate_from(&plan, plan.db);
        plan_admit(&plan);
    }
    o.model.batch = plan.points[0].batch;
    o.model.threads = plan.points[0].threads;
    o.model.device = o.on_request ? plan.points[0].device : o.model.device;
    o.model.precision = o.on_request ? plan.points[0].precision : o.model.precision;
    o.model.providers = plan.points[0].providers[0] ? plan.points[0].providers : NULL;
    char *command = command_typed(&arena);
    int code = !command       ? command_fail((FAIL_NO_MEMORY(&err), &err))
               : o.on_request ? sample_on_request(&plan.points[0], &o.model)
               : o.against    ? run_turns(&plan, &o, command)
                              : run_plan(&plan, &o, command);
    arena_release(&arena);
    plan_release(&plan);
    return code;
}

REGISTER(command, run) = {
    .name = "run",
    .summary = "measure a suite, workloads or .onnx files",
    .usage = "[SUITE|MODEL...] [options]",
    .help =
        "Verifies, warms up and times every point, counts its work, times its steps, and keeps\n"
        "all of it in the database. Without an argument: ./suite.toml, or the suite quick.\n\n"
        "Times are medians of whole executions with the half-width of their 95 % interval, on its\n"
        "wider side; `of peak` is the share of the FP32 FMA peak measured around the same "
        "samples.\n\n"
        "What is measured with --isa, --max-error, --no-winograd, --no-tune, --quick-tune or\n"
        "--no-fuse is no history of what is measured without: these make points of their own.\n\n"
        "--against PROGRAM measures two programs in turns, point by point and sample by sample,\n"
        "in fresh processes each round, stores both as runs and says which points became slower.\n"
        "PROGRAM is a file, a command, or `baseline:NAME` where `ridge compare --set-baseline\n"
        "NAME RUN --keep-program` has kept its program. Its exit codes are those of `ridge\n"
        "compare`.\n\n"
        "Exit code: 0 fine, 2 usage, 3 a point failed, was wrong, or spent 1 % or more of its\n"
        "time in the reference kernel although --providers did not name `reference`, 4 a point is\n"
        "invalid, or the run was interrupted or its machine changed meanwhile, 5 nothing could "
        "run\n"
        "here.\n",
    .options = options,
    .values_size = sizeof(struct run_options),
    .main = run_main,
};
