/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether BASE and HEAD did the same work in a point, and the rates of those scenarios that have
 * one. Work is a sum over the graph, not a measurement: any change of it is reported. */
#include <math.h>
#include <string.h>

#include "base/numbers/stats.h"
#include "harness/compare/comparison.h"

enum { NUMBER = 40 };
#define SUM_ORDER     1e-6 /* sums of doubles in another order */
#define ERROR_CHANGED 10   /* so many times a verification's error is other arithmetic */

void comparison_read_work(struct side_work *work, const struct grid *g, int64_t row)
{
    *work = (struct side_work){.flops = grid_number(g, row, "flops"),
                               .compulsory = grid_number(g, row, "bytes_compulsory"),
                               .streamed = grid_number(g, row, "bytes_streamed"),
                               .dram = grid_number(g, row, "dram"),
                               .switches = grid_number(g, row, "switches"),
                               .steal = grid_number(g, row, "steal_share"),
                               .verify_error = grid_number(g, row, "verify_error"),
                               .verify_bound = grid_number(g, row, "verify_bound"),
                               .unverified = grid_number(g, row, "unverified") > 0};
}

/* ---- what changed ---- */

/* 4.1e9, not 4.1e+09; with all digits when four do not show the difference. */
static void number_text(double value, int digits, char text[NUMBER])
{
    snprintf(text, NUMBER, "%.*g", digits, value);
    char *e = strchr(text, 'e');
    if (!e)
        return;
    char *to = e + 1, *from = e + 1;
    if (*from == '-')
        *to++ = *from++;
    while (*from == '+' || (*from == '0' && from[1]))
        from++;
    memmove(to, from, strlen(from) + 1);
}

static void both_texts(double base, double head, char text[2][NUMBER])
{
    for (int digits = 4; digits <= 16; digits += 12) {
        number_text(base, digits, text[0]);
        number_text(head, digits, text[1]);
        if (strcmp(text[0], text[1]) != 0)
            return;
    }
}

struct changes {
    struct arena *arena;
    const char *both, *base, *head; /* "flops 1 -> 2", "flops 1", "flops 2" */
    bool failed;
};

static void add_text(struct changes *c, const char *what, const char *base, const char *head)
{
    const char *comma = *c->both ? ", " : "";
    c->both = arena_printf(c->arena, "%s%s%s %s -> %s", c->both, comma, what, base, head);
    c->base = arena_printf(c->arena, "%s%s%s %s", c->base, comma, what, base);
    c->head = arena_printf(c->arena, "%s%s%s %s", c->head, comma, what, head);
    if (c->both && c->base && c->head)
        return;
    c->both = c->base = c->head = "";
    c->failed = true;
}

static void add_number(struct changes *c, const char *what, double base, double head)
{
    char text[2][NUMBER];
    if (!(fabs(head - base) > SUM_ORDER * fmax(fabs(base), fabs(head))))
        return; /* also what is not known on one side */
    both_texts(base, head, text);
    add_text(c, what, text[0], text[1]);
}

static void add_verification(struct changes *c, const struct side_work *a,
                             const struct side_work *b)
{
    static const char *const words[] = {"verified", "not verified"};
    double more = b->verify_error / a->verify_error;
    if (a->unverified || b->unverified)
        return;
    if (isnan(a->verify_error) != isnan(b->verify_error))
        add_text(c, "verification", words[isnan(a->verify_error) != 0],
                 words[isnan(b->verify_error) != 0]);
    else if (more >= ERROR_CHANGED || more <= 1.0 / ERROR_CHANGED)
        add_number(c, "error of verification", a->verify_error, b->verify_error);
    add_number(c, "bound of verification", a->verify_bound, b->verify_bound);
}

enum status comparison_find_work(struct comparison_set *set, struct error *err)
{
    for (size_t k = 0; k < set->count; k++) {
        struct compared_point *point = &set->points[k];
        const struct side_work *a = &point->work[0], *b = &point->work[1];
        struct changes c = {.arena = &set->arena, .both = "", .base = "", .head = ""};
        if (!point->base_result || !point->head_result)
            continue;
        add_number(&c, "flops", a->flops, b->flops);
        add_number(&c, "bytes", a->compulsory, b->compulsory);
        add_number(&c, "streamed bytes", a->streamed, b->streamed);
        add_verification(&c, a, b);
        const char *what = arena_printf(&set->arena, "work of %s", point->label);
        if (c.failed || !what)
            return FAIL_NO_MEMORY(err);
        if (*c.both)
            TRY(comparison_note(set, what, c.base, c.head, err));
        point->work_changed = c.both;
    }
    return STATUS_OK;
}

/* ---- rates ---- */

enum status comparison_read_rate(struct comparison_set *set, struct compared_rate *rate,
                                 bool is_head, const struct grid *g, int64_t row, struct error *err)
{
    const char *scenario = grid_text(g, row, "scenario");
    bool offline = strcmp(scenario, "offline") == 0;
    double value = grid_number(g, row, "rate");
    if (!offline && strcmp(scenario, "server") != 0)
        return STATUS_OK;
    rate->name = offline ? "throughput" : "server rate";
    rate->judged = offline;
    if (!rate->runs[is_head])
        rate->runs[is_head] = arena_array(&set->arena, RUNS_MAX, sizeof(double));
    if (!rate->runs[is_head])
        return FAIL_NO_MEMORY(err);
    if (value > 0 && rate->count[is_head] < RUNS_MAX)
        rate->runs[is_head][rate->count[is_head]++] = value;
    return STATUS_OK;
}

static double middle(double *runs, int count)
{
    stats_sort(runs, count);
    return count ? stats_median(runs, count) : NAN;
}

/* A rate is the reciprocal of a time: so are its ratio and the ends of its interval. */
void comparison_settle_rates(struct comparison_set *set)
{
    for (size_t k = 0; k < set->count; k++) {
        struct compared_rate *rate = &set->points[k].rate;
        const struct comparison *c = &set->verdicts[k];
        rate->base = middle(rate->runs[0], rate->count[0]);
        rate->head = middle(rate->runs[1], rate->count[1]);
        rate->ratio = rate->judged ? 1 / c->ratio : rate->head / rate->base;
        rate->ci_low = rate->judged ? 1 / c->ci_high : NAN;
        rate->ci_high = rate->judged ? 1 / c->ci_low : NAN;
    }
}
