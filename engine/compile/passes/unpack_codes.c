/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of many rows with weights of a few bits, on a device: the weights become floats first,
 * in each run anew, and the product is one of floats, for which there are fast kernels. Where there
 * are few rows reading the weights is the work, and they are read as they are. */
#include <stdlib.h>

#include "base/numbers/integers.h"
#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/ops/lib/block_codes.h"

enum { A, CODES, SCALES, ZEROS, ORDER, BIAS };

static bool has(const struct node *node, int input)
{
    return input < node->op_inputs && node->inputs[input] != NONE;
}

static int reshaped(struct graph *g, int v, int64_t rows, int64_t columns)
{
    const int64_t shape[] = {rows, columns};
    int to = graph_const_i64(g, 2, shape);
    return graph_node(g, op_reshape.name, NULL, INPUTS(v, to), NO_ATTRS);
}

/* 0, 1 ... count - 1 */
static int all_rows(struct graph *g, int64_t count)
{
    int64_t *numbers = malloc((size_t)count * sizeof(*numbers));
    for (int64_t k = 0; numbers && k < count; k++)
        numbers[k] = k;
    return rewrite_weight_of(g, NULL, DTYPE_I64, shape_of(count), numbers);
}

/* The weights as floats, [N, K]. */
static int unpacked(struct graph *g, const struct node *node, const struct block_codes *c)
{
    int codes = reshaped(g, node->inputs[CODES], c->rows, c->row_bytes);
    int scales = reshaped(g, node->inputs[SCALES], c->rows, c->blocks);
    int zeros = has(node, ZEROS) ? reshaped(g, node->inputs[ZEROS], c->rows, c->zero_bytes) : NONE;
    return graph_node(g, op_gather_block_quantized.name, NULL, zeros == NONE ? 3 : 4,
                      (int[]){codes, all_rows(g, c->rows), scales, zeros},
                      ATTRS(attr_int("bits", c->bits), attr_int("block_size", c->block),
                            attr_int("gather_axis", 0), attr_int("quantize_axis", 1)));
}

/* The node may move when others are made: it is a copy. */
static enum status unpack(struct graph *g, const struct node node, const struct block_codes *c,
                          struct error *err)
{
    const int64_t turned[] = {1, 0};
    g->phase = node.phase;
    int weights = graph_node(g, op_transpose.name, NULL, INPUTS(unpacked(g, &node, c)),
                             ATTRS(attr_ints("perm", 2, turned)));
    int y = graph_node(g, op_mat_mul.name, node.name, INPUTS(node.inputs[A], weights), NO_ATTRS);
    if (has(&node, BIAS))
        y = graph_node(g, op_add.name, NULL, INPUTS(y, node.inputs[BIAS]), NO_ATTRS);
    if (g->failed)
        return graph_check(g, err);
    rewrite_replace(g, node.outputs[0], y);
    return STATUS_OK;
}

static enum status try_node(struct graph *g, const struct node node, struct error *err)
{
    struct block_codes c;
    if (node.dead || node.op != &op_mat_mul_n_bits || node.post_count)
        return STATUS_OK;
    const struct shape *a = &g->values[node.inputs[A]].shape;
    int64_t n = node_int(&node, "N", 0), k = node_int(&node, "K", 0);
    TRY(block_codes_from(&node, n, k, &c, err));
    if (shape_count(a) / k <= BLOCK_CODES_FEW_ROWS || k % c.block)
        return STATUS_OK;
    return unpack(g, node, &c, err);
}

enum status pass_unpack_codes(struct graph *g, struct error *err)
{
    int count = g->node_count; /* nodes are added at the end */
    for (int n = 0; n < count; n++)
        TRY(try_node(g, g->nodes[n], err));
    return STATUS_OK;
}
