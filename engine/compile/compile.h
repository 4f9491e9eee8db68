/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of an executable, for the stages that make it, in order:
 * passes (engine/compile/passes/) -> lower.c (layouts, aliases, steps) -> tune.c (a kernel per
 * step)
 * -> memplan.c (a place per tensor) -> exe.c (weights packed, pointers resolved, run).
 */
#ifndef ENGINE_COMPILE_COMPILE_H
#define ENGINE_COMPILE_COMPILE_H

#include "engine/run/exe.h"

/* The part of a place that only executables on a device have. Roots. */
struct device_place {
    void *memory;
    bool owned;        /* memory was allocated for this value alone */
    bool pinned;       /* the host's memory was allocated for this value by the device */
    bool written_here; /* by a step on the host */
    bool read_here, read_there;
    bool fetched; /* results of the device: the host has it too, once a step there has needed it */
};

/* Where a value of the graph lives. */
struct place {
    struct desc desc;
    int root;        /* the value whose memory this is: itself, or what it is an alias of */
    bool used;       /* some step or output touches it */
    size_t bytes;    /* roots */
    int first, last; /* roots: steps between which the memory must stand */
    int64_t offset;  /* roots in the arena; -1: elsewhere */
    void *memory;    /* of the host */
    bool owned;      /* memory was allocated for this value alone */
    int pending;     /* fixed: steps that have still to be prepared with it */
    bool kept;       /* fixed: some launch reads it, not only a packed form */
    struct device_place there;
};

struct step {
    int node;
    const struct kernel *kernel;
    int variant;
    struct kernel_state *state;
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

/* What an executable has on its device. */
struct exe_device {
    struct device device;
    void *stream;
    char *memory;               /* the planned arena; offsets are those of the host's */
    struct device_graph *graph; /* the captured run; NULL: every step is launched */
    char why_not[256];          /* why nothing was captured */
    int host_steps;
    bool capturing;      /* launches are recorded */
    bool stale;          /* exe_input was called: the device has old inputs */
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
    struct exe_memory sizes;
    struct pass_log passes;
    void (*run)(struct exe *exe); /* what exe_start does */
    struct exe_device *there;     /* NULL: on the CPU */
};

/* A pass rewrites the graph in place, leaving replaced nodes dead; see engine/compile/passes/. */
typedef enum status graph_pass(struct graph *g, struct error *err);
/* All passes in order. log (may be NULL): which of them changed how much work there is. */
enum status passes_run(struct graph *g, const struct exe_options *options, struct pass_log *log,
                       struct error *err);

enum status lower_graph(struct exe *exe, struct error *err); /* places and steps */
enum status tune_steps(struct exe *exe, struct error *err);  /* kernel, variant, state per step */
enum status memory_plan(struct exe *exe, struct error *err); /* offsets */
enum status exe_link(struct exe *exe, struct error *err);    /* memory and pointers */

/* ---- executables on a device: exe_device.c, device_plan.c ---- */

static inline bool exe_is_on_device(const struct exe *exe)
{
    return exe->there != NULL;
}
/* Whether the kernel runs on the executable's device (all do on the CPU). */
bool exe_runs_there(const struct exe *exe, const struct kernel *kernel);
enum status exe_device_open(struct exe *exe, struct error *err);
enum status exe_device_link(struct exe *exe, struct error *err); /* instead of exe_link */
enum status device_plan(struct exe *exe, struct error *err);     /* memory and addresses there */
void exe_device_time_steps(struct exe *exe, int repeats, double *samples);
double exe_device_time_runs(struct exe *exe, int64_t runs);
void exe_device_run_watched(struct exe *exe, const struct exe_watch *watch);
void exe_device_idle(struct exe *exe); /* nothing runs there, and the device is the thread's */
void exe_device_close(struct exe *exe);

/* 64-byte aligned, in huge pages when large; free with memory_free. */
void *memory_alloc(size_t bytes);
void memory_free(void *memory, size_t bytes);
/* Asks for huge pages in memory that nothing has touched yet. */
void memory_advise(void *memory, size_t bytes);

/* Makes the contents of the step's fixed inputs known to its query; fixed_end takes back what no
 * launch will read. */
enum status fixed_begin(struct exe *exe, struct step *step, struct error *err);
void fixed_end(struct exe *exe, struct step *step);

/* ---- tuner cache (tune_cache.c): winners by the hash of their signature ---- */

struct tune_entry {
    uint64_t key;
    char kernel[48];
    int variant;
    double time_ns;
    uint64_t build; /* the last that used it; 0: not known */
};

/* Some program with its plug-ins, by providers_identity(). */
struct tune_build {
    uint64_t id;
    int64_t used_s; /* when it wrote last, seconds since 1970 */
};

/* Of how many builds the file keeps winners; what none of the latest used is dropped. */
enum { TUNE_BUILDS_MAX = 16 };

struct tune_cache {
    struct tune_entry *entries;
    int count, capacity;
    int *slots; /* entry + 1 by its key */
    int slot_count;
    struct tune_build builds[TUNE_BUILDS_MAX];
    int build_count;
    uint64_t build; /* this one; 0: none */
    bool dirty;
};

void tune_cache_load(struct tune_cache *cache, const char *path); /* a missing file is empty */
/* Notes that this build uses the entry. */
const struct tune_entry *tune_cache_find(struct tune_cache *cache, uint64_t key);
void tune_cache_put(struct tune_cache *cache, const struct tune_entry *entry);
void tune_cache_save(struct tune_cache *cache, const char *path);
void tune_cache_release(struct tune_cache *cache);

/* Everything that decides which kernel is best for a step, as text (signature.c). */
char *step_signature(const struct exe *exe, const struct step *step, struct arena *arena);

/* How much two steps have in common: everything; all but sizes of one magnitude; operator, window
 * and circumstances. */
enum likeness { LIKE_TWIN, LIKE_KIN, LIKE_FAMILY };
/* Equal for steps that are so alike. */
uint64_t step_likeness(const struct exe *exe, const struct step *step, enum likeness likeness);

#endif
