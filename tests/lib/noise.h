/* SPDX-License-Identifier: Apache-2.0
 *
 * For graphs of tests: tensors of f32 with numbers between -1 and 1. */
#ifndef TESTS_LIB_NOISE_H
#define TESTS_LIB_NOISE_H

#include "engine/graph/graph.h"

static inline struct fill noise(void)
{
    return (struct fill){.kind = FILL_UNIFORM, .a = -1, .b = 1};
}

static inline int noise_input(struct graph *g, const char *name, struct shape shape)
{
    return graph_input(g, name, DTYPE_F32, shape, noise());
}

static inline int noise_param(struct graph *g, const char *name, struct shape shape)
{
    return graph_param(g, name, DTYPE_F32, shape, noise());
}

#endif
