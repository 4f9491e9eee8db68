/* SPDX-License-Identifier: Apache-2.0
 *
 * Right candidates are timed in turns, so that a change of the machine's speed meets all alike. One
 * round imitates a network's steady state for all of them: if the weights of the network exceed the
 * caches, a larger buffer is streamed first, which leaves every candidate's own weights in memory;
 * then the activations are touched. One that is much slower leaves. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/pool.h"
#include "engine/compile/trial.h"

enum { EVICT_TILE = 1 << 20, WARM_BYTES = 4 << 20, LINE = 64 };
enum { MIN_ROUNDS = 3, MAX_ROUNDS = 24, WARM_RUNS = 3 };
enum { FAR_BEHIND = 3 }; /* times the best: one sample is enough, whatever disturbed it */
static const double budget_ns = 80e6, quick_budget_ns = 20e6;
/* A launch this long shows in two rounds what it is worth, and in the first run what it is not. */
static const double long_ns = 2e6;
/* What a kernel with threads of its own costs its neighbours: our workers sleep while it runs, and
 * wake up on CPUs where its threads still spin. A region of so many tiles is timed after it. */
enum { LATE_TILES = 8, LATE_TICKS = 8000 };
static const double late_max_ns = 1e6; /* more was another program */

double trial_run_once(struct trial *t, const struct kernel *kernel, struct kernel_state *state,
                      void *workspace, struct error *err)
{
    struct kernel_args args = {.in = (const void *const *)t->in,
                               .out = t->out,
                               .workspace = workspace,
                               .pool = t->exe->pool,
                               .err = err};
    if (kernel->own_threads)
        pool_park(t->exe->pool);
    uint64_t start = clock_now_ns();
    kernel_launch(kernel, &t->step->query, state, &args);
    return (double)(clock_now_ns() - start);
}

/* ---- the steady state ---- */

static void evict_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    char *block = (char *)context + tile * EVICT_TILE;
    for (size_t k = 0; k < EVICT_TILE; k += LINE)
        block[k]++;
}

static void touch(const void *memory, size_t bytes)
{
    volatile char sink = 0;
    for (size_t k = 0; memory && bytes <= WARM_BYTES && k < bytes; k += LINE)
        sink = (char)(sink + ((const char *)memory)[k]);
}

/* Activations are in a cache again; so are the workers awake, which a kernel may have sent to bed.
 */
static void set_scene(struct trial *t)
{
    const struct node *node = t->step->query.node;
    if (t->cold && t->evict)
        pool_run(t->exe->pool, TRIAL_EVICT_BYTES / EVICT_TILE, evict_tile, t->evict);
    for (int k = 0; k < node->output_count; k++)
        if (t->out[k])
            touch(t->out[k], t->exe->places[node->outputs[k]].bytes);
    for (int k = 0; k < node->input_count; k++)
        if (t->in[k] && !t->step->query.fixed[k])
            touch(t->in[k], t->exe->places[node->inputs[k]].bytes);
}

/* ---- rounds ---- */

/* Some microseconds of arithmetic. */
static void late_tile(void *context, int64_t tile, int thread)
{
    float x = (float)tile;
    (void)context;
    (void)thread;
    for (int k = 0; k < LATE_TICKS; k++)
        x = x * 0.5f + 1.0f;
    volatile float sink = x;
    (void)sink;
}

static double region_ns(struct pool *pool)
{
    uint64_t start = clock_now_ns();
    pool_run(pool, LATE_TILES, late_tile, NULL);
    return (double)(clock_now_ns() - start);
}

/* Behind the kernel's launch, if it has threads of its own. */
static void add_lateness(struct trial *t, struct turns *turns, struct entrant *e)
{
    if (!e->candidate->kernel->own_threads || pool_threads(t->exe->pool) == 1)
        return;
    double late = region_ns(t->exe->pool) - turns->awake_ns;
    e->late_ns += fmin(fmax(late, 0), late_max_ns);
    e->late_count++;
}

static void run_entrant(struct trial *t, struct turns *turns, struct entrant *e)
{
    const struct kernel *kernel = e->candidate->kernel;
    for (int k = 0; k < (t->cold ? 1 : WARM_RUNS); k++) {
        double ns = trial_run_once(t, kernel, e->state, e->workspace, NULL);
        e->run_ns = e->run_ns > 0 ? fmin(e->run_ns, ns) : ns;
        add_lateness(t, turns, e);
    }
    e->candidate->time_ns = e->run_ns + (e->late_count ? e->late_ns / e->late_count : 0);
}

