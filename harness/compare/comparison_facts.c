/* SPDX-License-Identifier: Apache-2.0
 *
 * What surrounds a verdict: facts of the machine and the program in which BASE and HEAD differ, how
 * the machine's own speed moved, and what inside of a point changed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/numbers/stats.h"
#include "harness/compare/comparison.h"

enum { CEILINGS_MAX = 256, GREW_MAX = 3, WORDS_SHOWN = 160 };
#define CEILING_MOVED 0.02 /* smaller moves are the noise of measuring a ceiling */

enum status comparison_note(struct comparison_set *set, const char *what, const char *base,
                            const char *head, struct error *err)
{
    set->differences = arena_grow(&set->arena, set->differences, &set->difference_capacity,
                                  set->difference_count + 1, sizeof(*set->differences));
    if (!set->differences)
        return FAIL_NO_MEMORY(err);
    struct difference *d = &set->differences[set->difference_count++];
    d->what = arena_strdup(&set->arena, what);
    d->base = arena_strdup(&set->arena, base);
    d->head = arena_strdup(&set->arena, head);
    return d->what && d->base && d->head ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* ---- machine and program ---- */

static enum status facts_of(const struct run_ref *run, struct grid *g, struct error *err)
{
    struct query_value value = {"run", NULL, (double)run->id};
    return query_view(run->store, "environment", &value, 1, g, err);
}

static int64_t fact_find(const struct grid *g, const char *category, const char *key)
{
    for (int64_t row = 0; row < g->row_count; row++)
        if (strcmp(grid_text(g, row, "key"), key) == 0 &&
            strcmp(grid_text(g, row, "category"), category) == 0)
            return row;
    return -1;
}

static const char *fact_value(const struct grid *g, int64_t row)
{
    const char *status = row < 0 ? "absent" : grid_text(g, row, "status");
    return strcmp(status, "ok") == 0 ? grid_text(g, row, "value") : status;
}

/* Facts of `a` that have another value in `b` or, with only_absent, are missing there. */
static enum status note_facts(struct comparison_set *set, const struct grid *a,
                              const struct grid *b, bool only_absent, struct error *err)
{
    for (int64_t row = 0; row < a->row_count; row++) {
        const char *category = grid_text(a, row, "category"), *key = grid_text(a, row, "key");
        int64_t other = fact_find(b, category, key);
        const char *mine = fact_value(a, row), *its = fact_value(b, other);
        if (strcmp(grid_text(a, row, "class"), "volatile") == 0 || (only_absent && other >= 0) ||
            strcmp(mine, its) == 0)
            continue;
        const char *what = arena_printf(&set->arena, "%s %s", category, key);
        if (!what)
            return FAIL_NO_MEMORY(err);
        TRY(comparison_note(set, what, only_absent ? its : mine, only_absent ? mine : its, err));
    }
    return STATUS_OK;
}

static enum status note_environment(struct comparison_set *set, const struct run_ref *base,
                                    const struct run_ref *head, struct error *err)
{
    struct grid a, b;
    TRY(facts_of(base, &a, err));
    enum status status = facts_of(head, &b, err);
    if (status == STATUS_OK) {
        status = note_facts(set, &a, &b, false, err);
        if (status == STATUS_OK)
            status = note_facts(set, &b, &a, true, err);
        grid_release(&b);
    }
    grid_release(&a);
    return status;
}

static enum status note_program(struct comparison_set *set, const struct run_ref *a,
                                const struct run_ref *b, struct error *err)
{
    const struct {
        const char *what, *base, *head;
    } parts[] = {
        {"program version", a->version, b->version}, {"program commit", a->git, b->git},
        {"program config", a->config, b->config},    {"compiler", a->compiler, b->compiler},
        {"compiler flags", a->flags, b->flags},      {"features", a->features, b->features},
    };
    const char *changed = "";
    set->same_program = strcmp(a->build, b->build) == 0;
    if (!set->same_program)
        for (size_t k = 0; k < sizeof(parts) / sizeof(*parts); k++) {
            if (strcmp(parts[k].base, parts[k].head) == 0)
                continue;
            TRY(comparison_note(set, parts[k].what, parts[k].base, parts[k].head, err));
            changed =
                arena_printf(&set->arena, "%s%s%s", changed, *changed ? ", " : "", parts[k].what);
            if (!changed)
                return FAIL_NO_MEMORY(err);
        }
    /* Machine and time are the same in turns; a wrapper may still give each side its own settings.
     */
    set->attribution =
        set->same_program && set->in_turns
            ? "BASE and HEAD are the same program (equal hash), measured in turns: a change is a "
              "setting of one side, or chance"
        : set->same_program
            ? "BASE and HEAD are the same program (equal hash): a change is environment or hardware"
            : arena_printf(&set->arena, "the program changed: %s",
                           *changed ? changed : "its files, at the same commit");
    return set->attribution ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* Runs of one side that differ among each other say less than they seem to. */
static enum status note_mixture(struct comparison_set *set, const struct run_list *list,
                                const char *side, struct error *err)
{
    for (int k = 1; k < list->count; k++) {
        const struct run_ref *a = &list->runs[0], *b = &list->runs[k];
        const char *what = strcmp(a->build, b->build) != 0               ? "program"
                           : strcmp(a->environment, b->environment) != 0 ? "environment"
                                                                         : NULL;
        if (!what)
            continue;
        char text[96];
        snprintf(text, sizeof(text), "%s of runs within %s", what, side);
        return comparison_note(set, text, a->word, b->word, err);
    }
    return STATUS_OK;
}

static enum status note_left_out(struct comparison_set *set, struct error *err)
{
    for (size_t k = 0; k < set->count; k++) {
        const struct compared_point *point = &set->points[k];
        const struct compare_side *sides[] = {&set->inputs[k].base, &set->inputs[k].head};
        char text[2][160] = {"none", "none"};
        for (int side = 0; side < 2; side++)
            if (sides[side]->state == SIDE_USABLE && point->left_out[side])
                snprintf(text[side], sizeof(text[side]), "%d (%s)", point->left_out[side],
                         point->left_out_why[side]);
        clean_end(text[0]);
        clean_end(text[1]);
        const char *what = arena_printf(&set->arena, "invalid runs left out: %s", point->label);
        if (!what)
            return FAIL_NO_MEMORY(err);
        if (strcmp(text[0], "none") != 0 || strcmp(text[1], "none") != 0)
            TRY(comparison_note(set, what, text[0], text[1], err));
    }
    return STATUS_OK;
}

/* ---- points that are almost the same ---- */

/* Part of a canonical text: words with blanks between them. */
struct words {
    const char *at, *end;
};

static size_t first_length(const struct words *w)
{
    const char *blank = memchr(w->at, ' ', (size_t)(w->end - w->at));
    return (size_t)((blank ? blank : w->end) - w->at);
}

static size_t last_length(const struct words *w)
{
    const char *at = w->end;
    while (at > w->at && at[-1] != ' ')
        at--;
    return (size_t)(w->end - at);
}

static void drop_equal_words(struct words *a, struct words *b)
{
    size_t n = first_length(a);
    while (a->at < a->end && b->at < b->end && n == first_length(b) &&
           memcmp(a->at, b->at, n) == 0) {
        a->at += n + (a->at + n < a->end);
        b->at += n + (b->at + n < b->end);
        n = first_length(a);
    }
    n = last_length(a);
    while (a->at < a->end && b->at < b->end && n == last_length(b) &&
           memcmp(a->end - n, b->end - n, n) == 0) {
        a->end -= n + (a->end - n > a->at);
        b->end -= n + (b->end - n > b->at);
        n = last_length(a);
    }
}

/* "threads=2", "threads=4": the only word in which two canonical texts differ, or the words that
 * only one of them has: "the usual", "isa=scalar tuning=none". False where more differs, or where
 * the workloads do. */
static bool differ_little(const char *a, const char *b, char word[2][WORDS_SHOWN])
{
    struct words left[2] = {{a, a + strlen(a)}, {b, b + strlen(b)}};
    drop_equal_words(&left[0], &left[1]);
    bool empty = false, several = false;
    for (int k = 0; k < 2; k++) {
        int length = (int)(left[k].end - left[k].at);
        snprintf(word[k], WORDS_SHOWN, "%.*s", length ? length : WORDS_SHOWN,
                 length ? left[k].at : "the usual");
        clean_end(word[k]);
        empty = empty || !length;
        several = several || first_length(&left[k]) < (size_t)length;
    }
    return (empty || !several) && strncmp(left[0].at, "workload=", strlen("workload=")) != 0;
}

/* A changed thread count makes other points: say so before they are listed as missing and new. */
static enum status note_near_points(struct comparison_set *set, struct error *err)
{
    char seen[2][WORDS_SHOWN] = {"", ""}, word[2][WORDS_SHOWN];
    for (size_t k = 0; k < set->count; k++) {
        if (set->inputs[k].head.state != SIDE_ABSENT)
            continue;
        for (size_t i = 0; i < set->count; i++) {
            if (set->inputs[i].base.state != SIDE_ABSENT ||
                !differ_little(set->points[k].canonical, set->points[i].canonical, word) ||
                (strcmp(word[0], seen[0]) == 0 && strcmp(word[1], seen[1]) == 0))
                continue;
            TRY(comparison_note(set, "points differ in", word[0], word[1], err));
            memcpy(seen, word, sizeof(seen));
        }
    }
    return STATUS_OK;
}

/* ---- the machine's own speed ---- */

static enum status load_ceilings(struct comparison_set *set, struct error *err)
{
    const struct run_ref *runs[] = {&set->base.runs[0], &set->head.runs[0]};
    for (int k = 0; k < 2; k++) {
        struct query_value value = {"run", NULL, (double)runs[k]->id};
        TRY(query_view(runs[k]->store, "compare_ceilings", &value, 1, &set->ceilings[k], err));
    }
    return STATUS_OK;
}

static bool same_ceiling(const struct grid *a, int64_t i, const struct grid *b, int64_t k)
{
    return grid_number(a, i, "threads") == grid_number(b, k, "threads") &&
           strcmp(grid_text(a, i, "name"), grid_text(b, k, "name")) == 0 &&
           strcmp(grid_text(a, i, "device"), grid_text(b, k, "device")) == 0;
}

/* Another device is always used whole: its ceilings have threads 0. */
static bool is_ceiling_of(const struct grid *g, int64_t row, const char *device, int threads)
{
    return strcmp(grid_text(g, row, "device"), device) == 0 &&
           (int)grid_number(g, row, "threads") == (strcmp(device, "cpu") == 0 ? threads : 0);
}

double comparison_machine(const struct comparison_set *set, const char *device, int threads)
{
    const struct grid *a = &set->ceilings[0], *b = &set->ceilings[1];
    double ratios[CEILINGS_MAX];
    int count = 0;
    for (int64_t i = 0; i < a->row_count; i++)
        for (int64_t k = 0; k < b->row_count && count < CEILINGS_MAX; k++)
            if (is_ceiling_of(a, i, device, threads) && same_ceiling(a, i, b, k))
                ratios[count++] = grid_number(a, i, "value") / grid_number(b, k, "value");
    stats_sort(ratios, count);
    return count ? stats_median(ratios, count) : 0;
}

static enum status note_ceilings(struct comparison_set *set, struct error *err)
{
    const struct grid *g = &set->ceilings[0];
    for (int64_t row = 0; row < g->row_count; row++) {
        char what[96], text[32];
        int threads = (int)grid_number(g, row, "threads");
        const char *device = grid_text(g, row, "device");
        bool seen = false;
        for (int64_t k = 0; k < row; k++)
            seen = seen || is_ceiling_of(g, k, device, threads);
        double machine = seen ? 0 : comparison_machine(set, device, threads);
        if (machine == 0 || fabs(log(machine)) < CEILING_MOVED)
            continue;
        if (threads)
            snprintf(what, sizeof(what), "machine's speed with %d thread%s (ceilings)", threads,
                     threads > 1 ? "s" : "");
        else
            snprintf(what, sizeof(what), "speed of %.32s (ceilings)", device);
        snprintf(text, sizeof(text), "%.3f", 1 / machine);
        TRY(comparison_note(set, what, "1", text, err));
    }
    return STATUS_OK;
}

enum status comparison_find_differences(struct comparison_set *set, struct error *err)
{
    const struct run_ref *base = &set->base.runs[0], *head = &set->head.runs[0];
    if (strcmp(base->host_uid, head->host_uid) != 0)
        TRY(comparison_note(set, "machine", base->host, head->host, err));
    TRY(note_environment(set, base, head, err));
    TRY(note_program(set, base, head, err));
    TRY(note_mixture(set, &set->base, "BASE", err));
    TRY(note_mixture(set, &set->head, "HEAD", err));
    TRY(note_left_out(set, err));
    TRY(note_near_points(set, err));
    TRY(comparison_find_work(set, err));
    TRY(load_ceilings(set, err));
    return note_ceilings(set, err);
}

/* ---- inside a point ---- */

struct step_change {
    const char *name;
    double seconds;
};

struct step_summary {
    int other_kernels;
    const char *example; /* "conv1: a -> b" */
    struct step_change grew[GREW_MAX];
};

static void insert_step(struct step_change *grew, struct step_change step)
{
    for (int k = 0; k < GREW_MAX; k++)
        if (fabs(step.seconds) > fabs(grew[k].seconds)) {
            struct step_change pushed = grew[k];
            grew[k] = step;
            step = pushed;
        }
}

static void compare_steps(struct arena *arena, const struct grid *a, const struct grid *b,
                          double direction, struct step_summary *s)
{
    for (int64_t k = 0; k < a->row_count && k < b->row_count; k++) {
        const char *name = grid_text(a, k, "name");
        const char *was = grid_text(a, k, "kernel"), *is = grid_text(b, k, "kernel");
        double grown = grid_number(b, k, "time") - grid_number(a, k, "time");
        if (strcmp(name, grid_text(b, k, "name")) != 0)
            return;
        if (strcmp(was, is) != 0 && !s->other_kernels++)
            s->example = arena_printf(arena, "%s: %s -> %s", name, was, is);
        if (grown * direction > 0)
            insert_step(s->grew, (struct step_change){arena_strdup(arena, name), grown});
    }
}

static void append(struct comparison_set *set, size_t point, const char *text)
{
    const char *cause = set->points[point].cause;
    const char *joined =
        text ? arena_printf(&set->arena, "%s%s%s", cause, *cause ? "; " : "", text) : NULL;
    if (joined)
        set->points[point].cause = joined;
}

static void append_traffic(struct comparison_set *set, size_t point, const char *what, double base,
                           double head)
{
    double ratio = head / base;
    if (isnan(ratio) || isinf(ratio))
        return;
    append(set, point,
           fabs(ratio - 1) < 0.005
               ? arena_printf(&set->arena, "%s equal", what)
               : arena_printf(&set->arena, "%s %+.1f %%", what, 100 * (ratio - 1)));
}

/* Work that stayed the same is reported, too, so that nobody looks for a change. */
static void append_work(struct comparison_set *set, size_t point)
{
    const struct compared_point *p = &set->points[point];
    const struct side_work *a = &p->work[0], *b = &p->work[1];
    if (*p->work_changed) {
        append(set, point, arena_printf(&set->arena, "the work changed: %s", p->work_changed));
    } else {
        append_traffic(set, point, "FLOPs", a->flops, b->flops);
        append_traffic(set, point, "streamed bytes", a->streamed, b->streamed);
    }
    append_traffic(set, point, "DRAM bytes", a->dram, b->dram);
}

/* Signs of other work on the machine; only said when they moved much. */
static void append_disturbance(struct comparison_set *set, size_t point)
{
    const struct side_work *work = set->points[point].work;
    double switches[] = {work[0].switches, work[1].switches};
    double steal[] = {work[0].steal, work[1].steal};
    double low = fmin(switches[0], switches[1]), high = fmax(switches[0], switches[1]);
    if (high > 100 && high > 2 * low)
        append(set, point,
               arena_printf(&set->arena, "context switches per s %.0f -> %.0f", switches[0],
                            switches[1]));
    if (fabs(steal[1] - steal[0]) > 0.005)
        append(set, point,
               arena_printf(&set->arena, "CPU time taken by other machines %.1f -> %.1f %%",
                            100 * steal[0], 100 * steal[1]));
}

static void append_steps(struct comparison_set *set, size_t point, const struct step_summary *s)
{
    if (s->other_kernels)
        append(set, point,
               arena_printf(&set->arena, "other kernels in %d steps (%s)", s->other_kernels,
                            s->example ? s->example : ""));
    for (int k = 0; k < GREW_MAX; k++)
        if (s->grew[k].name && fabs(s->grew[k].seconds) > 0)
            append(set, point,
                   arena_printf(&set->arena, "step %s %+.4g ms", s->grew[k].name,
                                1e3 * s->grew[k].seconds));
}

enum status comparison_find_cause(struct comparison_set *set, size_t point, struct error *err)
{
    const struct compared_point *p = &set->points[point];
    enum verdict verdict = set->verdicts[point].verdict;
    if (verdict != VERDICT_REGRESSED && verdict != VERDICT_IMPROVED)
        return STATUS_OK;
    append(set, point,
           !set->same_program ? "the program changed"
           : set->in_turns    ? "same program: a setting of one side, or chance"
                              : "same program: environment or hardware");
    append_work(set, point);
    append_disturbance(set, point);
    struct query_value base = {"result", NULL, (double)p->base_result};
    struct query_value head = {"result", NULL, (double)p->head_result};
    struct grid a, b;
    TRY(query_view(p->store[0], "compare_steps", &base, 1, &a, err));
    enum status status = query_view(p->store[1], "compare_steps", &head, 1, &b, err);
    if (status == STATUS_OK) {
        struct step_summary steps = {.other_kernels = 0};
        compare_steps(&set->arena, &a, &b, verdict == VERDICT_REGRESSED ? 1 : -1, &steps);
        append_steps(set, point, &steps);
        grid_release(&b);
    }
    grid_release(&a);
    return status;
}
