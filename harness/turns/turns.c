/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/turns/turns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/numbers/integers.h"
#include "base/system/clock.h"
#include "base/text/utc.h"
#include "engine/run/device.h"
#include "harness/campaign/progress.h"
#include "harness/machine/environment.h"
#include "harness/machine/redact.h"
#include "harness/measure/visits.h"
#include "harness/turns/child_words.h"
#include "harness/turns/program_probe.h"
#include "harness/turns/turns_point.h"
#include "harness/turns/turns_undecided.h"
#include "harness/watch/free_memory.h"
#include "harness/watch/interrupt.h"
#include "results/store.h"

enum { PAIRS_LEAST = 8, LEVELS_PART = 16, VISITS_FACTOR = 4 };

/* Of a visit, both programs together. */
static const double seconds_least = 0.6, seconds_max_least = 3;
static const double more_share = 0.35; /* of the rounds' time: for points that need more */
static const double start_limit_s = 900, sample_limit_s = 300;
static const char self[] = "/proc/self/exe"; /* this program, were its file replaced meanwhile */

struct turns {
    const struct plan *plan;
    const struct turns_options *options;
    struct turns_result *result;
    struct arena arena;
    struct environment environment;
    struct build_record build[2];
    struct store *store;
    int64_t run[2];
    int rounds;
    int64_t seed;
    struct turns_point *points;
    int *order;
    struct ceiling_list no_ceilings;
    struct levels *levels; /* NULL: there was no memory for them */
    struct progress progress;
};

/* ---- the store ---- */

static enum status redact_head(struct turns *t, struct run_head *head, struct error *err)
{
    const char **texts[] = {&head->command, &head->suite, &head->suite_text};
    if (t->options->redact)
        for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++) {
            *texts[k] = redact_lines(*texts[k], &t->arena);
            if (!*texts[k])
                return FAIL_NO_MEMORY(err);
        }
    return STATUS_OK;
}

/* Called again when a run continues in a spool. HEAD comes last, so that it is the latest run. */
static enum status begin_runs(struct turns *t, struct error *err)
{
    const char *tag = t->options->tag ? t->options->tag : "";
    const char *tags[] = {*tag ? arena_printf(&t->arena, "%s.base", tag) : "", tag};
    /* A run in turns cannot be continued by --resume. */
    const char *hash = arena_printf(&t->arena, "turns-%s", t->plan->hash);
    char *started = arena_alloc(&t->arena, UTC_TEXT);
    if (!started || !hash || !tags[0])
        return FAIL_NO_MEMORY(err);
    utc_now(started);
    for (int k = 0; k < 2; k++) {
        struct run_head head = {.uuid = t->result->uuid[k],
                                .environment = &t->environment,
                                .build = &t->build[k],
                                .command = t->options->command,
                                .suite = t->plan->suite,
                                .suite_text = t->plan->suite_text,
                                .plan_hash = hash,
                                .planned = t->plan->count,
                                .rounds = t->rounds,
                                .order_seed = t->seed,
                                .turns_uuid = t->result->uuid[1 - k],
                                .started_utc = started,
                                .order_key = (int64_t)time(NULL),
                                .branch = "",
                                .tag = tags[k]};
        TRY(redact_head(t, &head, err));
        TRY(run_begin(t->store, &head, &t->run[k], err));
        TRY(run_put_facts(t->store, t->run[k], "before", &t->environment, err));
    }
    return STATUS_OK;
}

/* As in harness/campaign/campaign.c: what was measured must not be lost because the database cannot
 * be written any more. */
static enum status fall_back(struct turns *t, struct error *err)
{
    struct error why = *err;
    struct store *spool;
    if (store_open_spool(t->options->db, t->result->uuid[TURNS_HEAD], &spool, err) != STATUS_OK)
        return error_context(err, "%s; nor can results be kept apart", why.message);
    store_close(t->store);
    t->store = spool;
    snprintf(t->result->note, sizeof(t->result->note), "%.300s. Results are kept in %.180s",
             why.message, store_path(spool));
    return begin_runs(t, err);
}

