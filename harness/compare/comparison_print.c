/* SPDX-License-Identifier: Apache-2.0
 *
 * A comparison as text and Markdown for people (comparison_text.c), as JUnit XML and annotations
 * for CI jobs (comparison_ci.c), as JSON for programs. What differs around the runs always comes
 * before any verdict. */
#include "harness/compare/comparison_print.h"

#include <math.h>
#include <string.h>

#include "base/clean.h"
#include "base/registry.h"
#include "base/text/json.h"

/* The order in which verdicts are listed: what needs a look first. */
static const enum verdict order[] = {VERDICT_REGRESSED, VERDICT_FAILED,       VERDICT_INVALID,
                                     VERDICT_MISSING,   VERDICT_INCONCLUSIVE, VERDICT_MACHINE,
                                     VERDICT_IMPROVED,  VERDICT_NEW,          VERDICT_UNCHANGED};

size_t comparison_ordered(const struct comparison_set *set, size_t index)
{
    for (int v = 0; v < ARRAY_COUNT(order); v++) {
        size_t here = (size_t)set->totals[order[v]];
        if (index >= here) {
            index -= here;
            continue;
        }
        for (size_t k = 0; k < set->count; k++)
            if (set->verdicts[k].verdict == order[v] && index-- == 0)
                return k;
    }
    return 0;
}

void comparison_totals(const struct comparison_set *set, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (int k = 0; k < ARRAY_COUNT(order) && used < size; k++)
        if (set->totals[order[k]])
            used += (size_t)snprintf(text + used, size - used, "%s%d %s", used ? ", " : "",
                                     set->totals[order[k]], verdict_name(order[k]));
}

/* ---- cells ---- */

static void seconds_text(double seconds, char text[24])
{
    if (isnan(seconds))
        snprintf(text, 24, "-");
    else
        snprintf(text, 24, "%.4g ms", 1e3 * seconds);
}

static void rate_text(double rate, char text[24])
{
    if (isnan(rate))
        snprintf(text, 24, "-");
    else
        snprintf(text, 24, rate < 1e5 ? "%.4g /s" : "%.3e /s", rate);
}

static void percent_text(double ratio, char text[24])
{
    if (isnan(ratio))
        snprintf(text, 24, "-");
    else
        snprintf(text, 24, "%+.1f %%", 100 * (ratio - 1));
}

static void interval_text(double low, double high, char text[48])
{
    if (isnan(low))
        snprintf(text, 48, "-");
    else
        snprintf(text, 48, "%+.1f .. %+.1f %%", 100 * (low - 1), 100 * (high - 1));
}

void comparison_cells_time(struct comparison_cells *cells, const struct comparison_set *set,
                           size_t point)
{
    const struct comparison *c = &set->verdicts[point];
    const struct compared_rate *rate = &set->points[point].rate;
    bool waits = rate->name && !rate->judged; /* in a queue, which the samples leave out */
    cells->verdict = verdict_name(c->verdict);
    snprintf(cells->point, sizeof(cells->point), "%s%s", set->points[point].label,
             waits ? ": time without queue" : "");
    clean_end(cells->point);
    seconds_text(c->base_median, cells->base);
    seconds_text(c->head_median, cells->head);
    percent_text(c->ratio, cells->change);
    interval_text(c->ci_low, c->ci_high, cells->interval);
    percent_text(1 + c->mde, cells->detectable);
}

bool comparison_cells_rate(struct comparison_cells *cells, const struct comparison_set *set,
                           size_t point)
{
    const struct compared_rate *rate = &set->points[point].rate;
    const struct comparison *c = &set->verdicts[point];
    if (!rate->name)
        return false;
    cells->verdict = rate->judged ? verdict_name(c->verdict) : "not judged";
    snprintf(cells->point, sizeof(cells->point), "%s: %s", set->points[point].label, rate->name);
    clean_end(cells->point);
    rate_text(rate->base, cells->base);
    rate_text(rate->head, cells->head);
    percent_text(rate->ratio, cells->change);
    interval_text(rate->ci_low, rate->ci_high, cells->interval);
    percent_text(rate->judged ? 1 / (1 + c->mde) : NAN, cells->detectable);
    return true;
}

/* ---- JSON ---- */

static void json_differences(struct json *json, const char *name, const struct difference *all,
                             size_t count)
{
    json_open(json, name, '[');
    for (size_t k = 0; k < count; k++) {
        json_open(json, NULL, '{');
        json_text(json, "what", all[k].what);
        json_text(json, "base", all[k].base);
        json_text(json, "head", all[k].head);
        json_close(json);
    }
    json_close(json);
}

/* The visits of a side that count, with the levels beside them, as slowness. */
static void json_visits(struct json *json, const char *name, const struct compare_side *side)
{
    json_open(json, name, '[');
    if (side->state == SIDE_USABLE)
        for (int k = 0; k < side->visit_count; k++) {
            const struct compare_visit *visit = &side->visits[k];
            json_open(json, NULL, '{');
            json_int(json, "run", visit->run);
            json_int(json, "round", visit->round);
            json_int(json, "samples", visit->count);
            json_number(json, "median_s", compare_visit_median(visit));
            for (int level = 0; level < LEVEL_COUNT; level++)
                json_number(json, level_kinds[level].name,
                            visit->slow[level] > 0 ? visit->slow[level] : NAN);
            json_close(json);
        }
    json_close(json);
}

