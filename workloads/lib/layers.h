/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers in the words of papers. Each adds ONNX nodes and seeded weights to the graph and returns
 * the value of its result; names become the names of nodes and weights ("conv1.weight"). Weights
 * are drawn so that activations keep their size through the net (He et al. 2015 before ReLU, Glorot
 * otherwise). Two layers of one name and shape share their weights. Designated arguments: conv2d(g,
 * x, .name = "conv1", .out = 64, .kernel = 7). */
#ifndef WORKLOADS_LIB_LAYERS_H
#define WORKLOADS_LIB_LAYERS_H

#include "engine/graph/graph.h"

/* What a parameter "thin" may be: all channels of a network are divided by it, so that it learns
 * within seconds. */
extern const char *const thin_choices[];

/* The input "image" [N, 3, height, width], centred on 0. */
int image_input(struct graph *g, int64_t batch, int64_t height, int64_t width);

struct conv2d {
    const char *name;
    int64_t out;    /* channels */
    int64_t kernel; /* square */
    int64_t stride; /* 0: 1 */
    int64_t pad;    /* all sides */
    bool bias;
    bool same;        /* TensorFlow's SAME instead of pad: the odd pixel goes bottom and right */
    int64_t dilation; /* 0: 1 */
    double gain;      /* of the weights over He's; 0: 1. Small where a result is no activation but,
                         say, an offset of a box */
};
int layer_conv2d(struct graph *g, int x, const struct conv2d *c);
#define conv2d(g, x, ...) layer_conv2d((g), (x), &(const struct conv2d){__VA_ARGS__})

/* gain: mean of the scale weights. A graph that learns normalises by the moments of the batch, and
 * running ones are its states. */
int batch_norm(struct graph *g, int x, const char *name, double epsilon, double gain);
int layer_norm(struct graph *g, int x, const char *name, double epsilon);

/* In a graph that learns: each element is dropped with probability ratio, by a mask of its own in
 * each step and for each name, and the others are divided by 1 - ratio. Otherwise x. */
int dropout(struct graph *g, int x, const char *name, double ratio);
/* The same of [time, samples, ...]. */
int dropout_in_time(struct graph *g, int x, const char *name, double ratio);
int relu(struct graph *g, int x);
int softmax(struct graph *g, int x, int64_t axis);
int sigmoid(struct graph *g, int x);
int add(struct graph *g, int a, int b);
int mul(struct graph *g, int a, int b);
/* 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), as BERT's code has it. */
int gelu_tanh(struct graph *g, int x);

struct window2d {
    int64_t kernel, stride;
    int64_t top, left, bottom, right; /* pads */
};
int max_pool(struct graph *g, int x, struct window2d w);
int average_pool(struct graph *g, int x, struct window2d w);
int global_average_pool(struct graph *g, int x);
int flatten(struct graph *g, int x); /* [N, rest] */

/* x [..., K] times weights [K, out] plus bias: MatMul and Add. */
int dense(struct graph *g, int x, const char *name, int64_t out);
int dense_scaled(struct graph *g, int x, const char *name, int64_t out, double gain);
/* Rows of a new table [rows, width]; ids of any integer type. */
int embedding(struct graph *g, int ids, const char *name, int64_t rows, int64_t width);
int reshape(struct graph *g, int x, int rank, const int64_t *dim);
int transpose(struct graph *g, int x, int rank, const int64_t *perm);
int concat(struct graph *g, int64_t axis, int count, const int *values);
int cast(struct graph *g, int x, enum dtype to);

/* Any operator of one or two inputs without attributes: "Exp", "Sub". */
int unary(struct graph *g, const char *op, int x);
int binary(struct graph *g, const char *op, int a, int b);
/* x[start, stop) along one axis; step -1 goes backwards. */
struct range {
    int64_t axis, start, stop, step; /* step 0: 1 */
};
int slice(struct graph *g, int x, struct range r);
int gather(struct graph *g, int x, int ids, int64_t axis);
/* Height and width by bilinear interpolation, as TensorFlow 1 samples (element k at k in / out). */
int resize_bilinear(struct graph *g, int x, int64_t height, int64_t width);

/* Rows of zeros with a one at each id: [..., depth]. */
int one_hot(struct graph *g, int ids, int64_t depth);

/* Size of a value along an axis (negative: from the last); 1 where the graph failed already. */
int64_t dim_of(const struct graph *g, int x, int axis);
/* printf into the graph's memory: "layer%d.query". */
__attribute__((format(printf, 2, 3))) const char *name_of(struct graph *g, const char *format, ...);

#endif
