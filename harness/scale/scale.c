/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/scale/scale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/numbers/integers.h"
#include "base/numbers/stats.h"
#include "base/system/clock.h"
#include "base/system/cpus.h"
#include "collective/agree.h"
#include "collective/comm_thread.h"
#include "collective/local_ranks.h"
#include "harness/scale/rank_text.h"
#include "harness/watch/interrupt.h"

enum { UNITS_MAX = 1024, WARM_UP_PART = 10 };

/* What a rank writes down of each step. */
struct step_note {
    uint64_t ended_ns, communication_ns, exposed_ns, input_ns;
    double loss;
};

/* Of one rank, in memory that all processes share; its steps follow. */
struct rank_notes {
    uint64_t began_ns; /* the first step */
    int64_t steps;
    int64_t batch;
    int threads, unit_count;
    int64_t state_bytes, work_bytes;
    struct scale_unit units[UNITS_MAX];
    struct step_note step[];
};

struct scale {
    const struct scale_options *options;
    bool rehearsal;       /* rank 0 only compiles */
    unsigned char *notes; /* of rank 0, 1, ... */
    size_t notes_bytes;   /* of each */
};

static struct rank_notes *notes_of(const struct scale *s, int rank)
{
    return (struct rank_notes *)(void *)(s->notes + s->notes_bytes * (size_t)rank);
}

/* ---- one rank ---- */

struct rank_run {
    struct comm base, threaded;
    struct comm *comm; /* the one that is used */
    struct trainer *trainer;
    struct rank_notes *notes;
};

static void note_units(struct rank_run *r, struct step_note *note, uint64_t began_ns)
{
    const struct exe *exe = trainer_exe(r->trainer);
    for (int k = 0; k < exe_exchange_count(exe); k++) {
        struct exe_exchange x = exe_exchange_at(exe, k);
        note->communication_ns += x.of.ended_ns - x.of.started_ns;
        note->exposed_ns += x.waited_ns;
        if (k >= UNITS_MAX)
            continue;
        struct scale_unit *unit = &r->notes->units[k];
        *unit = (struct scale_unit){.bytes = (int64_t)x.bytes,
                                    .messages = x.of.messages,
                                    .bytes_sent = x.of.bytes_sent,
                                    .ready_ns = x.ready_ns - began_ns,
                                    .started_ns = x.of.started_ns - began_ns,
                                    .ended_ns = x.of.ended_ns - began_ns,
                                    .waited_ns = x.waited_ns};
        snprintf(unit->operation, sizeof(unit->operation), "%s",
                 exe_step_at(exe, x.step).node->op->name);
        snprintf(unit->algorithm, sizeof(unit->algorithm), "%s",
                 x.of.algorithm ? x.of.algorithm : "");
    }
}

static bool on_step(void *context, const struct train_progress *p)
{
    struct rank_run *r = context;
    const struct train_result *so_far = p->so_far;
    int64_t index = r->notes->steps;
    struct step_note *note = &r->notes->step[index];
    uint64_t began_ns = index ? r->notes->step[index - 1].ended_ns : r->notes->began_ns;
    *note = (struct step_note){
        .ended_ns = clock_now_ns(), .input_ns = so_far->waited_ns, .loss = so_far->losses[index]};
    if (r->comm)
        note_units(r, note, began_ns);
    r->notes->batch = so_far->batch;
    r->notes->steps++;
    return true;
}

/* All ranks, with the same text each. */
static enum status agree(struct rank_run *r, const char *what, char *text, struct error *err)
{
    enum status status = STATUS_OK;
    if (!text)
        status = FAIL_NO_MEMORY(err);
    else if (r->comm)
        status = ranks_agree(r->comm, what, text, err);
    free(text);
    return status;
}