static void json_noise(struct json *json, const struct comparison *c)
{
    json_number(json, "noise", c->noise);
    json_number(json, "noise_df", c->df);
    json_text(json, "noise_from", *c->noise_from ? c->noise_from : NULL);
    json_number(json, "noise_of_machine", c->prior);
    json_number(json, "noise_of_machine_df", c->prior_df);
    json_number(json, "swing", c->swing);
    json_bool(json, "ranked", c->ranked);
    json_int(json, "history_runs", c->history_runs);
    json_open(json, "levels", '{');
    for (int level = 0; level < LEVEL_COUNT; level++)
        json_number(json, level_kinds[level].name, c->level[level]);
    json_close(json);
    json_text(json, "explained_by", c->explained_by < 0 ? NULL : level_kinds[c->explained_by].name);
}

static void json_pair(struct json *json, const char *name, double base, double head)
{
    json_open(json, name, '{');
    json_number(json, "base", base);
    json_number(json, "head", head);
    json_close(json);
}

static void json_work(struct json *json, const struct compared_point *point)
{
    const struct side_work *a = &point->work[0], *b = &point->work[1];
    json_text(json, "work_changed", *point->work_changed ? point->work_changed : NULL);
    json_open(json, "work", '{');
    json_pair(json, "flops", a->flops, b->flops);
    json_pair(json, "bytes_compulsory", a->compulsory, b->compulsory);
    json_pair(json, "bytes_streamed", a->streamed, b->streamed);
    json_pair(json, "verify_error", a->verify_error, b->verify_error);
    json_close(json);
}

static void json_rate(struct json *json, const struct compared_rate *rate, const char *verdict)
{
    if (!rate->name) {
        json_text(json, "rate", NULL);
        return;
    }
    json_open(json, "rate", '{');
    json_text(json, "name", rate->judged ? "throughput" : "server_rate");
    json_text(json, "unit", "1/s");
    json_text(json, "better", "higher");
    json_text(json, "verdict", rate->judged ? verdict : "not judged");
    json_number(json, "base", rate->base);
    json_number(json, "head", rate->head);
    json_number(json, "ratio", rate->ratio);
    json_number(json, "ci_low", rate->ci_low);
    json_number(json, "ci_high", rate->ci_high);
    json_close(json);
}

static void json_point(struct json *json, const struct comparison_set *set, size_t k)
{
    const struct comparison *c = &set->verdicts[k];
    json_open(json, NULL, '{');
    json_text(json, "point", set->points[k].key);
    json_text(json, "label", set->points[k].label);
    json_text(json, "canonical", set->points[k].canonical);
    json_text(json, "verdict", verdict_name(c->verdict));
    json_text(json, "reason", c->reason);
    json_text(json, "cause", *set->points[k].cause ? set->points[k].cause : NULL);
    json_number(json, "base_median", c->base_median);
    json_number(json, "head_median", c->head_median);
    json_text(json, "unit", "s");
    json_number(json, "ratio", c->ratio);
    json_number(json, "ci_low", c->ci_low);
    json_number(json, "ci_high", c->ci_high);
    json_rate(json, &set->points[k].rate, verdict_name(c->verdict));
    json_work(json, &set->points[k]);
    json_number(json, "p", c->p);
    json_number(json, "p_adjusted", c->p_adjusted);
    json_number(json, "p_rank", c->p_rank);
    json_number(json, "mde", c->mde);
    json_number(json, "limit", c->limit);
    json_noise(json, c);
    json_int(json, "base_runs", c->base_runs);
    json_int(json, "head_runs", c->head_runs);
    json_int(json, "base_samples", c->base_samples);
    json_int(json, "head_samples", c->head_samples);
    json_number(json, "base_effective", c->base_effective);
    json_number(json, "head_effective", c->head_effective);
    json_text(json, "base_run", set->base.runs[0].uuid);
    json_text(json, "head_run", set->head.runs[0].uuid);
    json_bool(json, "same_program", set->same_program);
    json_bool(json, "in_turns", set->in_turns);
    json_visits(json, "base_visits", &set->inputs[k].base);
    json_visits(json, "head_visits", &set->inputs[k].head);
    json_differences(json, "differences", set->differences, set->difference_count);
    json_differences(json, "around", set->around, set->around_count);
    json_close(json);
}

static void write_json(const struct comparison_set *set, FILE *stream)
{
    struct json json;
    json_begin(&json, stream);
    json_open(&json, NULL, '[');
    for (size_t k = 0; k < set->count; k++)
        json_point(&json, set, k);
    json_close(&json);
}

const struct comparison_writer *comparison_writer_find(const char *name)
{
    static const struct comparison_writer writers[] = {
        {"text", comparison_write_text},
        {"markdown", comparison_write_markdown},
        {"junit", comparison_write_junit},
        {"github", comparison_write_github},
        {"json", write_json},
    };
    for (int k = 0; k < ARRAY_COUNT(writers); k++)
        if (strcmp(writers[k].name, name) == 0)
            return &writers[k];
    return NULL;
}
