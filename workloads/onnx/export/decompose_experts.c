/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows by expert in ONNX, which has nothing of the kind. Products: where there are no more rows
 * than experts, each row has its expert's weights gathered for it, as many bytes as Ridge reads;
 * else all rows are multiplied by all experts and of the products one is kept, which is right but E
 * times the work. */
#include <stdlib.h>

#include "engine/graph/op.h"
#include "engine/ops/lib/op_args.h"
#include "workloads/onnx/export/inner.h"

/* 0, 1, ... of the given shape, of which one dimension alone is not 1. */
static int numbers(struct graph *g, struct shape shape)
{
    int64_t count = shape_count(&shape), *data = calloc((size_t)count + 1, sizeof(*data));
    if (!data)
        return NONE;
    for (int64_t k = 0; k < count; k++)
        data[k] = k;
    int value = graph_const(g, NULL, DTYPE_I64, shape, data);
    free(data);
    return value;
}

static int reshaped(struct graph *g, int x, struct shape shape)
{
    return op2(g, "Reshape", x, graph_const_i64(g, shape.rank, shape.dim));
}

/* How many of each line of bools along an axis are true. */
static int count_true(struct graph *g, int x, int64_t axis)
{
    int numbers = graph_node(g, "Cast", NULL, INPUTS(x), ATTRS(attr_int("to", 7)));
    return graph_node(g, "ReduceSum", NULL, INPUTS(numbers, graph_const_i64(g, 1, &axis)),
                      ATTRS(attr_int("keepdims", 0)));
}

/* The places of the smallest of the keys, which all differ, of the next, and so on. Of a
 * permutation it is the one that undoes it. */
static int sorted_places(struct graph *g, int keys, int64_t count)
{
    int pair[2] = {NONE, NONE};
    graph_node_many(g, "TopK", NULL, INPUTS(keys, graph_const_i64(g, 1, &count)),
                    ATTRS(attr_int("axis", 0), attr_int("largest", 0)), 2, pair);
    return pair[1];
}

