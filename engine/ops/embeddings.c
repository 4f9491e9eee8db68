/* SPDX-License-Identifier: Apache-2.0
 * Embeddings (ridge): rows of several tables, side by side along the last axis or summed. Inputs
 * come in pairs of a table [V, D] and indices of any shape; negative ones count from the end.
 * Without indices the "table" [..., D] is taken as it is. Without a table the rows are one-hot, as
 * many elements long as the pair's entry of `depths`; an index outside gives zeros. */
#include <string.h>

#include "engine/ops/family/op_index.h"
#include "engine/ops/lib/embedding_pairs.h"

static const char *const attrs[] = {"depths", "mode", NULL};

/* Dimensions of all rows together: without the last one of a pair that is taken as it is. */
static struct shape lead_of(const struct infer *c, int pair)
{
    bool whole = !c->in[2 * pair + 1];
    struct shape lead = c->in[2 * pair + !whole]->shape;
    lead.rank -= whole;
    return lead;
}

/* The type of all tables; where there are none rows are of f32. */
static enum dtype type_of(const struct infer *c)
{
    for (int k = 0; k < c->in_count / 2; k++)
        if (c->in[2 * k])
            return c->in[2 * k]->dtype;
    return DTYPE_F32;
}

static enum status check_pair(const struct infer *c, int pair, struct error *err)
{
    const struct value *table = c->in[2 * pair], *indices = c->in[2 * pair + 1];
    enum dtype type = type_of(c);
    char text[96];
    if (!table && (!indices || embedding_depth(c->node, pair) <= 0))
        return FAIL(err, STATUS_FAILED, "Embeddings: pair %d has neither a table nor a depth",
                    pair);
    if (table && (!dtype_is_float(type) || type == DTYPE_F64))
        return FAIL(err, STATUS_FAILED, "Embeddings: tables are of %s, not f32, f16 or bf16",
                    dtype_name(type));
    if (table && table->dtype != type)
        return FAIL(err, STATUS_FAILED, "Embeddings: table %d is of %s, one before it of %s", pair,
                    dtype_name(table->dtype), dtype_name(type));
    if (table && (indices ? table->shape.rank != 2 : table->shape.rank < 1))
        return FAIL(err, STATUS_FAILED, "Embeddings: table %d is %s; it needs rank 2", pair,
                    shape_text(&table->shape, text));
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    bool sum = embedding_sums(c->node);
    const char *mode = node_string(c->node, "mode", "concat");
    struct shape y = {0};
    int64_t width = 0;
    if (c->in_count < 2 || c->in_count % 2 || (!sum && strcmp(mode, "concat") != 0))
        return FAIL(err, STATUS_FAILED,
                    "Embeddings: %d inputs, which come in pairs; mode \"%s\", which is concat or "
                    "sum",
                    c->in_count, mode);
    for (int k = 0; k < c->in_count / 2; k++) {
        TRY(check_pair(c, k, err));
        const struct value *table = c->in[2 * k];
        struct shape lead = lead_of(c, k);
        int64_t own = embedding_width(c->node, k, table ? &table->shape : NULL);
        char text[96], first[96];
        if (k > 0 && (!shape_equal(&lead, &y) || (sum && own != width)))
            return FAIL(err, STATUS_FAILED,
                        "Embeddings: pair %d makes rows %s of %lld elements, the first one rows "
                        "%s of %lld",
                        k, shape_text(&lead, text), (long long)own, shape_text(&y, first),
                        (long long)width);
        y = lead;
        width = sum ? own : width + own;
    }
    if (y.rank == RANK_MAX)
        return UNSUPPORTED(err, "a result of rank %d", RANK_MAX + 1);
    y.dim[y.rank++] = width;
    infer_set(c, 0, type_of(c), &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    if (embedding_sums(c->node))
        cost->elementwise = (double)shape_count(&c->out[0]->shape) * (c->in_count / 2 - 1);
}

struct pair {
    const struct ref_tensor *table, *indices;
    int64_t width, at; /* at: its first column of the result */
};

static enum status add_row(const struct ref_call *call, const struct pair *p, int64_t row,
                           struct error *err)
{
    const struct ref_tensor *out = call->out[0];
    int64_t columns = out->shape.dim[out->shape.rank - 1], from = row;
    double *y = out->f + row * columns + p->at;
    if (!p->table) {
        int64_t index = p->indices->i[row] + (p->indices->i[row] < 0 ? p->width : 0);
        if (index >= 0 && index < p->width)
            y[index] += 1;
        return STATUS_OK;
    }
    if (p->indices)
        TRY(index_wrap(call->node, p->indices->i[row], p->table->shape.dim[0], &from, err));
    for (int64_t k = 0; k < p->width; k++)
        y[k] += p->table->f[from * p->width + k];
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    bool sum = embedding_sums(call->node);
    const struct shape *y = &call->out[0]->shape;
    int64_t rows = shape_span(y, 0, y->rank - 1), at = 0;
    for (int k = 0; k < call->in_count / 2; k++) {
        const struct ref_tensor *table = call->in[2 * k];
        struct pair p = {.table = table,
                         .indices = call->in[2 * k + 1],
                         .width = embedding_width(call->node, k, table ? &table->shape : NULL),
                         .at = at};
        for (int64_t row = 0; row < rows; row++)
            TRY(add_row(call, &p, row, err));
        at += sum ? 0 : p.width;
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "two_tables", .inputs = "f32[50,16]! i32[7,5]{0:50} f32[30,33]! i64[7,5]{0:30}"},
    {.name = "features",
     .inputs = "f32[9,1] - - i32[9]{0:7} f32[20,8]! i32[9]{0:20} f32[9,3] - - i64[9]{0:5}",
     .attrs = "depths=[0,7,0,0,5]"},
    {.name = "outside", .inputs = "- i64[5]=-4,-3,-1,2,3 f32[5,2] -", .attrs = "depths=[3,0]"},
    {.name = "sum",
     .inputs = "f32[40,1]! i32[700]{0:40} f32[11,1]! i64[700]{0:11} f32[700,1] -",
     .attrs = "mode=\"sum\""},
    {.name = "sum_of_vectors",
     .inputs = "f32[40,19] i32[6,3]{0:40} f32[11,19]! i32[6,3]{0:11} - i32[6,3]{0:19}",
     .attrs = "mode=\"sum\" depths=[0,0,19]"},
    {.name = "negative", .inputs = "f32[7,5] i64[4]=-1,0,-7,6 f32[3,64]! i32[4]{0:3}"},
    {.name = "large", .inputs = "f32[9000,64]! i32[300]{0:9000} f32[80,64]! i32[300]{0:80}"},
    {.name = "alone", .inputs = "f32[12,4]! i32[3]{0:12}"},
};

REGISTER(op, embeddings) = {
    .name = "Embeddings",
    .reads = READS_ROWS,
    .narrow = NARROW_MATH, /* a sum is rounded */
    .domain = "ridge",
    .inputs_min = 0, /* either of a pair may be absent */
    .inputs_max = -1,
    .attrs = attrs,
    .int_inputs = 0xAAAAAAAA, /* every other one */
    .indices = INDICES_EITHER_WAY,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
