/* SPDX-License-Identifier: Apache-2.0
 * Trilu: the upper (default) or lower triangle of matrices; k moves the diagonal to the right. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"upper", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    if (c->in[0]->shape.rank < 2)
        return FAIL(err, STATUS_FAILED, "Trilu of rank %d; it takes matrices",
                    c->in[0]->shape.rank);
    return infer_same(c, err);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *x = call->in[0];
    int64_t rows = x->shape.dim[x->shape.rank - 2], columns = x->shape.dim[x->shape.rank - 1];
    int64_t diagonal = call->in_count > 1 && call->in[1] ? call->in[1]->i[0] : 0;
    bool upper = node_int(call->node, "upper", 1) != 0;
    for (int64_t k = 0; k < x->count; k++) {
        int64_t row = k / columns % rows, column = k % columns;
        if (upper ? column - row >= diagonal : column - row <= diagonal)
            ref_copy(call->out[0], k, x, k);
    }
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    struct graph *g = c->g;
    const struct node *node = gradient_node(c);
    int inputs[2] = {c->dy[0], gradient_in(c, 1)};
    c->dx[0] =
        graph_node(g, node->op->name, NULL, node->op_inputs, inputs, node->attr_count, node->attrs);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "upper", .inputs = "f32[4,5]"},
    {.name = "lower", .inputs = "f32[2,5,5]", .attrs = "upper=0"},
    {.name = "right", .inputs = "i64[3,4,5] i64[]=2"},
    {.name = "left", .inputs = "f32[6,3] i64[]=-2", .attrs = "upper=0"},
    {.name = "beyond", .inputs = "f32[3,3] i64[]=-7"},
    {.name = "far_right", .inputs = "f32[3,4] i64[]=9223372036854775807"},
    {.name = "far_left", .inputs = "f32[3,4] i64[]=-9223372036854775807", .attrs = "upper=0"},
    {.name = "bytes", .inputs = "bool[2,9,7] i64[1]=1", .attrs = "upper=0"},
    {.name = "wide", .inputs = "f64[3,37] i64[]=5"},
    {.name = "large", .inputs = "f32[3,70,131] i64[]=-9"},
    {.name = "large_lower", .inputs = "f32[2,2,129,67] i64[]=3", .attrs = "upper=0"},
    {.name = "blocks_of_16_bytes", .inputs = "f16[2,9,24] i32[]=-1"},
    {.name = "bytes_in_words", .inputs = "u8[2,19,24] i64[]=-2"},
    {.name = "bytes_in_blocks", .inputs = "bool[33,32] i64[]=1", .attrs = "upper=0"},
    {.name = "halves_in_words", .inputs = "f16[7,10]", .attrs = "upper=0"},
    {.name = "none", .inputs = "f32[2,4,0]"},
};

REGISTER(op, trilu) = {
    .name = "Trilu",
    .narrow = NARROW_MOVE,
    .inputs_min = 1,
    .inputs_max = 2,
    .int_inputs = 1u << 1,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