/* Launched ranks: the first compiles once before the others do. */
static enum status go_first(const struct scale *s, struct rank_run *r, const struct train_job *job,
                            struct error *err)
{
    int32_t here = 1;
    struct comm_call barrier = {.operation = COMM_ALL_REDUCE, .dtype = DTYPE_I32, .count = 1};
    if (!s->options->launched || !r->comm || job->model.no_tune)
        return STATUS_OK;
    if (r->comm->rank == 0) {
        TRY(trainer_open(job, &r->trainer, err));
        trainer_close(r->trainer);
        r->trainer = NULL;
    }
    return comm_once(r->comm, &barrier, &here, &here, err);
}

/* Launched ranks share no memory: each gets the notes of all. */
static enum status gather_notes(const struct scale *s, struct rank_run *r, struct error *err)
{
    if (!s->options->launched || !r->comm)
        return STATUS_OK;
    int64_t *counts = calloc((size_t)r->comm->ranks, sizeof(*counts));
    if (!counts)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < r->comm->ranks; k++)
        counts[k] = (int64_t)(s->notes_bytes / sizeof(int32_t));
    struct comm_call call = {.operation = COMM_ALL_GATHER, .dtype = DTYPE_I32, .counts = counts};
    enum status status = comm_once(r->comm, &call, r->notes, s->notes, err);
    free(counts);
    return status;
}

static void note_memory(struct rank_notes *notes, const struct exe *exe)
{
    const struct graph *g = exe_graph(exe);
    for (int k = 0; k < g->state_count; k++)
        notes->state_bytes += (int64_t)value_size(&g->values[g->states[k].before]);
    struct exe_memory memory = exe_memory(exe);
    notes->work_bytes = (int64_t)(memory.arena_bytes + memory.unit_bytes);
}

static enum status train(const struct scale *s, struct rank_run *r, struct error *err)
{
    struct train_job job = s->options->job;
    struct train_result result;
    job.model.comm = r->comm;
    TRY(go_first(s, r, &job, err));
    communicator_prefer(&r->base, s->options->algorithm); /* of gradients, not of all else */
    TRY(trainer_open(&job, &r->trainer, err));
    communicator_prefer(&r->base, NULL);
    if (s->rehearsal)
        return STATUS_OK;
    struct exe *exe = trainer_exe(r->trainer);
    r->notes->threads = pool_threads(exe_pool(exe));
    r->notes->unit_count = exe_exchange_count(exe);
    note_memory(r->notes, exe);
    TRY(agree(r, "the plan", plan_text(&job, exe), err));
    r->notes->began_ns = clock_now_ns();
    TRY(trainer_run(r->trainer, on_step, r, &result, err));
    TRY(agree(r, "what was learnt", weights_text(exe, trainer_shards(r->trainer)), err));
    return gather_notes(s, r, err);
}

/* A rehearsal has one rank, and connecting takes all of them where the backend has a library. */
static const struct backend *backend_of(const struct scale *s)
{
    return s->rehearsal ? backend_find("shm") : s->options->backend;
}

static enum status open_comm(const struct scale *s, struct group *group, int rank,
                             struct rank_run *r, struct error *err)
{
    const struct scale_options *o = s->options;
    struct communicator_options how = {.schedule = {.lanes = o->lanes}};
    TRY(communicator_open(backend_of(s), group, rank, &how, &r->base, err));
    if (o->ranks == 1)
        return STATUS_OK; /* a single rank exchanges nothing */
    if (o->no_thread)
        r->comm = &r->base;
    else
        TRY(comm_thread_open(&r->base, r->comm = &r->threaded, err));
    return STATUS_OK;
}

static enum status run_rank(void *context, struct group *group, int rank, struct error *err)
{
    const struct scale *s = context;
    struct rank_run r = {.notes = notes_of(s, rank)};
    if (s->rehearsal && rank != 0)
        return STATUS_OK;
    if (!s->options->launched)
        interrupt_restore(); /* the parent process ends this rank */
    enum status status = open_comm(s, group, rank, &r, err);
    if (status == STATUS_OK)
        status = train(s, &r, err);
    trainer_close(r.trainer);
    comm_thread_close(&r.threaded);
    communicator_close(&r.base);
    return status;
}

