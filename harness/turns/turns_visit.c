/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/turns/turns_visit.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "harness/measure/surroundings.h"
#include "harness/turns/asked_child.h"
#include "harness/watch/interrupt.h"
#include "harness/watch/stolen_time.h"

enum { PAIRS_LEAST = 2, WARMUP = 3 };

static const double block_ms = 2;  /* a sample lasts at least that long ... */
static const double settle_ms = 1; /* ... after executions of this length that do not count, ... */
static const double settled_ms = 20; /* ... which longer ones do not need */
static const double long_ms = 300;   /* one execution has warmed such a one up */

struct session {
    const struct turns_rules *rules;
    struct turns_visit *visit;
    struct asked_child child[2];
    long long settle;
};

/* ---- what happens around the turns ---- */

struct counters {
    double stolen_s, at_s, waited_s, ran_s;
    int cpus; /* that stolen_s is of */
};

/* From the CPUs that this process, and so both programs, may run on. */
static void read_stolen(struct counters *now)
{
    struct stolen_time *stolen = stolen_time_open("");
    int64_t ns = stolen_time_ns(stolen);
    now->stolen_s = ns == RECORD_NONE ? NAN : (double)ns * 1e-9;
    now->cpus = stolen_time_cpus(stolen);
    stolen_time_close(stolen);
}

/* Time that the threads of a process ran, and waited for a CPU. */
static void add_threads(pid_t pid, struct counters *sum)
{
    char path[512];
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        double ran, waited;
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "/proc/%d/task/%.200s/schedstat", (int)pid, entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fscanf(file, "%lf %lf", &ran, &waited) == 2) {
            sum->ran_s += ran * 1e-9;
            sum->waited_s += waited * 1e-9;
        }
        if (file)
            fclose(file);
    }
    if (folder)
        closedir(folder);
}

static struct counters look(const struct session *s)
{
    struct counters now = {.at_s = (double)clock_now_ns() * 1e-9};
    read_stolen(&now);
    for (int k = 0; k < 2; k++)
        add_threads(s->child[k].pid, &now);
    return now;
}

static void note_seen(struct session *s, const struct counters *from, double clock_before)
{
    struct counters to = look(s);
    struct turns_seen *seen = &s->visit->seen;
    double wall = to.at_s - from->at_s;
    double ran = to.ran_s - from->ran_s, waited = to.waited_s - from->waited_s;
    seen->steal_share = wall > 0 ? (to.stolen_s - from->stolen_s) / wall / to.cpus : NAN;
    seen->wait_share = ran > 0 ? waited / (ran + waited) : NAN;
    seen->clock_hz = s->rules->host ? 0.5 * (clock_before + cpu_clock_hz()) : NAN;
}

/* On threads of our own, which end before the next turn. */
static void read_levels(const struct session *s, struct levels_now *out)
{
    struct pool *pool = NULL;
    if (!s->rules->levels || pool_new(s->rules->cpus, &pool, NULL) != STATUS_OK) {
        levels_none(s->rules->host ? "no memory was left to read levels from"
                                   : "no levels are read of this device",
                    out);
        return;
    }
    levels_read(s->rules->levels, pool, s->rules->precision, out);
    pool_free(pool);
}

/* ---- turns ---- */

static enum status fail_side(struct session *s, int side, enum status status)
{
    if (status != STATUS_OK && s->visit->failed < 0)
        s->visit->failed = side;
    return status;
}

static enum status sample(struct session *s, int side, double *ms, struct error *err)
{
    struct asked_child *child = &s->child[side];
    double settled;
    if (s->settle)
        TRY(asked_child_block(child, s->settle, s->rules->sample_s, &settled, err));
    /* One execution is asked for as such: a device times a block by another clock. */
    return s->visit->block > 1
               ? asked_child_block(child, s->visit->block, s->rules->sample_s, ms, err)
               : asked_child_sample(child, s->rules->sample_s, ms, err);
}

/* The k-th turn of both: A B, B A, A B ... */
static enum status take_turns(struct session *s, int k, double *const at[2], struct error *err)
{
    for (int i = 0; i < 2; i++) {
        int side = (i + k + s->rules->first) % 2;
        TRY(fail_side(s, side, sample(s, side, at[side], err)));
    }
    return STATUS_OK;
}

