/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs one kernel on a graph of one node by hand: every tensor and the workspace lie between guard
 * zones, so that a kernel that writes outside them is found, whatever the executable would hide. On
 * a device all of it is uploaded before each launch and comes back after it, guards and all.
 *
 * Life cycle: kernel_case_new (asks supports); kernel_case_run once per variant; kernel_case_free.
 */
#ifndef TESTS_LIB_KERNEL_CASE_H
#define TESTS_LIB_KERNEL_CASE_H

#include "base/system/pool.h"
#include "engine/graph/kernel.h"

enum { GUARD_BYTES = 256, GUARD_BYTE = 0xA5 };

/* How the tensors lie; what the lowering of an executable can bring about. */
enum layout_plan {
    PLAN_PLAIN,
    PLAN_NHWC, /* results and run-time inputs of rank >= 3 channels-last */
    PLAN_STEM, /* the same with input 0 plain: the first convolution of a network */
    PLAN_COUNT
};

struct kernel_setup {
    const struct graph *graph; /* one node; inputs and weights by their fills or data */
    const struct kernel *kernel;
    enum layout_plan plan;
    bool at_run_time; /* constants come with the launch, except those that decide shapes */
    bool tf32;        /* products of f32 may round their factors */
    bool apart;       /* results lie inside larger ones: their rows apart, not aligned, and what is
                         between them must stay */
    struct pool *pool;
    const struct device *device; /* the kernel's, opened; NULL: the CPU */
};

struct kernel_case;

const char *plan_name(enum layout_plan plan);
/* Whether the operator may meet the plan and it differs from PLAN_PLAIN for this node. */
bool plan_applies(const struct graph *graph, enum layout_plan plan);
/* Whether at_run_time changes anything for this node. */
bool has_constants(const struct graph *graph);

/* UNSUPPORTED: the kernel refuses, with its reason. */
enum status kernel_case_new(const struct kernel_setup *setup, struct kernel_case **out,
                            struct error *err);
int kernel_case_variants(const struct kernel_case *c);
/* Prepares, launches twice over differently filled outputs and workspaces, releases; where weights
 * are packed before each launch, a launch with other weights goes before; an optimiser is launched
 * once more in place, which must give the same bits. INVALID when a guard or an input was
 * overwritten or the runs differ. UNSUPPORTED when prepare refuses. */
enum status kernel_case_run(struct kernel_case *c, int variant, struct error *err);
/* Row-major contents of output k after a run; NULL when it is not wanted. */
const void *kernel_case_output(const struct kernel_case *c, int k);
void kernel_case_free(struct kernel_case *c);

#endif