/* ---- all of them ---- */

/* Clocks of other machines cannot be compared with this one. */
static bool is_timed_by(const struct scale *s, int rank)
{
    return !s->options->launched || rank == s->options->rank;
}

static void time_steps(const struct scale *s, int64_t steps, double *times)
{
    uint64_t before = 0;
    for (int rank = 0; rank < s->options->ranks; rank++)
        if (is_timed_by(s, rank) && notes_of(s, rank)->began_ns > before)
            before = notes_of(s, rank)->began_ns;
    for (int64_t k = 0; k < steps; k++) {
        uint64_t ended = before;
        for (int rank = 0; rank < s->options->ranks; rank++) {
            uint64_t at = notes_of(s, rank)->step[k].ended_ns;
            ended = is_timed_by(s, rank) && at > ended ? at : ended;
        }
        times[k] = (double)(ended - before) * 1e-9;
        before = ended;
    }
}

/* Of a rank by its own clock, so that it waits for nobody else's step. */
static enum status median_computing(const struct rank_notes *notes, int64_t warm_up, double *out,
                                    struct error *err)
{
    int counted = (int)(notes->steps - warm_up);
    double *sorted = calloc((size_t)counted + 1, sizeof(*sorted));
    if (!sorted)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < counted; k++) {
        const struct step_note *step = &notes->step[warm_up + k];
        bool first = warm_up + k == 0;
        uint64_t began = first ? notes->began_ns : step[-1].ended_ns;
        uint64_t input = step->input_ns - (first ? 0 : step[-1].input_ns);
        int64_t left = (int64_t)(step->ended_ns - began - input - step->exposed_ns);
        sorted[k] = left > 0 ? (double)left * 1e-9 : 0;
    }
    stats_sort(sorted, counted);
    *out = stats_median(sorted, counted);
    free(sorted);
    return STATUS_OK;
}

static enum status fill_rank(const struct rank_notes *notes, int64_t warm_up,
                             struct scale_rank *out, struct error *err)
{
    double counted = (double)(notes->steps - warm_up);
    uint64_t began = warm_up ? notes->step[warm_up - 1].ended_ns : notes->began_ns;
    uint64_t input = warm_up ? notes->step[warm_up - 1].input_ns : 0;
    const struct step_note *last = &notes->step[notes->steps - 1];
    size_t units = (size_t)(notes->unit_count < UNITS_MAX ? notes->unit_count : UNITS_MAX);
    for (int64_t k = warm_up; k < notes->steps; k++) {
        out->communication_s += (double)notes->step[k].communication_ns * 1e-9 / counted;
        out->exposed_s += (double)notes->step[k].exposed_ns * 1e-9 / counted;
    }
    out->state_bytes = notes->state_bytes;
    out->work_bytes = notes->work_bytes;
    out->step_s = (double)(last->ended_ns - began) * 1e-9 / counted;
    out->input_s = (double)(last->input_ns - input) * 1e-9 / counted;
    TRY(median_computing(notes, warm_up, &out->computing_s, err));
    out->units = calloc(units + 1, sizeof(*out->units));
    if (!out->units)
        return FAIL_NO_MEMORY(err);
    memcpy(out->units, notes->units, units * sizeof(*out->units));
    return STATUS_OK;
}

