/* SPDX-License-Identifier: Apache-2.0
 *
 * The engines that cuDNN offers for an operation graph, and plans made of them.
 *
 * cuDNN's heuristics name configurations (an engine and its knobs), best first. Those that would
 * round factors of a product are left out where that was not asked for, those that may give other
 * bits in every run always. A configuration becomes a plan, which can be executed; for engines that
 * are compiled at run time that takes up to seconds.
 */
#ifndef ENGINE_KERNELS_CUDNN_LIB_ENGINES_H
#define ENGINE_KERNELS_CUDNN_LIB_ENGINES_H

#include "engine/kernels/cudnn/lib/opgraph.h"

enum { ENGINES_BEST = 12, ENGINES_MAX = 16, ENGINES_COMPILED = 4, ENGINE_TEXT = 128 };

struct engine_rule {
    cudnn_desc device; /* properties of the device: CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR */
    bool exact;        /* no tensor cores, no converted factors */
    int enough;        /* ask for no more than so many, which are the same as the first of all */
};

struct engine_info {
    int64_t id;                   /* cuDNN's global index */
    unsigned numerics, behaviour; /* bit n: note n of the library */
    size_t workspace;
    uint64_t hash;          /* of the engine and all its knobs */
    char text[ENGINE_TEXT]; /* "engine 45 tile 17 stages 4": as many knobs as there is room for */
};

struct engines {
    cudnn_desc config[ENGINES_MAX]; /* owned */
    struct engine_info info[ENGINES_MAX];
    int count;    /* up to ENGINES_BEST of mode A, then of mode FALLBACK; of those that are compiled
                     at run time ENGINES_COMPILED */
    int offered;  /* by cuDNN, those that were left out included */
    bool partial; /* cuDNN failed to report one, or a list */
};

/* UNSUPPORTED when none is left. A configuration or a list that cuDNN fails to report is done
 * without, unless memory is short. */
enum status engines_find(const struct opgraph *g, const struct engine_rule *rule,
                         struct engines *engines, struct error *why);
void engines_free(struct engines *engines);

bool engine_is_compiled(const struct engine_info *info); /* at run time */

/* For the device of the handle; handle NULL: for the device of those properties. */
enum status plan_make(cudnn_desc config, cudnn_desc device, cudnnHandle_t handle, cudnn_desc *plan,
                      size_t *workspace, struct error *why);

#endif
