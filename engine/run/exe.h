/* SPDX-License-Identifier: Apache-2.0
 *
 * The room engine/run/ runs what was compiled: executables, the devices that they run on, the list
 * of all kernels with those of plug-ins, and trials of a kernel in a child process.
 *
 * An executable is a graph compiled for one device: every node has a kernel, all intermediate
 * tensors have a place in one arena, and exe_run only launches.
 *
 * Life cycle: exe_new (engine/compile/compile.h; slow); write inputs through exe_input; exe_run any
 * number of times; read outputs through exe_output; exe_free.
 */
#ifndef ENGINE_RUN_EXE_H
#define ENGINE_RUN_EXE_H

#include "engine/graph/graph.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/graph/precision.h"
#include "engine/run/comm.h"
#include "engine/run/device.h"

struct exe;

/* How images lie between the operators that want them channels-last. */
enum images {
    IMAGES_FREE = 0, /* channels last; of exact f32 on a device what is faster (compile/images.c) */
    IMAGES_LAST,
    IMAGES_PLAIN,
};

/* An executable keeps names of its own. */
struct exe_options {
    int threads;              /* <= 0: all CPUs of the mask */
    enum isa isa;             /* highest instruction set allowed */
    const char *providers;    /* NULL: all; "native,onednn"; the reference is always there */
    const char *cache;        /* tuner cache file; NULL: none is read or written */
    bool retune;              /* time everything although the cache knows */
    bool quick_tune;          /* time one variant of each kernel only */
    bool no_tune;             /* take the first accepting kernel instead of timing */
    bool no_fuse;             /* compile the graph as it is */
    bool keep_values;         /* every value keeps its own memory (for verification and dumps) */
    double max_error;         /* refuse kernels with a larger own bound; 0: no limit */
    const char *only;         /* tests: only the kernel of this name, or the reference */
    int only_variant;         /* with only; -1: tune over all */
    struct pool *pool;        /* borrowed; NULL: the executable makes its own of `threads` */
    const char *device;       /* "cuda", "cuda:1"; NULL: "cpu" */
    enum precision precision; /* of a graph built in f32; of the CPU f32 or bf16 */
    enum images images;       /* of an executable that is made: never IMAGES_FREE */
    double trial_s;  /* longest that a candidate's launches may last on a device; 0: 20 s. Six times
                        as  long, and the device counts as lost */
    bool no_capture; /* devices: launch each step in each run instead of replaying a graph */
    struct comm
        *comm; /* borrowed; to the other ranks that the graph is for. NULL: there are none */
};

void exe_free(struct exe *exe);

/* Memory of graph input or output i (plain row-major), of the host. Inputs are filled by their fill
 * at first. On a device the next run uploads inputs after exe_input was called: call it before each
 * change; exe_output downloads: call it after each run. exe_input of a state does both, for this
 * state alone. */
void *exe_input(struct exe *exe, int i);
const void *exe_output(const struct exe *exe, int i);
void exe_run(struct exe *exe);
/* All states are again what the first run found. Between runs a state is read and written as the
 * input that it is. */
void exe_reset(struct exe *exe);

/* Called around each step, by the thread that runs the executable. */
struct exe_watch {
    void (*begin)(void *context, int step);
    void (*end)(void *context, int step); /* its work is done, on a device too */
    void *context;
};

/* The same work step by step, never as one recorded whole: for counting, not for timing. */
void exe_run_watched(struct exe *exe, const struct exe_watch *watch);

/* The same work once with a look at every step's indices before it runs: FAILED with the node, the
 * index and the range where one lies outside. For answers, not for timing: exe_run takes any index
 * without reading or writing outside a tensor's memory, but what it computes then means nothing. On
 * a device indices are not looked at. */
enum status exe_run_checked(struct exe *exe, struct error *err);

/* exe_run in two halves: a device has only queued the work when exe_start returns, so that several
 * runs may follow each other without a gap; exe_wait ends when all of them have. */
void exe_start(struct exe *exe);
/* The same as so many exe_start. Runs that exe_join_runs put together are launched together. */
void exe_start_runs(struct exe *exe, int64_t runs);
/* Where runs replay a captured graph and one takes run_s: captures so many as take a millisecond as
 * one graph, so that short ones do not wait for the host. Returns how many; 1 where it is not
 * worthwhile or cannot be had. Until the run is captured anew. */