static enum status put(struct turns *t, int side, const struct record *record, struct error *err)
{
    if (run_put(t->store, t->run[side], record, err) == STATUS_OK)
        return STATUS_OK;
    TRY(fall_back(t, err));
    return run_put(t->store, t->run[side], record, err);
}

/* ---- one visit ---- */

/* What the stopping rule of a point demands is divided among the rounds; each visit also has a
 * floor of its own, since with less nothing can be seen. */
static struct turns_rules rules_of(const struct turns *t, const struct point *point, int round)
{
    const struct protocol *p = &point->protocol;
    bool host = device_is_host(point->device);
    int64_t pairs = divide_up(p->samples_min, t->rounds);
    double share_s = 2 * p->seconds_max / t->rounds;
    struct turns_rules rules = {.pairs_min = pairs > PAIRS_LEAST
                                                 ? (int)fmin((double)pairs, TURNS_SAMPLES_MAX)
                                                 : PAIRS_LEAST,
                                .pairs_max = TURNS_SAMPLES_MAX,
                                .seconds_min = fmax(2 * p->seconds_min / t->rounds, seconds_least),
                                .start_s = start_limit_s,
                                .sample_s = sample_limit_s,
                                .first = round % 2,
                                .levels = host ? t->levels : NULL,
                                .host = host,
                                .cpus = point->threads};
    rules.seconds_max = fmax(fmax(share_s, rules.seconds_min), seconds_max_least);
    if (point_is_null(point)) /* its time does not pass */
        rules.seconds_min = 0;
    return rules;
}

static enum status take_visit(struct turns *t, const struct turns_point *tp, int round,
                              struct turns_visit *visit, struct arena *arena, struct error *err)
{
    const char *words[2][CHILD_WORDS_MAX];
    struct model_options model = *t->options->model;
    struct turns_rules rules = rules_of(t, tp->point, round + tp->sequence);
    TRY(precision_from_name(tp->point->precision, &rules.precision, err));
    model.retune = model.retune && round == 0; /* each of both, but not in every process again */
    TRY(child_words(t->options->program, tp->point, &model, arena, words[0], err));
    TRY(child_words(self, tp->point, &model, arena, words[1], err));
    const struct turns_side sides[] = {
        {t->options->program, words[0], t->options->environment},
        {"this program", words[1], NULL},
    };
    return turns_visit_take(sides, &rules, visit, err);
}

static struct point_job job_of(struct turns *t, const struct turns_point *tp, struct error *lost)
{
    return (struct point_job){.point = tp->point,
                              .sequence = tp->sequence,
                              .model = t->options->model,
                              .rounds = 1,
                              .ceilings = &t->no_ceilings,
                              .levels = t->levels,
                              .progress = &t->progress,
                              .lost = lost};
}

/* whole: HEAD is compiled here, verified, its steps are timed and counted. */
static enum status put_side(struct turns *t, struct turns_point *tp, enum turns_which side,
                            bool whole, struct error *err)
{
    struct arena arena = {0};
    struct record record;
    struct point_state state = {.open = false};
    struct error lost = {0};
    struct point_job job = job_of(t, tp, &lost);
    enum status status =
        turns_point_record(tp, side, whole ? &job : NULL, &state, &arena, &record, err);
    if (status == STATUS_OK) {
        record.settled = whole; /* it replaces that of the samples alone */
        status = put(t, (int)side, &record, err);
    }
    point_release(&state);
    arena_release(&arena);
    return status;
}

static enum status put_both(struct turns *t, struct turns_point *tp, struct error *err)
{
    TRY(put_side(t, tp, TURNS_BASE, false, err));
    return put_side(t, tp, TURNS_HEAD, false, err);
}

/* False in *goes_on: interrupted; what is not complete is forgotten. */
static enum status visit_point(struct turns *t, struct turns_point *tp, int round, bool *goes_on,
                               struct error *err)
{
    struct arena arena = {0};
    struct turns_visit visit = {.failed = -1, .exit_code = -1};
    struct error why = {0};
    enum status status = take_visit(t, tp, round, &visit, &arena, &why);
    arena_release(&arena);
    *goes_on = !interrupt_requested();
    bool no_side_at_fault = status != STATUS_OK && visit.failed < 0;
    if (status == STATUS_OK && visit.count < 2)
        *goes_on = false;
    if (!no_side_at_fault && (*goes_on || (status == STATUS_OK && visit.count >= 2))) {
        status = turns_point_add(tp, &visit, round, &why, &t->arena, err);
        if (status == STATUS_OK)
            status = put_both(t, tp, err);
    } else if (no_side_at_fault && *goes_on) {
        *err = why;
    } else {
        status = STATUS_OK;
    }
    turns_visit_release(&visit);
    return status;
}

