/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of an executable, for engine/compile/, which makes it, and engine/run/, which runs it.
 */
#ifndef ENGINE_RUN_EXE_INTERNAL_H
#define ENGINE_RUN_EXE_INTERNAL_H

#include "engine/run/exe.h"

/* The part of a place that only executables on a device have. Roots. */
struct device_place {
    void *memory;
    bool owned;           /* memory was allocated for this value alone */
    bool pinned;          /* the host's memory was allocated for this value by the device */
    bool written_by_host; /* by a step on the host */
    bool read_by_host, read_by_device;
    bool fetched; /* results of the device: the host has it too, once a step there has needed it */
    bool stale;   /* inputs, states: the next run uploads what the host has */
};

/* Where a value of the graph lives. */
struct place {
    struct desc desc;
    int root;        /* the value in whose memory this lies: itself, what it is an alias of, the
                        first of those that lie one after another, or a concatenation of it */
    size_t shift;    /* bytes from the root's beginning */
    bool used;       /* some step or output touches it */
    size_t bytes;    /* roots */
    int first, last; /* roots: steps between which the memory must stand */
    int64_t offset;  /* roots in the arena; -1: elsewhere */
    void *memory;    /* of the host */
    bool owned;      /* memory was allocated for this value alone */
    int pending;     /* fixed: steps that have still to be prepared with it */
    bool kept;       /* fixed: some launch reads it, not only a packed form */
    struct device_place on_device;
};

/* A step between ranks. */
struct exchange {
    int step;
    int from;      /* the value that is given; an AllReduce gives what lies at root */
    int root;      /* the value whose memory holds all of its outputs */
    int first;     /* step that reads its result first; step_count: none does */
    int64_t count; /* elements of what is given or of what comes, whichever has more */
    enum dtype dtype;
    struct comm_plan *plan; /* owned by the communicator */
    bool started;
    uint64_t ready_ns, waited_ns;
    void *ready, *ended; /* owned: events of the device, where it is in a queue there */
};

struct step {
    int node;
    const struct kernel *kernel;
    int variant;
    struct kernel_state *state;
    bool packs; /* before each launch */
    size_t state_bytes;
    struct kernel_query query;
    const void **in; /* resolved: what args points to */
    void **out;
    struct kernel_args args;
    size_t workspace_bytes;
    int64_t workspace_offset;
    struct cost cost;
    double bytes_in, bytes_out;
    struct candidate *candidates;
    int candidate_count;
    char *signature;
    /* On a device, of a step that runs on the host: values to copy to the host before it and to the
     * device after it. */
    bool on_host;
    int *fetch, *give;
    int fetch_count, give_count;
};

static inline void *value_memory(const struct place *places, int v)
{
    const struct place *place = &places[v];
    char *memory = places[place->root].memory;
    return memory ? memory + place->shift : NULL;
}

static inline void step_launch(const struct step *step)
{
    if (step->packs)
        step->kernel->pack(step->state, &step->args);
    step->kernel->launch(step->state, &step->args);
}

static inline void *value_on_device(const struct place *places, int v)
{
    const struct place *place = &places[v];
    char *memory = places[place->root].on_device.memory;
    return memory ? memory + place->shift : NULL;
}

/* What an executable has on its device. */
struct exe_device {
    struct device device;
    void *stream;
    char *memory;                /* the planned arena; offsets are those of the host's */
    struct device_graph *graph;  /* the captured run; NULL: every step is launched */
    struct device_graph *joined; /* several runs; NULL: there is none */
    int64_t joined_runs;
    char why_not[256]; /* why nothing was captured */
    int host_steps;
    bool capturing;      /* launches are recorded */
    bool branches;       /* they are captured side by side */
    struct lanes *lanes; /* which; NULL: it is not known */
    bool stale;          /* some input or state is */
    void *began;         /* owned, with exchanges: the event of a run's beginning */
    uint64_t began_ns;   /* the clock then */
    struct error failed; /* the first thing that went wrong in a run */
};