int64_t exe_join_runs(struct exe *exe, double run_s);
int64_t exe_joined_runs(const struct exe *exe);
void exe_wait(struct exe *exe);
/* Whether all runs so far did what they should: on a device any of them may have failed, and what
 * came after it is void. On the CPU the reference alone may fail, for want of memory, and what is
 * exchanged with other ranks. */
enum status exe_status(const struct exe *exe, struct error *err);
/* Time of one run (ns) among `runs` that follow each other: on a device by its own clock, between
 * two events, on the CPU by the host's. Nothing but exe_status tells that one failed. */
double exe_time_runs(struct exe *exe, int64_t runs);

/* ---- what was decided ---- */

struct candidate {
    const struct kernel *kernel;
    int variant;
    double time_ns; /* median; 0: not timed */
    bool chosen;
    char text[128];   /* describe() */
    char reason[256]; /* why it was refused; empty: accepted */
    bool uncaptured;  /* of a device: its launches cannot be captured */
    char note[160];   /* what else the trial has to say of one that it accepted */
};

struct exe_step {
    const struct node *node;
    const struct kernel *kernel;
    int variant;
    const struct kernel_query *query;
    struct cost cost;
    double bytes_in, bytes_out; /* streamed by this step */
    bool on_host;               /* of an executable on a device: no kernel there takes it */
    const struct candidate *candidates;
    int candidate_count;
};

/* Of 2 macs those whose factors are both bytes, which have a peak of their own: of a step, of all.
 */
double exe_step_byte_flops(const struct exe_step *step);
double exe_byte_flops(const struct exe *exe);

struct exe_memory {
    size_t arena_bytes;    /* activations and scratch: planned peak */
    size_t unshared_bytes; /* what activations would take without sharing */
    size_t weight_bytes;   /* weights as kept: packed or plain */
    size_t unit_bytes;     /* units of gradients, in memory of the communicator */
};

/* A pass that changed how much work there is, by `flops`: one that folds normalisations into
 * weights takes some away. The FLOPs of all steps are those of the graph and of all changes
 * together. */
struct pass_change {
    const char *pass;
    double flops;
};

enum { PASS_CHANGES_MAX = 40 };

struct pass_log {
    struct pass_change changes[PASS_CHANGES_MAX];
    int count;
};

/* A node between ranks: it starts as soon as its step is reached, and a step that reads its result
 * waits for it. */
struct exe_exchange {
    int step;              /* of exe_step_at */
    size_t bytes;          /* that are exchanged, gaps between values included */
    uint64_t ready_ns;     /* clock_now_ns when its input was there, in the last run */
    uint64_t waited_ns;    /* how long the steps of the last run stood still for it */
    struct comm_record of; /* what the communicator says of it */
};

const struct graph *exe_graph(const struct exe *exe); /* after the passes */
const struct pass_log *exe_passes(const struct exe *exe);
int exe_step_count(const struct exe *exe);
struct exe_step exe_step_at(const struct exe *exe, int index);
int exe_exchange_count(const struct exe *exe);
struct exe_exchange exe_exchange_at(const struct exe *exe, int index);
struct exe_memory exe_memory(const struct exe *exe);
const struct exe_options *exe_options(const struct exe *exe);
/* What the executable computes in: f32 on the CPU, whatever was asked for. */
enum precision exe_precision(const struct exe *exe);
struct pool *exe_pool(struct exe *exe);
/* Never NULL; of the kind "cpu" without properties on the CPU. */
const struct device *exe_device(const struct exe *exe);
/* Why runs launch step by step instead of replaying a captured graph: NULL when they replay, and on
 * the CPU. */
const char *exe_not_captured(const struct exe *exe);
/* How many streams a captured run forks into at most; 1: its steps follow each other. */
int exe_streams(const struct exe *exe);
/* Where runs replay a captured graph: captures it anew, for what attaches to the device or leaves
 * it changes launches, and a graph keeps them as they were. What cannot be captured is launched. */
enum status exe_capture_again(struct exe *exe, struct error *err);
/* Runs each step `repeats` times and writes its median time (ns) to times[step]; NAN without memory
 * for that. */
void exe_time_steps(struct exe *exe, int repeats, double *times);

#endif
