/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs made for the file only: what an operator of ours is made of, or the body of a loop. Such a
 * graph names values outside of it: inner_capture makes an input that has the name of one.
 *
 * Life cycle: inner_new; build it as any graph; inner_inline or inner_body. The exporter frees it.
 */
#ifndef WORKLOADS_ONNX_EXPORT_INNER_H
#define WORKLOADS_ONNX_EXPORT_INNER_H

#include "workloads/onnx/export/export.h"

struct graph *inner_new(struct exporter *x, const char *name);
/* An input of `inner` that is value `value` of graph `from`. */
int inner_capture(struct graph *inner, const struct graph *from, int value);
/* Nodes without attributes. */
static inline int op1(struct graph *g, const char *op, int x)
{
    return graph_node(g, op, NULL, INPUTS(x), NO_ATTRS);
}
static inline int op2(struct graph *g, const char *op, int x, int y)
{
    return graph_node(g, op, NULL, INPUTS(x, y), NO_ATTRS);
}
static inline int op3(struct graph *g, const char *op, int x, int y, int z)
{
    return graph_node(g, op, NULL, INPUTS(x, y, z), NO_ATTRS);
}
/* Puts the nodes of `inner` here; its values get new names, output k the name names[k] (NULL or ""
 * keeps its own). */
enum status inner_inline(struct exporter *x, struct graph *inner, const char *const *names,
                         struct error *err);
/* The body of a loop: the first `formal` inputs are its own, the others are captured. */
enum status inner_body(struct exporter *x, struct graph *inner, int formal, Onnx__GraphProto **body,
                       struct error *err);

/* Operators that become such graphs. */
enum status export_attention(const struct form *form, struct error *err);
enum status export_attention_lstm(const struct form *form, struct error *err);
enum status export_augru(const struct form *form, struct error *err);
enum status export_spmm(const struct form *form, struct error *err);
enum status export_decoder(const struct form *form, struct error *err);
enum status export_expert_combine(const struct form *form, struct error *err);
enum status export_expert_sort(const struct form *form, struct error *err);
enum status export_grouped_mat_mul(const struct form *form, struct error *err);

#endif
