/* SPDX-License-Identifier: Apache-2.0
 *
 * A quantised network rounds floats to few bits on its way. Sums in f32 differ from those in
 * float64 in the seventh digit, so of what lies that close to a tie some is rounded the other way,
 * and all that follows differs by whole units. So the reference takes over what the executable made
 * of each rounding, once it is clear that rounding can have made that of the reference's own
 * numbers: what follows is then computed of the same integers by both. Choices of experts are
 * followed in the same way (choices.h). */
#ifndef HARNESS_MODEL_ROUNDINGS_H
#define HARNESS_MODEL_ROUNDINGS_H

#include "engine/graph/ref_tensor.h"
#include "engine/run/exe.h"

/* A copy of the graph whose outputs are its own and then all results of roundings that are not
 * constant (quantize_is_rounding), choices of experts and what they are made by. *out NULL: there
 * are none. */
enum status graph_with_roundings(const struct graph *graph, struct graph **out, struct error *err);

struct roundings {
    const struct graph *with; /* what graph_with_roundings made of the graph */
    struct exe *made;         /* of that; it has run */
    /* How far what is rounded may be off, relative to the largest number of its tensor. */
    double bound;
    int64_t count, ties, wrong; /* of all; that differ from the reference's, within that; beyond */
    const struct value *first;  /* the first with wrong ones, of the graph; NULL: none */
    char odd[256];              /* "3 of 40 roundings are wrong, first 17 instead of 19 at [2]" */
    int64_t choices, other_choices; /* of experts by a token; that the reference would not make */
    double chosen_by;               /* relative error of what they are made by, the largest */
};

/* Result v of the graph as `made` computed it; it must be among what `with` shows. Release it. */
enum status roundings_read(const struct roundings *r, const struct ref_tensor *own, int v,
                           struct ref_tensor *got, struct error *err);

/* Runs the reference of the graph, rounded as `made` did, and checks each rounding and choice. Sets
 * all from count on; outputs as of reference_run. */
enum status roundings_follow(struct roundings *r, const struct graph *graph,
                             struct ref_tensor *outputs, struct error *err);

#endif