static enum status begin(const struct form *f, struct graph **g, struct error *err)
{
    if (shape_count(&f->x->g->values[f->node->outputs[0]].shape) == 0)
        return UNSUPPORTED(err, "%s of no rows in a file", f->node->op->name);
    *g = inner_new(f->x, arena_printf(&f->x->arena, "%s:experts", f->outputs[0]));
    return *g ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static struct shape shape_in(const struct form *f, int input)
{
    return f->x->g->values[f->node->inputs[input]].shape;
}

static int captured(const struct form *f, struct graph *g, int input)
{
    return inner_capture(g, f->x->g, f->node->inputs[input]);
}

/* Keys are expert times T k plus place: so the sort is stable. */
enum status export_expert_sort(const struct form *f, struct error *err)
{
    struct graph *g;
    struct shape choice = shape_in(f, 0);
    int64_t places = shape_count(&choice), experts = node_int(f->node, "experts", 0);
    TRY(begin(f, &g, err));
    int flat = reshaped(g, captured(f, g, 0), shape_of(places));
    int keys = op2(g, "Mul", flat, graph_const_i64(g, -1, &places));
    keys = op2(g, "Add", keys, numbers(g, shape_of(places)));
    graph_output(g, sorted_places(g, keys, places));
    int earlier = op2(g, "Less", reshaped(g, flat, shape_of(1, places)),
                      numbers(g, shape_of(experts + 1, 1)));
    if (f->output_count > 1)
        graph_output(g, count_true(g, earlier, 1));
    return inner_inline(f->x, g, f->outputs, err);
}

/* The expert of each row, [rows]: how many have ended before it. */
static int experts_of_rows(struct graph *g, int offsets, int64_t rows, int64_t experts)
{
    int ends = graph_node(g, "Slice", NULL,
                          INPUTS(offsets, graph_const_i64(g, 1, (int64_t[]){1}),
                                 graph_const_i64(g, 1, (int64_t[]){experts + 1})),
                          NO_ATTRS);
    ends = reshaped(g, ends, shape_of(1, experts));
    return count_true(g, op2(g, "GreaterOrEqual", numbers(g, shape_of(rows, 1)), ends), 1);
}

/* x [rows, K] times one [K, N] for each row. */
static int of_gathered(struct graph *g, int x, int weights, int expert, struct shape y)
{
    int64_t rows = y.dim[0], k = g->values[weights].shape.dim[1];
    int own = op2(g, "Gather", weights, expert);
    return reshaped(g, op2(g, "MatMul", reshaped(g, x, shape_of(rows, 1, k)), own), y);
}

/* Of all products that of each row's expert. */
static int of_all(struct graph *g, int x, int weights, int expert, struct shape y)
{
    int64_t experts = g->values[weights].shape.dim[0], rows = y.dim[0], first = 0;
    int all = op2(g, "MatMul", x, weights);
    int mine = op2(g, "Equal", reshaped(g, expert, shape_of(1, rows, 1)),
                   numbers(g, shape_of(experts, 1, 1)));
    const double zero = 0;
    int none = graph_const(g, NULL, g->values[x].dtype, shape_scalar(), &zero);
    return graph_node(g, "ReduceSum", NULL,
                      INPUTS(op3(g, "Where", mine, all, none), graph_const_i64(g, 1, &first)),
                      ATTRS(attr_int("keepdims", 0)));
}

enum status export_grouped_mat_mul(const struct form *f, struct error *err)
{
    enum { X, WEIGHTS, OFFSETS, ORDER };
    struct graph *g;
    struct shape y = f->x->g->values[f->node->outputs[0]].shape;
    int64_t experts = shape_in(f, WEIGHTS).dim[0], chosen = node_int(f->node, "chosen", 1);
    TRY(begin(f, &g, err));
    int x = captured(f, g, X), weights = captured(f, g, WEIGHTS);
    if (f->node->op_inputs > ORDER && f->node->inputs[ORDER] != NONE) {
        int token = op2(g, "Div", captured(f, g, ORDER), graph_const_i64(g, -1, &chosen));
        x = op2(g, "Gather", x, token);
    }
    int expert = experts_of_rows(g, captured(f, g, OFFSETS), y.dim[0], experts);
    bool few = y.dim[0] <= experts;
    graph_output(g, few ? of_gathered(g, x, weights, expert, y) : of_all(g, x, weights, expert, y));
    return inner_inline(f->x, g, f->outputs, err);
}

enum status export_expert_combine(const struct form *f, struct error *err)
{
    enum { ROWS, ORDER, WEIGHTS };
    struct graph *g;
    struct shape rows = shape_in(f, ROWS), weights = shape_in(f, WEIGHTS);
    int64_t tokens = weights.dim[0], chosen = weights.dim[1], axis = 1;
    enum dtype type = f->x->g->values[f->node->inputs[ROWS]].dtype;
    TRY(begin(f, &g, err));
    int of_place = sorted_places(g, captured(f, g, ORDER), rows.dim[0]);
    int x = op2(g, "Gather", captured(f, g, ROWS), of_place);
    int factor = reshaped(g, captured(f, g, WEIGHTS), shape_of(tokens, chosen, 1));
    if (g->values[factor].dtype != type)
        factor =
            graph_node(g, "Cast", NULL, INPUTS(factor), ATTRS(attr_int("to", dtype_to_onnx(type))));
    x = op2(g, "Mul", reshaped(g, x, shape_of(tokens, chosen, rows.dim[1])), factor);
    graph_output(g, graph_node(g, "ReduceSum", NULL, INPUTS(x, graph_const_i64(g, 1, &axis)),
                               ATTRS(attr_int("keepdims", 0))));
    return inner_inline(f->x, g, f->outputs, err);
}