struct exe {
    struct arena arena;
    struct exe_options options;
    struct graph *g;
    struct pool *pool;
    bool owns_pool;
    struct place *places; /* per value of g */
    struct step *steps;
    int step_count;
    char *memory; /* the planned arena; of the host */
    struct exchange *exchanges;
    int exchange_count;
    struct exe_memory sizes;
    struct pass_log passes;
    void (*run)(struct exe *exe); /* what exe_start does */
    int *moved; /* states whose next contents are computed elsewhere: copied after all steps */
    int moved_count;
    struct error failed;          /* of the host: the first run that ran out of memory */
    struct exe_device *on_device; /* NULL: on the CPU */
};

enum status exe_link(struct exe *exe, struct error *err); /* memory and pointers */
/* ---- ranks: exe_ranks.c ---- */

enum status exchanges_open(struct exe *exe, struct error *err); /* after linking */
void exchanges_close(struct exe *exe);
/* Waits for what step s reads, runs it, and starts it where it is between ranks. */
void exe_run_rank_step(struct exe *exe, int s);
/* At the end of a run: nothing is under way. */
void exchanges_wait(struct exe *exe);
/* On a device: puts what the step gives to the other ranks into the queue after it. */
void exchange_enqueue(struct exe *exe, const struct step *step);
/* Returns when the device's queue is empty, or does not go on because a rank has failed. */
void exchanges_attend(struct exe *exe);

/* ---- executables on a device: exe_device.c, device_plan.c ---- */

static inline bool exe_is_on_device(const struct exe *exe)
{
    return exe->on_device != NULL;
}

/* Values in one piece of memory begin at multiples of so many bytes. */
static inline size_t exe_alignment(const struct exe *exe)
{
    return exe_is_on_device(exe) ? ALIGN_DEVICE : ALIGN_TENSOR;
}
/* Whether the kernel runs on the executable's device (all do on the CPU). */
bool exe_runs_on_device(const struct exe *exe, const struct kernel *kernel);
enum status exe_device_open(struct exe *exe, struct error *err);
enum status exe_device_link(struct exe *exe, struct error *err); /* instead of exe_link */
/* Where a run says what went wrong; NULL once something has: the first cause counts. */
static inline struct error *exe_device_sink(struct exe_device *t)
{
    return t->failed.code == STATUS_OK ? &t->failed : NULL;
}
enum status device_plan(struct exe *exe, struct error *err); /* memory and addresses there */
void exe_device_time_steps(struct exe *exe, int repeats, double *samples);
double exe_device_time_runs(struct exe *exe, int64_t runs);
void exe_device_run_watched(struct exe *exe, const struct exe_watch *watch);
void exe_device_idle(struct exe *exe); /* nothing runs there, and the device is the thread's */
void exe_device_close(struct exe *exe);
/* Captures the run anew, with its branches side by side or not; lanes_open was called before. */
enum status exe_use_branches(struct exe *exe, bool branches, struct error *err);

/* ---- between the host's memory and a device's: device_values.c ---- */

void values_copy(const struct exe *exe, int root, enum device_copy direction);
/* At the beginning of a run: what the host has changed. */
void values_upload(struct exe *exe);
/* At its end: what the next run finds, where it was not computed in its place. */
void values_move_states(struct exe *exe);
/* The host has changed the input or state. */
void values_changed(struct exe *exe, int v);
static inline bool value_is_state(const struct exe *exe, int v)
{
    return exe->g->values[v].kind == VALUE_STATE;
}

/* ---- branches side by side: exe_lanes.c ---- */

enum { LANES_MOST = 4 };

/* Of a captured executable: finds its branches. */
enum status lanes_open(struct exe *exe, struct error *err);
int lanes_count(const struct exe *exe); /* 1: all steps follow each other */
void lanes_close(struct exe *exe);
/* All steps, each by `run`, in its lane's stream. */
void lanes_record(struct exe *exe, void (*run)(struct exe *exe, const struct step *step));

#endif
