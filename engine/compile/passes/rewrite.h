/* SPDX-License-Identifier: Apache-2.0
 *
 * The room engine/compile/passes/ holds one rewriting of the graph per file;
 * engine/compile/passes.c says in which order they run. This header is what they share. A pass
 * looks for a pattern from its last node upwards, adds the replacement, hands the old result over
 * with rewrite_replace and leaves the rest to graph_compact: nodes whose result nobody reads any
 * more vanish by themselves. */
#ifndef ENGINE_COMPILE_PASSES_REWRITE_H
#define ENGINE_COMPILE_PASSES_REWRITE_H

#include "engine/graph/op.h"
#include "engine/ops/lib/chain.h"

/* Rewrites the graph in place, leaving replaced nodes dead. */
typedef enum status graph_pass(struct graph *g, struct error *err);

graph_pass pass_normalise;           /* explicit window attributes; identities removed */
graph_pass pass_drop_idle;           /* what gives back its input */
graph_pass pass_absorb_f8;           /* products read f8 factors as they are */
graph_pass pass_turn_q_linear;       /* QLinearConv -> DequantizeLinear, Conv, QuantizeLinear */
graph_pass pass_absorb_bytes;        /* convolutions and products of what is quantised */
graph_pass pass_keep_bytes;          /* what moves or bends what is quantised */
graph_pass pass_absorb_codes;        /* products read quantised weights as they are */
graph_pass pass_unpack_codes;        /* and become floats first where many rows are multiplied */
graph_pass pass_turn_einsum;         /* Einsum -> Transpose, Reshape, MatMul, Mul, ReduceSum */
graph_pass pass_share_product;       /* products of concatenations of what repeats, part by part */
graph_pass pass_turn_product;        /* Transpose, MatMul, Transpose -> MatMul from the left */
graph_pass pass_fold_constants;      /* nodes of constants only */
graph_pass pass_turn_conv_transpose; /* ConvTranspose of stride 1 -> Conv */
graph_pass pass_fold_batch_norm;     /* BatchNormalization into the convolution before it */
graph_pass pass_merge_branches;      /* sums of convolutions of one input -> one */
graph_pass pass_fuse_concat_norm;    /* Concat and BatchNormalization as one */
graph_pass pass_find_layer_norm;     /* ReduceMean-Sub-Pow-... -> norms of rows */
graph_pass pass_find_gelu;           /* Erf and Tanh compositions -> Gelu */
graph_pass pass_find_attention;      /* MatMul-Softmax-MatMul with its transposes -> Attention */
graph_pass pass_undo_moves;          /* what is turned and turned back stays where it lay */
graph_pass pass_find_rotary;         /* positions rotated by fixed angles -> RotaryEmbedding */
graph_pass pass_cancel_transpose;    /* turns that undo each other across elementwise nodes */
graph_pass pass_merge_qkv;           /* three projections of one input -> one, packed Attention */
graph_pass pass_absorb_transpose;    /* products read transposed matrices where they lie */
graph_pass pass_update_rows;         /* updates of tables of which only rows were read */
graph_pass pass_absorb_expand;       /* sums and products read what was expanded for them */
graph_pass pass_join_embeddings;     /* tables that end in one concatenation or sum */
graph_pass pass_merge_products;      /* narrow products of one wide matrix as one */
graph_pass pass_fuse_gate;           /* ReLU's gradient into that of the norm before it */
graph_pass pass_fuse_epilogue;       /* activation, bias, residual into the node before */
graph_pass pass_fuse_on_device;      /* the same, as far as kernels of devices go */
graph_pass pass_fuse_chain;          /* groups of elementwise nodes -> Chain */

/* Whether a node that bears floats of 16 bits is to have them. */
struct narrow_judge {
    enum status (*judge)(const void *context, const struct graph *g, int node, bool *narrow,
                         struct error *err);
    const void *context;
};
/* Floats of 16 bits wherever an operator bears them and the judge (NULL, or its function is: there
 * is none) agrees. Not of the list, since it takes the type. */
enum status pass_narrow(struct graph *g, enum dtype to, const struct narrow_judge *judge,
                        struct error *err);

/* The node that computes a value if it is of the operator, else NULL. */
struct node *rewrite_producer(const struct graph *g, int value, const struct op *op);
/* Whether it is one of the graph's outputs, which have names and memory of their own. */
bool rewrite_is_output(const struct graph *g, int value);
/* Whether the node has it among its inputs. */
bool rewrite_reads(const struct node *node, int value);
/* The only reader of a value (it is read once, and not an output), else NONE. */
int rewrite_only_user(const struct graph *g, int value);
/* The value of a fixed scalar (one element) of floats; false otherwise. */
bool rewrite_scalar(const struct graph *g, int value, double *number);
/* What an elementwise node computes, with fixed scalars as parameters; false: no expression. */
bool rewrite_expression(const struct graph *g, const struct node *node, struct chain *chain);
/* Finds the operand of a two-input node that is a fixed scalar; *other gets the other one. */
bool rewrite_with_scalar(const struct graph *g, const struct node *node, double *number,
                         int *other);
/* All readers of `old`, the graph's outputs and its states read `fresh` from now on. */
void rewrite_replace(struct graph *g, int old, int fresh);

/* A new weight whose contents were malloc'd; the graph takes them, also when it fails (NONE). */
int rewrite_weight(struct graph *g, const char *name, struct shape shape, float *data);
int rewrite_weight_of(struct graph *g, const char *name, enum dtype dtype, struct shape shape,
                      void *data);

/* Whether it is a fixed vector of so many floats. */
bool rewrite_is_vector(const struct graph *g, int value, int64_t size);
/* Fixed matrices of floats with as many rows, or vectors, side by side as a new weight; NONE: out
 * of memory. */
int rewrite_side_by_side(struct graph *g, int count, const int *values);

#endif
