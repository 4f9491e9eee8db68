/* SPDX-License-Identifier: Apache-2.0
 *
 * What a graph costs by counting, before anything runs: FLOPs and two kinds of bytes.
 *
 *   FLOPs       2 x multiply-accumulates + elementwise work by the convention of docs/method.md.
 *   streamed    every node reads its inputs and weights and writes its outputs once; nodes that
 *               only rename memory (Reshape ...) move nothing, look-ups read the rows they pick.
 *   compulsory  every tensor crosses the memory bus once: weights, graph inputs, and each
 *               activation that remains when bias, batch norm, activation, residual addition and
 *               scaling happen inside the kernel that made the value; concatenation, reshape and
 *               permutation move nothing. No implementation that keeps activations in DRAM moves
 *               less.
 */
#ifndef ENGINE_GRAPH_COST_H
#define ENGINE_GRAPH_COST_H

#include "engine/graph/graph.h"
#include "engine/graph/op.h"

struct node_cost {
    struct cost work;                 /* with the node's fused posts */
    double flops;                     /* 2 macs + elementwise */
    double bytes_read, bytes_written; /* streamed */
    double params;                    /* elements of the weights it reads, without buffers */
};

struct graph_cost {
    int64_t batch;    /* items per execution */
    struct cost work; /* sums over all nodes */
    double flops;
    double params;                           /* elements of trainable weights, each once */
    double buffers;                          /* elements of running means and variances */
    double bytes_streamed, bytes_compulsory; /* compulsory: NAN when out of memory */
};

double value_bytes(const struct value *value);
/* Bytes that the node reads once: of a table only the rows that it looks up. */
double node_bytes_read(const struct graph *g, int node);
/* Bytes that it writes once: of tables that it changes in place only rows. */
double node_bytes_written(const struct graph *g, int node);
void node_cost(const struct graph *g, int node, struct node_cost *cost);
/* Of all nodes that are not dead. */
double graph_flops(const struct graph *g);
void graph_cost(const struct graph *g, struct graph_cost *cost);

#endif
