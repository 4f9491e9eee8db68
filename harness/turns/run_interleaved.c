/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/turns/run_interleaved.h"

#include <math.h>
#include <stdio.h>

#include "base/registry.h"
#include "base/text/json.h"
#include "engine/run/provider.h"
#include "harness/cli/command.h"
#include "harness/turns/interleave.h"
#include "harness/watch/interrupt.h"

enum { WORDS_MAX = 32 };

/* The words of a command; options that an older program may not know are passed only when they were
 * given. */
static void fill_command(const char **out, const char *program, const char *model,
                         const struct interleaved_options *o, char error_text[32])
{
    const struct model_options *m = o->model;
    const char *const pairs[][2] = {{"--batch", o->plan->batch},
                                    {"--threads", o->plan->threads},
                                    {"--providers", o->plan->providers},
                                    {"--isa", m->isa},
                                    {"--cache", m->cache},
                                    {"--max-error", m->max_error > 0 ? error_text : NULL}};
    const struct {
        const char *name;
        bool given;
    } flags[] = {{"--no-winograd", m->no_winograd},
                 {"--retune", m->retune},
                 {"--no-tune", m->no_tune},
                 {"--quick-tune", m->quick_tune},
                 {"--no-fuse", m->no_fuse}};
    int n = 0;
    snprintf(error_text, 32, "%.9g", m->max_error);
    out[n++] = program;
    out[n++] = "run";
    out[n++] = model;
    out[n++] = "--on-request";
    for (int k = 0; k < ARRAY_COUNT(pairs); k++) {
        if (!pairs[k][1])
            continue;
        out[n++] = pairs[k][0];
        out[n++] = pairs[k][1];
    }
    for (int k = 0; k < ARRAY_COUNT(flags); k++)
        if (flags[k].given)
            out[n++] = flags[k].name;
    out[n] = NULL;
}

/* The first option that has no meaning with --interleave, or NULL: it must not be ignored
 * silently. */
static const char *unused_option(const struct plan_overrides *p)
{
    const struct {
        const char *name;
        bool given;
    } unused[] = {{"--device", p->device},
                  {"--precision", p->precision},
                  {"--mode", p->mode},
                  {"--scenario", p->scenario},
                  {"--latency-bound", p->latency_bound},
                  {"--quantile", p->quantile},
                  {"--cold", p->cold},
                  {"--seconds-max", p->seconds_max > 0},
                  {"--interval", p->interval},
                  {"--profilers", p->profilers},
                  {"--only", p->only},
                  {"--budget", p->budget_s.given},
                  {"--rounds", p->rounds},
                  {"--order-seed", p->order_seed.given},
                  {"--db", p->db},
                  {"--report", p->report}};
    for (int k = 0; k < ARRAY_COUNT(unused); k++)
        if (unused[k].given)
            return unused[k].name;
    return NULL;
}

static bool on_pair(void *context, int done, int pairs)
{
    (void)context;
    fprintf(stderr, "\r%d of %d pairs", done, pairs);
    return !interrupt_requested();
}

static void print_row(const char *model, const struct comparison *c)
{
    printf("%-24s %10.4g ms %10.4g ms  B/A %.4f [%.4f, %.4f]  %s", model, c->base_median,
           c->head_median, c->ratio, c->ci_low, c->ci_high, verdict_name(c->verdict));
    printf("; smallest effect found: %.2g %%%s%s\n", 100 * c->mde, c->reason[0] ? "; " : "",
           c->reason);
    fflush(stdout);
}

static void print_json(struct json *json, const char *model, const struct comparison *c)
{
    json_open(json, NULL, '{');
    json_text(json, "workload", model);
    json_text(json, "verdict", verdict_name(c->verdict));
    json_number(json, "base_median", c->base_median);
    json_number(json, "head_median", c->head_median);
    json_number(json, "ratio", c->ratio);
    json_number(json, "ci_low", c->ci_low);
    json_number(json, "ci_high", c->ci_high);
    json_number(json, "mde", c->mde);
    json_int(json, "pairs", c->base_runs);
    json_text(json, "reason", c->reason);
    json_close(json);
}

static enum status compare_pair(const char *a, const char *b, const char *model,
                                const struct interleaved_options *o, struct comparison *out,
                                struct error *err)
{
    const char *first[WORDS_MAX], *second[WORDS_MAX];
    char error_text[32];
    struct interleave_options options = {
        .pairs = (int)o->repeats,
        .samples = (int)o->plan->samples,
        .seconds = o->plan->seconds.given ? fmax(o->plan->seconds.value, 1e-9) : 0, /* as usual */
        .progress = on_pair};
    struct interleave_result result = {0};
    fill_command(first, a, model, o, error_text);
    fill_command(second, b, model, o, error_text);
    options.a.command = first;
    options.b.command = second;
    enum status status = interleave_run(&options, &result, err);
    fprintf(stderr, "\r\033[K");
    if (status == STATUS_OK)
        status = interleave_judge(&result, NULL, out, err);
    interleave_release(&result);
    return status;
}

static int worse(int code, enum verdict verdict)
{
    if (verdict == VERDICT_REGRESSED)
        return EXIT_REGRESSION;
    bool known = verdict == VERDICT_UNCHANGED || verdict == VERDICT_IMPROVED;
    return known || code == EXIT_REGRESSION ? code : EXIT_INCONCLUSIVE;
}

int run_interleaved(char *const *words, int word_count, const struct interleaved_options *o)
{
    struct json json;
    int code = EXIT_FINE;
    if (word_count < 3) {
        fprintf(stderr, "ridge: --interleave takes two programs and the models: "
                        "ridge run --interleave ./ridge-old ./ridge resnet50\n");
        return EXIT_USAGE;
    }
    if (unused_option(o->plan)) {
        fprintf(stderr,
                "ridge: %s has no meaning with --interleave: it times single executions of two "
                "programs in turns and stores nothing\n",
                unused_option(o->plan));
        return EXIT_USAGE;
    }
    struct error err = {0};
    if (providers_check(o->plan->providers, &err) != STATUS_OK)
        return command_fail(&err);
    if (o->json) {
        json_begin(&json, stdout);
        json_open(&json, NULL, '[');
    }
    interrupt_install();
    for (int k = 2; k < word_count && !interrupt_requested(); k++) {
        struct comparison c;
        err = (struct error){0};
        if (compare_pair(words[0], words[1], words[k], o, &c, &err) != STATUS_OK) {
            code = command_fail(&err);
            continue;
        }
        code = worse(code, c.verdict);
        if (o->json)
            print_json(&json, words[k], &c);
        else
            print_row(words[k], &c);
    }
    if (o->json)
        json_close(&json);
    return code;
}