/* ---- rounds ---- */

static enum status come_to(struct turns *t, struct turns_point *tp, int round, bool *goes_on,
                           struct error *err)
{
    char label[128];
    snprintf(label, sizeof(label), "round %d: %s b%lld", round + 1, tp->point->spec,
             (long long)tp->point->batch);
    t->progress.label = label;
    progress_show(&t->progress, "taking turns", NAN, NAN);
    enum status status = visit_point(t, tp, round, goes_on, err);
    t->progress.label = "";
    return status;
}

static enum status run_round(struct turns *t, int round, bool *goes_on, struct error *err)
{
    visits_order(t->seed, round, t->order, t->plan->count);
    for (int k = 0; k < t->plan->count && *goes_on; k++) {
        struct turns_point *tp = &t->points[t->order[k]];
        if (tp->refused || tp->failed >= 0)
            continue;
        *goes_on = !interrupt_requested();
        if (!*goes_on)
            break;
        progress_point(&t->progress, round * t->plan->count + k, "");
        TRY(come_to(t, tp, round, goes_on, err));
    }
    return STATUS_OK;
}

/* More rounds for the points in which a slowdown could still go unnoticed, until there are none or
 * the time is up. */
static enum status run_more(struct turns *t, uint64_t began_ns, bool *goes_on, struct error *err)
{
    uint64_t now_ns = clock_now_ns();
    uint64_t until_ns = now_ns + (uint64_t)(more_share * (double)(now_ns - began_ns));
    int undecided = 1;
    if (t->rounds == 1) /* a single visit shows no noise */
        return STATUS_OK;
    for (int round = t->rounds; *goes_on && undecided > 0; round++) {
        TRY(turns_undecided(t->points, t->plan->count, VISITS_FACTOR * t->rounds, t->order,
                            &undecided, err));
        for (int k = 0; k < undecided && *goes_on; k++) {
            *goes_on = clock_now_ns() < until_ns && !interrupt_requested();
            if (*goes_on)
                TRY(come_to(t, &t->points[t->order[k]], round, goes_on, err));
        }
    }
    return STATUS_OK;
}

static enum status put_whole(struct turns *t, struct error *err)
{
    for (int k = 0; k < t->plan->count && !interrupt_requested(); k++) {
        progress_point(&t->progress, t->progress.total, t->plan->points[k].spec);
        if (t->points[k].visit_count)
            TRY(put_side(t, &t->points[k], TURNS_HEAD, true, err));
    }
    return STATUS_OK;
}

static enum status run_rounds(struct turns *t, struct error *err)
{
    uint64_t began_ns = clock_now_ns();
    bool goes_on = true;
    for (int round = 0; round < t->rounds && goes_on; round++)
        TRY(run_round(t, round, &goes_on, err));
    if (goes_on)
        TRY(run_more(t, began_ns, &goes_on, err));
    return put_whole(t, err);
}

static enum status open_points(struct turns *t, struct error *err)
{
    size_t count = (size_t)t->plan->count;
    t->points = arena_array(&t->arena, count, sizeof(*t->points));
    t->order = arena_array(&t->arena, count, sizeof(*t->order));
    if (!t->points || !t->order)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < t->plan->count; k++) {
        struct turns_point *tp = &t->points[k];
        TRY(turns_point_open(tp, &t->plan->points[k], k, VISITS_FACTOR * t->rounds, &t->arena,
                             err));
        tp->refused = child_refuses(tp->point);
        if (tp->refused)
            TRY(put_both(t, tp, err));
    }
    return STATUS_OK;
}

