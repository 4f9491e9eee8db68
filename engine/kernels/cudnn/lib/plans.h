/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans, shared by all states of the same graph, configuration and device: a network repeats its
 * blocks, and cuDNN's engines that are compiled at run time take seconds for each plan. Those stay
 * when nobody uses them any more, for what the tuner tried is prepared again to be run; others go
 * with their last user. What differs from launch to launch (addresses, the handle) is no part of a
 * plan. */
#ifndef ENGINE_KERNELS_CUDNN_LIB_PLANS_H
#define ENGINE_KERNELS_CUDNN_LIB_PLANS_H

#include "engine/kernels/cudnn/lib/engines.h"

struct plan {
    cudnn_desc desc;
    size_t workspace;
    uint64_t graph, engine; /* struct opgraph's hash, struct engine_info's */
    int device;
    int users;
    bool compiled;
    struct plan *next;
};

struct plan_wish {
    const struct opgraph *graph;
    cudnn_desc config;
    uint64_t engine; /* the configuration's hash */
    bool compiled;   /* it is compiled at run time */
    cudnn_desc chip;
    cudnnHandle_t handle; /* NULL: the device of that chip is only described */
    int device;
};

/* One that is there, or a new one; from any thread. plan_give_back it. */
enum status plan_take(const struct plan_wish *wish, struct plan **plan, struct error *why);
void plan_give_back(struct plan *plan); /* NULL is fine */
void plans_release(void);               /* those that nobody uses; tests */

#endif
