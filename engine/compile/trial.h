/* SPDX-License-Identifier: Apache-2.0
 *
 * One step on trial: every accepting kernel is run on it, compared with the reference, timed. */
#ifndef ENGINE_COMPILE_TRIAL_H
#define ENGINE_COMPILE_TRIAL_H

#include "engine/compile/stages.h"

struct trial {
    struct exe *exe;
    struct step *step;
    void **in, **out;               /* ours, except fixed inputs */
    struct ref_tensor *expected;    /* per output; count 0: not known */
    const struct kernel *truth;     /* who computed that */
    char *evict;                    /* streamed between runs when `cold` */
    bool cold;                      /* the network's weights exceed the caches */
    struct candidate *favourite;    /* tried alone; the others only if it is wrong. NULL: none */
    struct tune_cache *cache;       /* of a quick tuning: records of kernels. NULL: not kept */
    uint64_t operator_key;          /* of the step, with a cache */
    struct trial_device *on_device; /* trial_device.c: the tensors on the device */
    struct error lost; /* STATUS_LOST: the device was lost, how, and who was on trial */
    const struct candidate *loser;
    bool short_of_memory; /* somebody could not be tried for want of it */
};

/* trial_fill.c: the contents of input v, for which there is memory */
void trial_fill(const struct exe *exe, int v, void *memory);

enum { TRIAL_EVICT_BYTES = 48 << 20 };
/* An optimiser's step over more than this is not tried where one kernel alone accepts it: in the
 * reference's form, too, all weights and moments would take a multiple of what training takes. */
enum { TRIAL_ALONE_BYTES = 256 << 20 };

/* The same tensors on the executable's device, for its kernels: made at the first that tries. */
struct trial_device {
    void **in, **out;  /* per input and output; NULL: absent */
    bool **looked_at;  /* per output: which tiles of REF_TILE elements were fetched; NULL: all */
    void *begin, *end; /* events */
    double best_ns;    /* of the candidates that can be captured; 0: none yet */
};

/* A prepared candidate of the device. */
struct contestant {
    struct candidate *candidate;
    struct kernel_state *state;
    void *workspace;
    struct device_graph *graph; /* its launches; NULL: not captured */
    int launches;               /* that are timed at once */
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
    size_t held;     /* bytes of all states and workspaces */
    double awake_ns; /* of the region that measures lateness, after a kernel of ours; 0: not yet */
};

enum turns_stage { TURNS_FIRST, TURNS_LAST }; /* the last looks closer */

/* Takes over state and workspace; where there is no room, the turns are played first. */
void turns_enter(struct trial *t, struct turns *turns, const struct entrant *entrant);
/* Times all and keeps the fastest alone; NULL: there was none. */
struct candidate *turns_play(struct trial *t, struct turns *turns, enum turns_stage stage);
void turns_release(struct turns *turns);
/* One launch, in ns. err (may be NULL): see kernel_args. */
double trial_run_once(struct trial *t, const struct kernel *kernel, struct kernel_state *state,
                      void *workspace, struct error *err);

/* tune_record.c: whether the kernel lost all its chances on other steps of the same operator. */
bool record_is_hopeless(const struct trial *t, const struct kernel *kernel);
void record_outcome(const struct trial *t, const struct candidate *winner);

/* Who was on trial when the device was lost is refused in later processes. */
void record_loser(struct tune_cache *cache, const struct step *step, const struct candidate *loser);
void record_refuse_losers(struct tune_cache *cache, const struct step *step);

/* trial_device.c: the device's tensors */
enum status trial_device_open(struct trial *t, struct error *err);
void trial_device_close(struct trial *t);
/* Makes the state and the workspace; trial_device_release frees them, also after a failure. */
enum status trial_device_prepare(struct trial *t, struct contestant *c, struct error *err);
void trial_device_release(struct trial *t, struct contestant *c);
/* Launches once and brings the outputs to t->out; unless `whole`, of large ones a sample only. */
enum status trial_device_run(struct trial *t, const struct contestant *c, bool whole,
                             struct error *err);
enum status trial_device_launch(struct trial *t, const struct contestant *c, int times,
                                struct error *err);

/* trial_device_time.c */
/* Until the stream is idle, but not for ever: FAILED when that took longer than a candidate may,
 * LOST when it seems to have no end. */
enum status trial_device_wait(struct trial *t, struct error *err);
/* Median time of one launch among many, or the only one of a candidate that is much slower. */
enum status trial_device_time(struct trial *t, struct contestant *c, struct error *err);
/* Times two that are nearly alike again, in turns; their candidates get new times. */
enum status trial_device_compare(struct trial *t, struct candidate *first, struct candidate *second,
                                 struct error *err);

/* Tries the step's candidates: sets times, reasons, and `chosen` on the winner. FAILED when none
 * is right; LOST as soon as the device is, whoever is on trial. t has exe, step, evict, cold,
 * favourite and cache set; everything else is made and released here. */
enum status trial_run(struct trial *t, struct error *err);

#endif
