/* SPDX-License-Identifier: Apache-2.0
 * EmbeddingBag (ridge): rows of table [V, D] picked by indices [B, L], summed or averaged over L.
 */
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

static const char *const attrs[] = {"mode", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *table = &c->in[0]->shape, *indices = &c->in[1]->shape;
    const char *mode = node_string(c->node, "mode", "sum");
    char text[96], text_indices[96];
    if (table->rank != 2 || indices->rank != 2)
        return FAIL(err, STATUS_FAILED, "EmbeddingBag: table %s, indices %s: both need rank 2",
                    shape_text(table, text), shape_text(indices, text_indices));
    if (strcmp(mode, "sum") != 0 && strcmp(mode, "mean") != 0)
        return FAIL(err, STATUS_FAILED, "EmbeddingBag: mode \"%s\" is neither sum nor mean", mode);
    struct shape y = shape_of(indices->dim[0], table->dim[1]);
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    bool mean = strcmp(node_string(c->node, "mode", "sum"), "mean") == 0;
    double bag = (double)c->in[1]->shape.dim[1], count = (double)shape_count(&c->out[0]->shape);
    cost->elementwise = count * (bag > 1 ? bag - 1 : 0) + (mean ? count : 0);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *table = call->in[0], *indices = call->in[1];
    int64_t rows = table->shape.dim[0], width = table->shape.dim[1], bag = indices->shape.dim[1];
    bool mean = strcmp(node_string(call->node, "mode", "sum"), "mean") == 0;
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t row = indices->i[i];
        double *y = call->out[0]->f + i / bag * width;
        if (row < 0 || row >= rows)
            return FAIL(err, STATUS_FAILED, "EmbeddingBag: index %lld of a table with %lld rows",
                        (long long)row, (long long)rows);
        for (int64_t k = 0; k < width; k++)
            y[k] += table->f[row * width + k];
    }
    for (int64_t k = 0; mean && k < call->out[0]->count; k++)
        call->out[0]->f[k] /= (double)bag;
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    int64_t rows = gradient_shape(g, gradient_in(c, 0)).dim[0];
    const char *mode = node_string(gradient_node(c), "mode", "sum");
    (void)err;
    c->dx[0] = graph_node(g, op_gather_gradient.name, NULL, INPUTS(c->dy[0], gradient_in(c, 1)),
                          ATTRS(attr_int("rows", rows), attr_string("mode", mode)));
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "sum", .inputs = "f32[50,16]! i32[7,5]{0:50}"},
    {.name = "mean", .inputs = "f32[50,33]! i64[6,4]{0:50}", .attrs = "mode=\"mean\""},
    {.name = "one_index", .inputs = "f32[20,64]! i64[9,1]{0:20}", .attrs = "mode=\"sum\""},
    {.name = "one_column", .inputs = "f32[300,1]! i32[4,37]{0:300}"},
    {.name = "shared_bags", .inputs = "f32[30,40]{0.5:1}! i32[3,51]{0:30}"},
    {.name = "few_long_bags", .inputs = "f32[40,24]{0.5:1}! i32[2,1100]{0:40}"},
    {.name = "one_long_bag",
     .inputs = "f32[30,5]{0.5:1}! i64[1,1300]{0:30}",
     .attrs = "mode=\"mean\""},
    {.name = "wide_rows", .inputs = "f32[300,128]! i64[700,2]{0:300}"},
    {.name = "table_at_run_time", .inputs = "f32[20,8] i32[3,6]{0:20}"},
};

REGISTER(op, embedding_bag) = {
    .name = "EmbeddingBag",
    .narrow = NARROW_WORK,
    .reads = READS_ROWS,
    .domain = "ridge",
    .inputs_min = 2,
    .int_inputs = 1u << 1,
    .attrs = attrs,
    .indices = INDICES_FROM_START,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
