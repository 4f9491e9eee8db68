/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/campaign/steps_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NAMED_MAX = 3, TEXT_MAX = 400 };

static const double apart = 1.25;   /* the longer by the shorter */
static const double slow = 3;       /* times its trial */
static const double slow_s = 10e-6; /* and by so much: clocks and waking are not the kernel's */

/* ---- words ---- */

static const char *time_text(double seconds, char text[32])
{
    bool is_small = seconds < 1e-3;
    snprintf(text, 32, "%.3g %s", seconds * (is_small ? 1e6 : 1e3), is_small ? "us" : "ms");
    return text;
}

void steps_apart_text(double sum_s, double whole_s, char *text, size_t size)
{
    char sum[32], whole[32];
    text[0] = '\0';
    if (!(sum_s > 0) || !(whole_s > 0) || (sum_s <= apart * whole_s && whole_s <= apart * sum_s))
        return;
    snprintf(text, size, "the steps, timed one by one, together took %s, %.2g times the whole (%s)",
             time_text(sum_s, sum), sum_s / whole_s, time_text(whole_s, whole));
}

static bool is_slow(const struct step_time *s)
{
    return s->took_s > slow * s->trial_s && s->took_s - s->trial_s > slow_s;
}

/* The step with the largest excess over its trial among those whose excess is less than `below`. */
static int next_slow(const struct step_time *steps, int count, double below)
{
    int worst = -1;
    double worst_excess = 0;
    for (int k = 0; k < count; k++) {
        double excess = steps[k].took_s - steps[k].trial_s;
        if (!is_slow(&steps[k]) || excess >= below || excess <= worst_excess)
            continue;
        worst_excess = excess;
        worst = k;
    }
    return worst;
}

static void copy_printable(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
    for (char *at = to; *at; at++)
        *at = (char)((unsigned char)*at < ' ' || *at == 127 ? '?' : *at);
}

static void name_slow(const struct step_time *steps, int count, char *text, size_t size)
{
    double below = (double)INFINITY;
    size_t used = 0;
    for (int named = 0; named < NAMED_MAX && used < size; named++) {
        char took[32], trial[32], name[48];
        int k = next_slow(steps, count, below);
        if (k < 0)
            break;
        below = steps[k].took_s - steps[k].trial_s;
        copy_printable(name, sizeof(name), steps[k].name);
        used += (size_t)snprintf(
            text + used, size - used, "%s#%d %s (%s) %s instead of %s", named ? ", " : "", k, name,
            steps[k].kind, time_text(steps[k].took_s, took), time_text(steps[k].trial_s, trial));
    }
}

double steps_slow_text(const struct step_time *steps, int count, char *text, size_t size)
{
    int found = 0, known = 0;
    char names[TEXT_MAX - 100] = "";
    text[0] = '\0';
    for (int k = 0; k < count; k++) {
        known += !isnan(steps[k].trial_s);
        found += is_slow(&steps[k]);
    }
    if (!known)
        return NAN;
    name_slow(steps, count, names, sizeof(names));
    if (found)
        snprintf(text, size,
                 "%d step%s took more than three times what the tuner's trial took: %s%s", found,
                 found == 1 ? "" : "s", names, found > NAMED_MAX ? " ..." : "");
    return found;
}

/* ---- rows ---- */

static double trial_of(const struct exe_step *step)
{
    for (int k = 0; k < step->candidate_count; k++)
        if (step->candidates[k].chosen && step->candidates[k].time_ns > 0)
            return step->candidates[k].time_ns * 1e-9;
    return NAN;
}

static enum status put_note(struct profiler_metric *metric, const char *text, struct arena *arena,
                            struct error *err)
{
    if (!text[0])
        return STATUS_OK;
    metric->formula = arena_printf(arena, RECORD_NOTE "%s", text);
    return metric->formula ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status put_apart(const struct steps_facts *f, double sum_s, struct arena *arena,
                             struct counts *out, struct error *err)
{
    char text[TEXT_MAX];
    struct profiler_metric *sum = &out->metrics[out->count++];
    *sum = (struct profiler_metric){.name = "steps_sum_s",
                                    .unit = "s",
                                    .formula = "sum of the steps' medians, timed one by one",
                                    .value = sum_s,
                                    .reason = ""};
    struct profiler_metric *ratio = &out->metrics[out->count++];
    *ratio = (struct profiler_metric){.name = "steps_over_whole",
                                      .unit = "1",
                                      .formula = "steps_sum_s / time_s",
                                      .value = sum_s / f->whole_s,
                                      .reason = ""};
    if (isnan(ratio->value))
        ratio->reason = "the whole was not timed with warm caches, one after the other";
    steps_apart_text(sum_s, f->whole_s, text, sizeof(text));
    size_t used = strlen(text);
    if (used && f->disturbed[0])
        snprintf(text + used, sizeof(text) - used, "; meanwhile it was %s", f->disturbed);
    return put_note(ratio, text, arena, err);
}

static enum status put_slow(const struct step_time *steps, int count, struct arena *arena,
                            struct counts *out, struct error *err)
{
    char text[TEXT_MAX];
    double found = steps_slow_text(steps, count, text, sizeof(text));
    struct profiler_metric *metric = &out->metrics[out->count++];
    *metric = (struct profiler_metric){.name = "slow_steps",
                                       .unit = "1",
                                       .formula = "steps of more than three times their trial",
                                       .value = found,
                                       .reason = isnan(found) ? "no step's trial is known" : ""};
    return put_note(metric, text, arena, err);
}

static enum status put_trials(const struct step_time *steps, int count, struct arena *arena,
                              struct counts *out, struct error *err)
{
    struct step_count *rows = arena_array(arena, (size_t)count + 1, sizeof(*rows));
    if (!rows)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < count; k++)
        if (!isnan(steps[k].trial_s))
            rows[out->step_count++] =
                (struct step_count){k,
                                    {.name = "trial_s",
                                     .unit = "s",
                                     .formula = "the same kernel on trial by the tuner",
                                     .value = steps[k].trial_s,
                                     .reason = ""}};
    out->steps = rows;
    return STATUS_OK;
}

enum status steps_check(const struct steps_facts *f, struct arena *arena, struct counts *out,
                        struct error *err)
{
    int count = exe_step_count(f->exe);
    double sum_s = 0;
    struct step_time *steps = arena_array(arena, (size_t)count + 1, sizeof(*steps));
    if (!steps)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < count; k++) {
        struct exe_step step = exe_step_at(f->exe, k);
        steps[k] = (struct step_time){.name = step.node->name,
                                      .kind = step.node->op->name,
                                      .took_s = f->step_ns[k] * 1e-9,
                                      .trial_s = trial_of(&step)};
        sum_s += steps[k].took_s;
    }
    *out = (struct counts){.source = "clock"};
    TRY(put_apart(f, sum_s, arena, out, err));
    TRY(put_slow(steps, count, arena, out, err));
    return put_trials(steps, count, arena, out, err);
}