static enum status fill_result(const struct scale *s, struct scale_result *out, struct error *err)
{
    const struct rank_notes *first = notes_of(s, 0);
    out->ranks = out->detailed = s->options->ranks;
    out->threads = first->threads;
    out->batch = first->batch;
    out->steps = first->steps;
    out->warm_up = out->steps > 1 ? divide_up(out->steps, WARM_UP_PART) : 0;
    out->unit_count = first->unit_count < UNITS_MAX ? first->unit_count : UNITS_MAX;
    out->losses = calloc((size_t)out->steps + 1, sizeof(*out->losses));
    out->by_rank = calloc((size_t)out->ranks, sizeof(*out->by_rank));
    out->step_times = calloc((size_t)out->steps + 1, sizeof(*out->step_times));
    double *sorted = calloc((size_t)out->steps + 1, sizeof(*sorted));
    if (!out->losses || !out->by_rank || !out->step_times || !sorted) {
        free(sorted);
        return FAIL_NO_MEMORY(err);
    }
    int counted = (int)(out->steps - out->warm_up);
    time_steps(s, out->steps, out->step_times);
    memcpy(sorted, out->step_times + out->warm_up, (size_t)counted * sizeof(*sorted));
    stats_sort(sorted, counted);
    out->step_s = stats_median(sorted, counted);
    out->samples_per_s = (double)out->batch / out->step_s;
    free(sorted);
    for (int64_t k = 0; k < out->steps; k++)
        out->losses[k] = first->step[k].loss;
    for (int rank = 0; rank < out->ranks; rank++)
        TRY(fill_rank(notes_of(s, rank), out->warm_up, &out->by_rank[rank], err));
    return STATUS_OK;
}

/* Leaves so many of the CPUs that each rank's part is what it would be among `shares` ranks: with
 * more of them free a single rank would be no measure for many. */
static void limit_cpus(const struct cpus *all, int ranks, int shares)
{
    struct cpus some = {0};
    int each = shares > ranks ? cpus_count(all) / shares : 0;
    for (int k = 0; k < each * ranks; k++)
        cpus_add(&some, cpus_at(all, k));
    if (each > 0)
        cpus_bind(pthread_self(), &some);
}

static enum status run_launched(struct scale *s, struct error *err)
{
    const struct scale_options *o = s->options;
    const struct group_options options = {.deadline_ns = o->deadline_ns};
    struct group *group;
    TRY(group_make(o->backend, o->ranks, &options, &group, err));
    enum status status = run_rank(s, group, o->rank, err);
    if (status != STATUS_OK)
        o->backend->announce(group, o->rank, err->message);
    o->backend->group_free(group);
    return status;
}

static enum status run_forked(struct scale *s, struct error *err)
{
    const struct scale_options *o = s->options;
    struct local_ranks run = {.ranks = o->ranks,
                              .options = {.deadline_ns = o->deadline_ns},
                              .body = run_rank,
                              .context = s,
                              .stopped = interrupt_requested};
    enum status status = STATUS_OK;
    s->rehearsal = !o->job.model.no_tune && o->ranks > 1;
    run.backend = backend_of(s);
    if (s->rehearsal)
        status = local_ranks_run(&run, err);
    s->rehearsal = false;
    run.backend = backend_of(s);
    if (status == STATUS_OK)
        status = local_ranks_run(&run, err);
    return status;
}

enum status scale_run(const struct scale_options *options, struct scale_result *out,
                      struct error *err)
{
    size_t steps = (size_t)options->job.recipe.schedule.steps;
    struct scale s = {.options = options};
    *out = (struct scale_result){0};
    s.notes_bytes = sizeof(struct rank_notes) + (steps + 1) * sizeof(struct step_note);
    size_t bytes = s.notes_bytes * (size_t)options->ranks;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return FAIL_NO_MEMORY(err);
    s.notes = memory;
    struct cpus all;
    bool known = !options->launched && cpus_of_thread(&all);
    if (known)
        limit_cpus(&all, options->ranks, options->shares);
    enum status status = options->launched ? run_launched(&s, err) : run_forked(&s, err);
    if (known)
        cpus_bind(pthread_self(), &all);
    if (status == STATUS_OK)
        status = fill_result(&s, out, err);
    munmap(memory, bytes);
    return status;
}

void scale_result_release(struct scale_result *result)
{
    for (int k = 0; result->by_rank && k < result->ranks; k++)
        free(result->by_rank[k].units);
    free(result->by_rank);
    free(result->step_times);
    free(result->losses);
    *result = (struct scale_result){0};
}
