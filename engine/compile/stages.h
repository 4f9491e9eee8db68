/* SPDX-License-Identifier: Apache-2.0
 *
 * The stages that make an executable, in order: passes (engine/compile/passes/) -> lower.c
 * (layouts, aliases, steps; images.c: which layouts; parts.c, units.c: values inside others) ->
 * tune.c (a kernel per step) -> memplan.c (a place per tensor) -> exe_link or exe_device_link
 * (weights packed, pointers resolved) -> branches.c (what a device does at once). Private to
 * engine/compile/.
 */
#ifndef ENGINE_COMPILE_STAGES_H
#define ENGINE_COMPILE_STAGES_H

#include "engine/compile/passes/rewrite.h"
#include "engine/run/exe_internal.h"

/* All passes in order. log (may be NULL): which of them changed how much work there is. judge: of
 * what becomes narrow; NULL: everything that can. */
enum status passes_run(struct graph *g, const struct exe_options *options,
                       const struct narrow_judge *judge, struct pass_log *log, struct error *err);

/* computable.c: on the CPU a node has floats of 16 bits where a kernel that the options allow,
 * other than the reference, accepts them; on a device wherever it can have them. */
struct narrow_judge narrow_judge_of(const struct exe_options *options);

enum status lower_graph(struct exe *exe, struct error *err); /* places and steps */
enum status place_parts(struct exe *exe, struct error *err); /* parts.c: inputs of Concat in it */
enum status place_units(struct exe *exe, struct error *err); /* units.c: values inside others */
/* What follows states goes to their place, or is noted as moved. */
enum status place_states(struct exe *exe, struct error *err);
enum status tune_steps(struct exe *exe, struct error *err);  /* kernel, variant, state per step */
enum status memory_plan(struct exe *exe, struct error *err); /* offsets */

/* compile.c: an executable as far as its steps, which have no kernels yet; and the rest of it.
 * Where it cannot be had *exe is NULL. */
enum status exe_begin(const struct graph *graph, const struct exe_options *options,
                      struct exe **exe, struct error *err);
enum status exe_end(struct exe **exe, struct error *err);

/* ---- ways.c ---- */

/* Two ways to run a whole network, of which the faster is taken. They are timed in turns, once; the
 * tuner's cache remembers which it was. */
struct ways {
    const char *names[2]; /* in the cache */
    enum status (*time)(void *context, int way, int64_t runs, double *ns, struct error *err);
    void *context;
    const char *cache; /* this and the key: from ways_known */
    uint64_t key;
};

/* Which was the faster for the network that was lowered to this executable; NONE: not known. */
int ways_known(struct ways *ways, struct exe *exe);
enum status ways_compare(const struct ways *ways, int *faster, struct error *err);

/* ---- images.c: where images lie ---- */

enum images images_usual(const struct exe *exe); /* after the passes */
/* Of one that was begun: whether the other way is to be tried, too. */
bool images_in_doubt(const struct exe *exe);
/* Completes it, or makes the same in the other way. *exe: as exe_end leaves it. */
enum status images_settle(const struct graph *graph, struct exe **exe, struct error *err);

/* ---- branches.c: steps side by side ---- */

bool branches_wanted(const struct exe *exe);
/* levels: of each step, how many steps there are before it at least; level_of_root: of the step
 * that writes a value's memory, NONE: none does. False: all steps follow each other. */
bool branches_levels(const struct exe *exe, int *levels, int *level_of_root);
bool branches_have_room(size_t by_levels, size_t by_steps);
enum status branches_settle(struct exe *exe, struct error *err);

/* ---- tuner cache (tune_cache.c): winners by the hash of their signature ---- */

struct tune_entry {
    uint64_t key;
    char kernel[48];
    int variant;
    double time_ns;
    uint64_t build; /* the last that used it; 0: not known */
    int losses;     /* in a row, of an entry that counts them (tune_record.c); else 0 */
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
enum likeness { LIKE_SAME, LIKE_SIMILAR, LIKE_OPERATOR };
/* Equal for steps that are so alike. */
uint64_t step_likeness(const struct exe *exe, const struct step *step, enum likeness likeness);

#endif
