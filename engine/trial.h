/* SPDX-License-Identifier: Apache-2.0
 *
 * One step on trial: every accepting kernel is run on it, compared with the reference, timed. */
#ifndef ENGINE_TRIAL_H
#define ENGINE_TRIAL_H

#include "engine/compile.h"

struct trial {
    struct exe *exe;
    struct step *step;
    void **in, **out;            /* ours, except fixed inputs */
    struct ref_tensor *expected; /* per output; count 0: not known */
    char *evict;                 /* streamed between runs when `cold` */
    bool cold;                   /* the network's weights exceed the caches */
    struct candidate *favourite; /* tried alone; the others only if it is wrong. NULL: none */
    struct tune_cache *cache;    /* of a quick tuning: records of kernels. NULL: not kept */
    uint64_t family;             /* of the step, with a cache */
    struct trial_there *there;   /* trial_device.c: the tensors on the device */
    struct error lost;           /* STATUS_LOST: the device was lost, how, and who was on trial */
    const struct candidate *loser;
};

enum { TRIAL_EVICT_BYTES = 48 << 20 };

/* The same tensors on the executable's device, for its kernels: made at the first that tries. */
struct trial_there {
    void **in, **out; /* per input and output; NULL: absent */
    void *workspace;
    void *begin, *end; /* events */
    struct device_graph *graph;
};

/* trial_turns.c: right candidates of the host, timed in turns */
enum { TURNS_MAX = 16, TURNS_BYTES = 256 << 20 };

struct entrant {
    struct candidate *candidate;
    struct kernel_state *state;
    size_t bytes; /* of state */
    void *workspace;
    size_t workspace_bytes;
    double first_ns; /* of the run that was checked: its weights were in a cache */
    double run_ns;   /* the shortest */
    double late_ns;  /* own threads: what our workers' next regions were late by, in all */
    int late_count;  /* of those */
    bool out;        /* too slow to be run again */
    bool played;     /* timed in earlier turns */
};

struct turns {
    struct entrant list[TURNS_MAX];
    int count;
    size_t held;     /* bytes of all states */
    double awake_ns; /* of the region that measures lateness, behind a kernel of ours; 0: not yet */
};

enum turns_stage { TURNS_FIRST, TURNS_LAST }; /* the last looks closer */

/* Takes over state and workspace; where there is no room, the turns are played first. */
void turns_enter(struct trial *t, struct turns *turns, const struct entrant *entrant);
/* Times all and keeps the fastest alone; NULL: there was none. */
struct candidate *turns_play(struct trial *t, struct turns *turns, enum turns_stage stage);
void turns_release(struct turns *turns);
/* One launch, in ns. */
double trial_run_once(struct trial *t, const struct kernel *kernel, struct kernel_state *state,
                      void *workspace);

/* tune_record.c: whether the kernel lost all its chances on other steps of the family. */
bool record_is_hopeless(const struct trial *t, const struct kernel *kernel);
void record_outcome(const struct trial *t, const struct candidate *winner);

/* Who was on trial when the device was lost is refused in later processes. */
void record_loser(struct tune_cache *cache, const struct step *step, const struct candidate *loser);
void record_refuse_losers(const struct tune_cache *cache, const struct step *step);

/* trial_device.c */
enum status trial_there_open(struct trial *t, struct error *err);
void trial_there_close(struct trial *t);
enum status trial_there_workspace(struct trial *t, const struct candidate *c, struct error *err);
/* Launches once and brings the outputs to t->out. */
enum status trial_there_run(struct trial *t, const struct kernel *kernel,
                            struct kernel_state *state, struct error *err);
/* Median time of one launch among many. */
enum status trial_there_time(struct trial *t, const struct kernel *kernel,
                             struct kernel_state *state, double *ns, struct error *err);

/* Tries the step's candidates: sets times, reasons, and `chosen` on the winner. FAILED when none
 * is right; LOST as soon as the device is, whoever is on trial. t has exe, step, evict, cold,
 * favourite and cache set; everything else is made and released here. */
enum status trial_run(struct trial *t, struct error *err);

#endif
