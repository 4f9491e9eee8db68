/* SPDX-License-Identifier: Apache-2.0
 *
 * A network that decides (which boxes, which word) does so on a comparison, and what follows is
 * another computation if that falls out otherwise. In low precision near ties do, rightly. So there
 * a network is verified by what its decisions are made on. */
#ifndef HARNESS_DECISIONS_H
#define HARNESS_DECISIONS_H

#include "engine/graph.h"

/* A copy of the graph whose outputs are those that depend on no decision, and what the first
 * decisions on each way read. *out NULL: there are no decisions, the graph itself will do. A
 * decision is an operator that makes integers, or a set, of floats that come from products. */
enum status graph_before_decisions(const struct graph *graph, struct graph **out,
                                   struct error *err);

#endif
