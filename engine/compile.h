/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of an executable, for the stages that make it, in order:
 * passes (engine/passes/) -> lower.c (layouts, aliases, steps) -> tune.c (a kernel per step)
 * -> memplan.c (a place per tensor) -> exe.c (weights packed, pointers resolved, run).
 */
#ifndef ENGINE_COMPILE_H
#define ENGINE_COMPILE_H

#include "engine/exe.h"

/* Where a value of the graph lives. */
struct place {
    struct desc desc;
    int root;        /* the value whose memory this is: itself, or what it is an alias of */
    bool used;       /* some step or output touches it */
    size_t bytes;    /* roots */
    int first, last; /* roots: steps between which the memory must stand */
    int64_t offset;  /* roots in the arena; -1: elsewhere */
    void *memory;
    bool owned;  /* memory was allocated for this value alone */
    int pending; /* fixed: steps that have still to be prepared with it */
    bool kept;   /* fixed: some launch reads it, not only a packed form */
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
    char *memory; /* the planned arena */
    struct exe_memory sizes;
};

/* A pass rewrites the graph in place, leaving replaced nodes dead; see engine/passes/. */
typedef enum status graph_pass(struct graph *g, struct error *err);
/* All passes in order. */
enum status passes_run(struct graph *g, const struct exe_options *options, struct error *err);

enum status lower_graph(struct exe *exe, struct error *err); /* places and steps */
enum status tune_steps(struct exe *exe, struct error *err);  /* kernel, variant, state per step */
enum status memory_plan(struct exe *exe, struct error *err); /* offsets */
enum status exe_link(struct exe *exe, struct error *err);    /* memory and pointers */

/* 64-byte aligned, in huge pages when large; free with memory_free. */
void *memory_alloc(size_t bytes);
void memory_free(void *memory, size_t bytes);

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
};

struct tune_cache {
    struct tune_entry *entries;
    int count, capacity;
    bool dirty;
};

void tune_cache_load(struct tune_cache *cache, const char *path); /* a missing file is empty */
const struct tune_entry *tune_cache_find(const struct tune_cache *cache, uint64_t key);
void tune_cache_put(struct tune_cache *cache, const struct tune_entry *entry);
void tune_cache_save(struct tune_cache *cache, const char *path);
void tune_cache_release(struct tune_cache *cache);

/* Everything that decides which kernel is best for a step, as text (signature.c). */
char *step_signature(const struct exe *exe, const struct step *step, struct arena *arena);

#endif
