/* SPDX-License-Identifier: Apache-2.0
 *
 * How much memory of the host a graph will take, said before it is compiled. What depends on the
 * kernels that will win is what the hungriest of them takes, so that what is said to fit does fit.
 */
#ifndef ENGINE_COMPILE_NEED_H
#define ENGINE_COMPILE_NEED_H

#include "base/error.h"
#include "engine/run/exe.h"

/* In bytes. */
struct memory_need {
    double weights;     /* as the graph has them */
    double states;      /* what outlives an execution: trained weights, moments */
    double prepared;    /* as kernels may keep them: Winograd's are four times as large */
    double activations; /* the most that stand at once, with the model's inputs and scratch, where
                           weights that change are packed */
    double compile;     /* peak while kernels are tried and weights are prepared */
    double run;         /* prepared, states and activations */
    double reference;   /* peak of reference_run and its outputs, beside what runs */
};

enum status graph_need(const struct graph *graph, const struct exe_options *options,
                       struct memory_need *need, struct error *err);

#endif