static void sum_up(struct turns *t)
{
    struct turns_result *r = t->result;
    for (int k = 0; k < t->plan->count; k++) {
        const struct turns_point *tp = &t->points[k];
        r->compared += tp->complete > 0;
        r->failed += tp->failed >= 0;
        if (tp->complete > 0 || (!tp->refused && tp->failed < 0))
            continue;
        if (!r->left_out++)
            snprintf(r->why_left_out, sizeof(r->why_left_out), "%.100s: %.400s", tp->point->spec,
                     tp->refused ? tp->refused : tp->failure.message);
    }
}

/* ---- the end ---- */

/* "" when neither program has changed. */
static void find_changed_program(struct turns *t, char *reason, size_t size)
{
    struct build_record now;
    struct error err;
    static const char *const names[] = {"BASE", "HEAD"};
    const char *const programs[] = {t->options->program, self};
    for (int k = 0; k < 2; k++) {
        const char *const *environment = k == 0 ? t->options->environment : NULL;
        if (program_probe(programs[k], environment, &t->arena, &now, &err) == STATUS_OK &&
            strcmp(now.uid, t->build[k].uid) == 0)
            continue;
        snprintf(reason, size, "%s was replaced by another program while the run went on",
                 names[k]);
        return;
    }
}

static enum status finish(struct turns *t, struct error *err)
{
    struct environment after;
    char reason[512] = "", changes[400];
    t->result->interrupted = interrupt_requested();
    TRY(environment_probe(&after, &t->arena, t->options->redact, err));
    if (strcmp(after.hash, t->environment.hash) != 0) {
        environment_changes(&t->environment, &after, changes, sizeof(changes));
        snprintf(reason, sizeof(reason), "the environment changed while the run went on: %s",
                 changes);
    } else if (!t->result->interrupted) {
        find_changed_program(t, reason, sizeof(reason));
    }
    t->result->changed = reason[0] != '\0';
    if (t->result->changed && !t->result->note[0])
        snprintf(t->result->note, sizeof(t->result->note), "the runs are invalid: %.480s", reason);
    for (int k = 0; k < 2; k++) {
        TRY(run_put_facts(t->store, t->run[k], "after", &after, err));
        TRY(run_end(t->store, t->run[k], !t->result->interrupted, !t->result->changed, reason,
                    err));
    }
    return STATUS_OK;
}

static enum status begin(struct turns *t, struct error *err)
{
    TRY(environment_probe(&t->environment, &t->arena, t->options->redact, err));
    TRY(build_probe(&t->build[TURNS_HEAD], &t->arena, err));
    TRY(program_probe(t->options->program, t->options->environment, &t->arena,
                      &t->build[TURNS_BASE], err));
    /* Without levels the runs are worth less, but they are still runs. */
    double available = free_memory_find("").bytes;
    available = isfinite(available) ? available : 0;
    if (levels_open((int64_t)(available / LEVELS_PART), &t->levels, NULL) != STATUS_OK)
        t->levels = NULL;
    TRY(store_open(t->options->db, STORE_WRITE, &t->store, err));
    TRY(begin_runs(t, err));
    return open_points(t, err);
}

enum status turns_run(const struct plan *plan, const struct turns_options *options,
                      struct turns_result *result, struct error *err)
{
    struct turns t = {.plan = plan, .options = options, .result = result};
    *result = (struct turns_result){.note = ""};
    t.rounds = plan->rounds > 1 ? plan->rounds : 1;
    t.seed = plan->order_seed.given ? plan->order_seed.value : (int64_t)time(NULL);
    for (int k = 0; k < 2; k++)
        uuid_make(result->uuid[k]);
    progress_begin(&t.progress, plan->count * t.rounds, options->quiet);
    enum status status = begin(&t, err);
    if (status == STATUS_OK)
        status = run_rounds(&t, err);
    progress_clear(&t.progress);
    if (status == STATUS_OK)
        status = finish(&t, err);
    if (status == STATUS_OK)
        sum_up(&t);
    if (t.points)
        for (int k = 0; k < plan->count; k++)
            turns_point_close(&t.points[k]);
    levels_close(t.levels);
    store_close(t.store);
    arena_release(&t.arena);
    return status;
}
