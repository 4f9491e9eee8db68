/* SPDX-License-Identifier: Apache-2.0
 *
 * The hooks of all kernels that are described by a build function (lib/work.h).
 *
 * Variant v is the v-th configuration of lib/engines.h. The kernel's plan finds it; prepare makes
 * cuDNN's plan of it, which for some engines takes seconds, and puts packed constants into the
 * device's memory; launch executes it on the given stream. The list of addresses that cuDNN wants
 * is made at the first launch, and again when they change. */
#ifndef ENGINE_KERNELS_CUDNN_LIB_STATE_H
#define ENGINE_KERNELS_CUDNN_LIB_STATE_H

#include "engine/kernels/cudnn/lib/plans.h"
#include "engine/kernels/cudnn/lib/work.h"

struct addresses;

struct kernel_state {
    work_build *build;
    const struct kernel_query *q;
    int variant;
    struct engine_info info;
    /* prepare: */
    struct plan *plan; /* shared */
    struct binding bindings[WORK_TENSORS];
    int binding_count;
    void *packed[WORK_TENSORS]; /* device memory */
    struct addresses *addresses;
};

enum status work_plan(work_build *build, const struct kernel_query *q, int variant,
                      struct kernel_state *state, struct error *why);
int work_variants(const struct kernel_state *state);
void work_describe(const struct kernel_state *state, char *text, size_t size);
size_t work_workspace(const struct kernel_state *state);
enum status work_prepare(const struct kernel_query *q, struct kernel_state *state,
                         size_t *packed_bytes, struct error *err);
void work_launch(const struct kernel_state *state, const struct kernel_args *args);
void work_release(struct kernel_state *state);

/* Registers kernel `cudnn_<symbol>`. */
#define CUDNN_REGISTER(symbol, ...)                                                                \
    REGISTER(kernel, cudnn_##symbol) = {                                                           \
        .name = "cudnn_" #symbol, .provider = "cudnn", .device = "cuda", __VA_ARGS__}

/* Defines it from its build function. */
#define CUDNN_KERNEL(symbol, build, ...)                                                           \
    static enum status symbol##_plan(const struct kernel_query *q, int variant,                    \
                                     struct kernel_state *state, struct error *why)                \
    {                                                                                              \
        return work_plan(build, q, variant, state, why);                                           \
    }                                                                                              \
    CUDNN_REGISTER(symbol, .state_size = sizeof(struct kernel_state), .plan = symbol##_plan,       \
                   .variants = work_variants, .describe = work_describe,                           \
                   .workspace = work_workspace, .prepare = work_prepare, .launch = work_launch,    \
                   .release = work_release, .ranked_variants = true, __VA_ARGS__)

/* The same from functions of its own around those of a build function, whose state stands first in
 * its state, of type `own`; variants are those of the build function. */
#define CUDNN_KERNEL_AROUND(symbol, own, ...)                                                      \
    CUDNN_REGISTER(symbol, .state_size = sizeof(own), .plan = plan, .variants = work_variants,     \
                   .describe = work_describe, .workspace = workspace, .prepare = prepare,          \
                   .launch = launch, .release = release, .ranked_variants = true, __VA_ARGS__)

/* ---- for lib/work.c ---- */

/* Bindings and constants of the work; they are read now. */
enum status state_bind(struct kernel_state *state, const struct work *work, size_t *packed_bytes,
                       struct error *err);

#endif
