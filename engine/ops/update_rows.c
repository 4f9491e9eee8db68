/* SPDX-License-Identifier: Apache-2.0
 * UpdateRows (ridge): what the optimiser named by `optimiser` makes of a table whose gradient is
 * the sum of some GatherGradients along axis 0: inputs are the learning rate, the number of the
 * step, the scale of the gradient (or absent), the table and its slots as the optimiser has them,
 * then dy and indices of each GatherGradient, all of one `mode`. Outputs: the next table and its
 * next slots. For optimisers that leave an element with a gradient of 0 as it is, so that only rows
 * which an index names are read and written; pass update_rows makes it. */
#include <stdlib.h>
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/op_index.h"
#include "engine/ops/family/update.h"

static const char *const attrs[] = {"optimiser", "mode", "epsilon", "rate_decay", NULL};

static const struct op *optimiser_of(const struct node *node)
{
    const char *name = node_string(node, "optimiser", "");
    return strcmp(name, op_sgd.update->name) == 0       ? &op_sgd
           : strcmp(name, op_adagrad.update->name) == 0 ? &op_adagrad
                                                        : NULL;
}

static enum status infer(const struct infer *c, struct error *err)
{
    const struct op *optimiser = optimiser_of(c->node);
    if (!optimiser)
        return UNSUPPORTED(err, "UpdateRows by \"%s\"; sgd and adagrad leave other rows alone",
                           node_string(c->node, "optimiser", ""));
    int slots = optimiser->update->slots, first = UPDATE_WEIGHTS + 1 + slots;
    if (c->in_count < first + 2 || (c->in_count - first) % 2 || c->out_count != 1 + slots)
        return FAIL(err, STATUS_FAILED, "UpdateRows: %d inputs and %d outputs do not fit %s",
                    c->in_count, c->out_count, optimiser->update->name);
    for (int k = first; k < c->in_count; k += 2)
        if (!dtype_is_float(c->in[k]->dtype) || dtype_is_float(c->in[k + 1]->dtype))
            return FAIL(err, STATUS_FAILED, "UpdateRows: inputs %d and %d are no dy and indices", k,
                        k + 1);
    for (int k = 0; k <= slots; k++)
        infer_set(c, k, c->in[UPDATE_WEIGHTS]->dtype, &c->in[UPDATE_WEIGHTS]->shape);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    const struct op *optimiser = optimiser_of(c->node);
    const struct shape *table = &c->in[UPDATE_WEIGHTS]->shape;
    double width = (double)shape_span(table, 1, table->rank);
    for (int k = UPDATE_WEIGHTS + 1 + optimiser->update->slots; k < c->in_count; k += 2) {
        double elements = width * (double)shape_count(&c->in[k + 1]->shape);
        cost->elementwise += (optimiser == &op_sgd ? 5 : 9) * elements;
        cost->transcendentals += optimiser == &op_sgd ? 0 : 2 * elements;
    }
}

/* Adds one GatherGradient to the gradient of the whole table. */
static enum status add_rows(const struct ref_call *call, int input, const struct ref_tensor *sum,
                            struct error *err)
{
    const struct ref_tensor *dy = call->in[input], *index = call->in[input + 1];
    const char *mode = node_string(call->node, "mode", "rows");
    int rank = index->shape.rank;
    int64_t rows = sum->shape.dim[0], inner = shape_span(&sum->shape, 1, sum->shape.rank);
    int64_t bag = strcmp(mode, "rows") == 0 ? 1 : index->shape.dim[rank - 1];
    double factor = strcmp(mode, "mean") == 0 ? 1 / (double)bag : 1;
    for (int64_t k = 0; k < index->count; k++) {
        int64_t at;
        TRY(index_wrap(call->node, index->i[k], rows, &at, err));
        for (int64_t e = 0; e < inner; e++)
            sum->f[at * inner + e] += factor * dy->f[k / bag * inner + e];
    }
    return STATUS_OK;
}

