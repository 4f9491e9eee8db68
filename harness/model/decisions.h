/* SPDX-License-Identifier: Apache-2.0
 *
 * A network that decides (which boxes, which word) compares numbers, and everything after that
 * depends on the outcome. In low precision near ties may legitimately be decided differently, so
 * there a network is verified by the values on which it decides. In f32 a tie within the roundings
 * is rare; if one changes a result, two halves are verified: the values on which it decides, and
 * what follows from them. */
#ifndef HARNESS_MODEL_DECISIONS_H
#define HARNESS_MODEL_DECISIONS_H

#include "engine/run/exe.h"

/* A copy of the graph whose outputs are those that depend on no decision, and what the first
 * decisions on each path read. *out NULL: there are no decisions, the graph itself will do. A
 * decision is an operator that makes integers, or a set, of floats that come from products, except
 * roundings of a quantised network and choices of experts (roundings.h). */
enum status graph_before_decisions(const struct graph *graph, struct graph **out,
                                   struct error *err);
/* A copy of the graph with the outputs of `made`, which computes `before`, as constants: they
 * belong to `made` and must outlive the copy. */
enum status graph_after_decisions(const struct graph *graph, const struct graph *before,
                                  struct exe *made, struct graph **out, struct error *err);

#define DECISIONS_PART_HELP                                                                        \
    "before-decisions: what boxes, words or links are chosen by; after-decisions: what follows "   \
    "from it, as inputs"
/* Leaves only the part that --part names; NULL: all of it. */
enum status graph_take_part(struct graph *g, const char *part, struct error *err);

#endif
