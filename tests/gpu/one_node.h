/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs that the passes leave with one node, which tests of single kernels look at: small, with
 * weights that differ from element to element. */
#ifndef TESTS_GPU_ONE_NODE_H
#define TESTS_GPU_ONE_NODE_H

#include "engine/graph/graph.h"

void one_conv(struct graph *g);
void one_stem(struct graph *g);
void one_depthwise(struct graph *g);
void one_conv_1d(struct graph *g);
void one_conv_transpose(struct graph *g);
void one_pool(struct graph *g);
void one_batch_norm(struct graph *g);
void one_layer_norm(struct graph *g);
void one_attention(struct graph *g);
void one_masked(struct graph *g);
void one_lstm(struct graph *g);
void one_gru(struct graph *g);
void one_softmax(struct graph *g);
void one_matmul(struct graph *g);
void one_gemm(struct graph *g);

#endif