/* The optimiser's own reference, given the gradient of the whole table. */
static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct op *optimiser = optimiser_of(call->node);
    int slots = optimiser->update->slots;
    const struct ref_tensor *in[UPDATE_WEIGHTS + 2 + UPDATE_SLOTS_MAX] = {NULL};
    struct ref_tensor sum;
    struct node node = *call->node;
    node.op = optimiser;
    node.op_inputs = node.input_count = UPDATE_WEIGHTS + 2 + slots;
    TRY(ref_alloc(&sum, DTYPE_F64, &call->in[UPDATE_WEIGHTS]->shape, err));
    enum status status = STATUS_OK;
    for (int k = UPDATE_WEIGHTS + 1 + slots; k < call->in_count && status == STATUS_OK; k += 2)
        status = add_rows(call, k, &sum, err);
    memcpy(in, call->in, (UPDATE_WEIGHTS + 1) * sizeof(in[0]));
    in[UPDATE_WEIGHTS + 1] = &sum;
    for (int k = 0; k < slots; k++)
        in[UPDATE_WEIGHTS + 2 + k] = call->in[UPDATE_WEIGHTS + 1 + k];
    struct ref_call whole = *call;
    whole.node = &node;
    whole.in = in;
    whole.in_count = node.op_inputs;
    if (status == STATUS_OK)
        status = optimiser->reference(&whole, err);
    ref_release(&sum);
    return status;
}

static const struct op_case cases[] = {
    {.name = "sgd",
     .inputs = "f32[]{0.01:0.1} i64[]=1 - f32[50,33] f32[2,30,33] i64[2,30]{0:20}",
     .attrs = "optimiser=\"sgd\""},
    {.name = "adagrad",
     .inputs = "f32[]{0.01:0.1} i64[]=3 f32[]{0.1:0.9} f32[5000,16] f32[5000,16]{0.01:1} "
               "f32[700,16] i32[700]{0:5000}",
     .attrs = "optimiser=\"adagrad\" rate_decay=0.1",
     .outputs = 2},
    {.name = "negative",
     .inputs = "f32[]{0.01:0.1} i64[]=1 - f32[7,6] f32[5,6] i64[5]=-1,0,-7,6,0",
     .attrs = "optimiser=\"sgd\""},
    {.name = "one_column",
     .inputs = "f32[]{0.01:0.1} i64[]=1 - f32[9000] f32[9000]{0.01:1} f32[1500] i32[1500]{0:9000}",
     .attrs = "optimiser=\"adagrad\"",
     .outputs = 2},
    {.name = "bags",
     .inputs = "f32[]{0.01:0.1} i64[]=1 - f32[50,16] f32[7,16] i32[7,5]{0:50}",
     .attrs = "optimiser=\"sgd\" mode=\"mean\""},
    {.name = "two_readers",
     .inputs = "f32[]{0.01:0.1} i64[]=1 - f32[300,200] f32[300,200]{0.01:1} "
               "f32[70,200] i64[70]{0:90} f32[4,5,200] i32[4,5]{0:300}",
     .attrs = "optimiser=\"adagrad\"",
     .outputs = 2},
    {.name = "long_sums",
     .inputs = "f32[]{0.01:0.1} i64[]=1 - f32[70000,5] f32[9000,5] i32[9000]{0:3}",
     .attrs = "optimiser=\"sgd\""},
};

REGISTER(op, update_rows) = {
    .name = "UpdateRows",
    .domain = "ridge",
    .inputs_min = UPDATE_SCALE,
    .inputs_max = -1,
    .outputs_max = 1 + UPDATE_SLOTS_MAX,
    .attrs = attrs,
    .int_inputs = 1u << UPDATE_STEP,
    .reads = READS_CHANGED_ROWS,
    .in_place = ~0u,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through an update",
    OP_CASES(cases),
};
