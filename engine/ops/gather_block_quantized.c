/* SPDX-License-Identifier: Apache-2.0
 * GatherBlockQuantized (com.microsoft): rows of a table in 4 or 8 bits
 * (engine/ops/lib/block_codes.h), picked by a tensor of indices, as floats. */
#include "engine/ops/family/op_index.h"
#include "engine/ops/lib/block_codes.h"

enum { CODES, INDICES, SCALES, ZEROS };

static const char *const attrs[] = {"bits", "block_size", "gather_axis", "quantize_axis", NULL};

static enum status codes_of(const struct node *node, const struct shape *table,
                            struct block_codes *codes, struct error *err)
{
    int64_t k = table->dim[1] * 8 / (node_int(node, "bits", 4) == 8 ? 8 : 4);
    return block_codes_from(node, table->dim[0], k, codes, err);
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct block_codes codes;
    const struct shape *table = &c->in[CODES]->shape, *index = &c->in[INDICES]->shape;
    if (c->in[CODES]->dtype != DTYPE_U8 || table->rank != 2 || c->in[SCALES]->shape.rank != 2)
        return UNSUPPORTED(err, "GatherBlockQuantized of %s with rank %d; matrices of u8 are",
                           dtype_name(c->in[CODES]->dtype), table->rank);
    int64_t across = node_int(c->node, "quantize_axis", 1);
    if (node_int(c->node, "gather_axis", 0) != 0 || (across != 1 && across != -1))
        return UNSUPPORTED(err, "GatherBlockQuantized along other axes than rows of blocks");
    TRY(codes_of(c->node, table, &codes, err));
    if (codes.k % codes.block)
        return UNSUPPORTED(err, "GatherBlockQuantized of rows that end within a block");
    TRY(block_codes_check(&codes, c, SCALES, ZEROS, err));
    struct shape y = *index;
    if (y.rank == RANK_MAX)
        return UNSUPPORTED(err, "a result of rank %d; at most %d is supported", y.rank + 1,
                           RANK_MAX);
    y.dim[y.rank++] = codes.k;
    infer_set(c, 0, c->in[SCALES]->dtype, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    cost->elementwise = 2 * (double)shape_count(&c->out[0]->shape);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct block_codes codes;
    struct block_code_tensors in = {call->in[CODES], call->in[SCALES],
                                    call->in_count > ZEROS ? call->in[ZEROS] : NULL};
    const struct ref_tensor *index = call->in[INDICES];
    double *y = call->out[0]->f;
    TRY(codes_of(call->node, &call->in[CODES]->shape, &codes, err));
    for (int64_t i = 0; i < index->count; i++) {
        int64_t row;
        TRY(index_wrap(call->node, index->i[i], codes.rows, &row, err));
        for (int64_t k = 0; k < codes.k; k++)
            *y++ = block_codes_value(&codes, &in, row, k);
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "nibbles",
     .inputs = "u8[50,32]{0:256}! i64[2,3]{0:50} f32[50,2]!",
     .attrs = "bits=4 block_size=32 gather_axis=0 quantize_axis=1"},
    {.name = "bytes",
     .inputs = "u8[9,96]{0:256}! i32[7]{0:9} f32[9,3]!",
     .attrs = "bits=8 block_size=32 quantize_axis=1"},
    {.name = "blocks_of_16",
     .inputs = "u8[20,24]{0:256}! i64[5]{-20:20} f32[20,3]!",
     .attrs = "bits=4 block_size=16 quantize_axis=-1"},
    {.name = "blocks_of_128",
     .inputs = "u8[30,128]{0:256}! i64[1,70]{0:30} f32[30,2]!",
     .attrs = "quantize_axis=1"},
    {.name = "zero_points",
     .inputs = "u8[12,48]{0:256}! i64[6]{0:12} f32[12,3]! u8[12,2]{0:256}!",
     .attrs = "bits=4 block_size=32 quantize_axis=1"},
    {.name = "zero_points_of_bytes",
     .inputs = "u8[12,64]{0:256} i64[6]{0:12} f32[12,2] u8[12,2]{0:256}",
     .attrs = "bits=8 block_size=32 quantize_axis=1"},
    {.name = "scalar",
     .inputs = "u8[10,16]{0:256}! i64[]=7 f32[10,1]!",
     .attrs = "bits=4 block_size=32 quantize_axis=1"},
};

REGISTER(op, gather_block_quantized) = {
    .name = "GatherBlockQuantized",
    .domain = "com.microsoft",
    .inputs_min = 3,
    .inputs_max = 4,
    .int_inputs = 1u << INDICES,
    .buffers = 1u << SCALES | 1u << ZEROS,
    .packed_inputs = 1u << CODES,
    .attrs = attrs,
    .narrow = NARROW_MATH,
    .indices = INDICES_EITHER_WAY,
    .reads = READS_ROWS,
    .row_inputs = 1u << SCALES | 1u << ZEROS,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "quantised networks are not trained",
    OP_CASES(cases),
};