static bool plays_on(const struct entrant *e, bool own_threads)
{
    return !e->out && e->candidate->kernel->own_threads == own_threads;
}

/* Kernels with threads of their own come last: theirs spin for a while on our workers' CPUs. */
static void play_round(struct trial *t, struct turns *turns)
{
    bool others = false;
    set_scene(t);
    for (int k = 0; k < turns->count; k++)
        if (plays_on(&turns->list[k], false))
            run_entrant(t, turns, &turns->list[k]);
    for (int k = 0; k < turns->count; k++)
        others = others || plays_on(&turns->list[k], true);
    if (others && pool_threads(t->exe->pool) > 1) {
        double ns = region_ns(t->exe->pool);
        turns->awake_ns = turns->awake_ns > 0 ? fmin(turns->awake_ns, ns) : ns;
    }
    for (int k = 0; others && k < turns->count; k++)
        if (plays_on(&turns->list[k], true))
            run_entrant(t, turns, &turns->list[k]);
}

/* Packed weights are in the state, those that change in the workspace. */
static size_t bytes_of(const struct entrant *entrant)
{
    return entrant->bytes + entrant->workspace_bytes;
}

static int best_of(const struct turns *turns)
{
    int best = 0;
    for (int k = 1; k < turns->count; k++)
        if (turns->list[k].candidate->time_ns < turns->list[best].candidate->time_ns)
            best = k;
    return best;
}

static double best_ns(const struct turns *turns)
{
    return turns->list[best_of(turns)].candidate->time_ns;
}

/* One sample may be another program's fault, three hardly. Returns how many are left. */
static int drop_slow(struct turns *turns, int rounds)
{
    double limit = rounds >= MIN_ROUNDS ? 1.25 : rounds > 1 ? 1.6 : FAR_BEHIND;
    double best = best_ns(turns);
    int left = 0;
    for (int k = 0; k < turns->count; k++) {
        struct entrant *e = &turns->list[k];
        e->out = e->out || e->candidate->time_ns > limit * best;
        left += !e->out;
    }
    return left;
}

static void entrant_release(struct entrant *e)
{
    kernel_release(e->candidate->kernel, e->state);
    memory_free(e->workspace);
}

struct candidate *turns_play(struct trial *t, struct turns *turns, enum turns_stage stage)
{
    if (turns->count == 0)
        return NULL;
    double begin = (double)clock_now_ns();
    bool quick = t->exe->options.quick_tune;
    double budget = quick ? quick_budget_ns : budget_ns;
    int maximum = stage == TURNS_LAST ? MAX_ROUNDS : MIN_ROUNDS;
    bool settled = turns->count == 1 && turns->list[0].played;
    for (int rounds = 1; !settled && rounds <= maximum; rounds++) {
        play_round(t, turns);
        bool alone = drop_slow(turns, rounds) == 1;
        int least = quick || best_ns(turns) > long_ns ? MIN_ROUNDS - 1 : MIN_ROUNDS;
        settled = rounds >= least && (alone || (double)clock_now_ns() - begin > budget);
    }
    int best = best_of(turns);
    struct entrant winner = turns->list[best];
    turns->list[best] = turns->list[--turns->count];
    turns_release(turns);
    turns->list[turns->count++] = winner;
    turns->held = bytes_of(&winner);
    turns->list[0].out = false;
    turns->list[0].played = true;
    return winner.candidate;
}

void turns_release(struct turns *turns)
{
    for (int k = 0; k < turns->count; k++)
        entrant_release(&turns->list[k]);
    turns->count = 0;
    turns->held = 0;
}

void turns_enter(struct trial *t, struct turns *turns, const struct entrant *entrant)
{
    if (turns->count == TURNS_MAX || turns->held + bytes_of(entrant) > TURNS_BYTES)
        turns_play(t, turns, TURNS_FIRST);
    turns->held += bytes_of(entrant);
    struct entrant *e = &turns->list[turns->count++];
    *e = *entrant;
    for (int k = 0; k < turns->count; k++)
        e->out =
            e->out || (e->first_ns > long_ns && e->first_ns > FAR_BEHIND * turns->list[k].first_ns);
    e->candidate->time_ns = e->out ? e->first_ns : INFINITY;
}