static enum status start_both(struct session *s, const struct turns_side side[2], struct error *err)
{
    for (int k = 0; k < 2; k++) {
        int which = (k + s->rules->first) % 2;
        struct asked_child *child = &s->child[which];
        /* Not both at once: compiling in parallel would tune kernels on a busy machine. */
        TRY(fail_side(
            s, which,
            asked_child_start_kept(child, side[which].command, side[which].environment, err)));
        child->name = side[which].name;
        TRY(fail_side(s, which, asked_child_ready(child, s->rules->start_s, err)));
    }
    return STATUS_OK;
}

/* How many executions make a sample is the same for both: by the faster one's. */
static enum status warm_up(struct session *s, struct error *err)
{
    double last[2] = {0, 0}, *const at[2] = {&last[0], &last[1]};
    s->visit->block = 1;
    for (int k = 0; k < WARMUP && (k == 0 || fmax(last[0], last[1]) < long_ms); k++)
        TRY(take_turns(s, k, at, err));
    double ms = fmin(last[0], last[1]);
    s->visit->block = ms < 0.5 * block_ms ? (long long)ceil(fmin(block_ms / ms, 1e6)) : 1;
    s->settle = ms < settled_ms ? (long long)ceil(fmin(settle_ms / ms, 1e6)) : 0;
    return STATUS_OK;
}

static bool goes_on(const struct session *s, double seconds)
{
    const struct turns_rules *r = s->rules;
    int count = s->visit->count;
    if (count >= r->pairs_max || interrupt_requested())
        return false;
    if (count < PAIRS_LEAST)
        return true;
    return (count < r->pairs_min || seconds < r->seconds_min) && seconds < r->seconds_max;
}

static enum status take_pairs(struct session *s, struct error *err)
{
    struct turns_visit *v = s->visit;
    uint64_t begin = clock_now_ns();
    while (goes_on(s, (double)(clock_now_ns() - begin) * 1e-9)) {
        double *const at[2] = {v->ms[0] + v->count, v->ms[1] + v->count};
        TRY(take_turns(s, v->count, at, err));
        v->count++;
    }
    return STATUS_OK;
}

static enum status take(struct session *s, const struct turns_side side[2], struct error *err)
{
    TRY(start_both(s, side, err));
    TRY(warm_up(s, err));
    read_levels(s, &s->visit->seen.before);
    double clock_hz = s->rules->host ? cpu_clock_hz() : NAN;
    struct counters from = look(s);
    TRY(take_pairs(s, err));
    note_seen(s, &from, clock_hz);
    read_levels(s, &s->visit->seen.after);
    return STATUS_OK;
}

static void stop_both(struct session *s, enum status *status, struct error *err)
{
    for (int k = 0; k < 2; k++) {
        enum status ended = asked_child_stop(&s->child[k], *status == STATUS_OK ? err : NULL);
        if (*status == STATUS_OK && fail_side(s, k, ended) != STATUS_OK)
            *status = ended;
        if (s->visit->failed == k)
            s->visit->exit_code = s->child[k].exit_code;
    }
}

enum status turns_visit_take(const struct turns_side side[2], const struct turns_rules *rules,
                             struct turns_visit *visit, struct error *err)
{
    struct session s = {.rules = rules, .visit = visit};
    uint64_t begin = clock_now_ns();
    *visit = (struct turns_visit){.failed = -1,
                                  .exit_code = -1,
                                  .block = 1,
                                  .seen = {.steal_share = NAN, .wait_share = NAN, .clock_hz = NAN}};
    utc_now(visit->started_utc);
    for (int k = 0; k < 2; k++) {
        s.child[k] = (struct asked_child){.socket = -1, .errors = -1};
        visit->ms[k] = calloc((size_t)rules->pairs_max, sizeof(double));
    }
    if (!visit->ms[0] || !visit->ms[1]) {
        turns_visit_release(visit);
        return FAIL_NO_MEMORY(err);
    }
    enum status status = take(&s, side, err);
    stop_both(&s, &status, err);
    visit->interrupted = interrupt_requested();
    visit->seconds = (double)(clock_now_ns() - begin) * 1e-9;
    return status;
}

void turns_visit_release(struct turns_visit *visit)
{
    free(visit->ms[0]);
    free(visit->ms[1]);
    visit->ms[0] = visit->ms[1] = NULL;
}
