/* SPDX-License-Identifier: Apache-2.0
 *
 * The compiled network against the float64 reference, on the same weights and inputs. */
#ifndef HARNESS_MODEL_VERIFY_H
#define HARNESS_MODEL_VERIFY_H

#include "engine/run/exe.h"

struct verification {
    double error; /* max |y - r| / max |r|, the worst output */
    /* The largest bound that a kernel in use states for itself, 1e-5 at least; what the roundings
     * of a lower precision allow (docs/method.md); 0 when the graph has no floats. */
    double bound;
    const char *how; /* "reference f64", or with which parts of a network that decides */
    char odd[320];   /* what is wrong regardless of any bound: "12 NaN where ..."; "": nothing */
    char note[240];  /* NaN here and in the reference, roundings on ties, a smaller batch; "" */
    int64_t both_nan;
};

/* The largest sum of what its nodes count for on any path through the network. */
typedef int node_weight(const struct graph *g, const struct node *node, enum precision precision);
int verify_depth(const struct graph *g, node_weight *weight, enum precision precision);

/* What the precision allows a network after the passes. Roundings are practically independent, so
 * their errors add up like the steps of a random walk: twice its deviation after the largest number
 * of roundings on a path through the network, in halves of the type's last place. */
double verify_bound(const struct graph *compiled, enum precision precision);

/* Runs the executable twice: nothing may depend on what memory held before. A network that rounds
 * to integers is compiled once more if it differs, and its roundings are followed (roundings.h). In
 * low precision a network that decides is verified by the values on which it decides; in f32, if it
 * differs as a whole, by that and by what follows from it (decisions.h). */
enum status verify_exe(const struct graph *graph, struct exe *exe, struct verification *out,
                       struct error *err);

#endif
