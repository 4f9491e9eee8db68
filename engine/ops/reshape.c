/* SPDX-License-Identifier: Apache-2.0
 * Reshape: 0 keeps a size (unless allowzero), one -1 is worked out. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"allowzero", "shape", NULL};
static const struct attr_input attr_inputs[] = {{"shape", 1, 5}, {NULL, 0, 0}};

static enum status target(const struct shape *x, const struct int_list *want, bool allow_zero,
                          struct shape *y, struct error *err)
{
    int unknown = -1;
    int64_t known = 1, total = shape_count(x);
    *y = (struct shape){.rank = want->count};
    for (int k = 0; k < want->count; k++) {
        int64_t size = want->at[k];
        if (size < -1 || (size == -1 && unknown >= 0))
            return FAIL(err, STATUS_FAILED, "size %lld at position %d of the new shape",
                        (long long)size, k);
        if (size == 0 && !allow_zero && k >= x->rank)
            return FAIL(err, STATUS_FAILED, "0 at position %d of the new shape keeps no size", k);
        if (size == 0 && !allow_zero)
            size = x->dim[k];
        if (size == -1)
            unknown = k;
        else
            known *= size;
        y->dim[k] = size;
    }
    if (unknown >= 0)
        y->dim[unknown] = known ? total / known : 0;
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct int_list want;
    struct shape y;
    const struct shape *x = &c->in[0]->shape;
    TRY(args_ints(&args, 1, "shape", &want, err));
    if (want.count < 0 || want.count > RANK_MAX)
        return UNSUPPORTED(err, "a new shape of rank %d; 0 to %d are supported", want.count,
                           RANK_MAX);
    TRY(target(x, &want, node_int(c->node, "allowzero", 0) != 0, &y, err));
    if (shape_count(&y) != shape_count(x)) {
        char a[96], b[96];
        return FAIL(err, STATUS_FAILED, "%s cannot take shape %s", shape_text(x, a),
                    shape_text(&y, b));
    }
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "merge", .inputs = "f32[2,3,4] i64[2]=6,4"},
    {.name = "unknown", .inputs = "f32[2,3,4] i64[3]=4,-1,2"},
    {.name = "keep", .inputs = "f32[2,3,4] i64[4]=0,-1,1,2"},
    {.name = "scalar", .inputs = "i32[1,1] i64[0]="},
    {.name = "empty", .inputs = "f32[0,3] i64[2]=3,0", .attrs = "allowzero=1"},
};

REGISTER(op, reshape) = {
    .name = "Reshape",
    .inputs_min = 1,
    .inputs_max = 2,
    .attrs = attrs,
    .const_inputs = 1u << 1,
    .alias = true,
    .attr_inputs = attr_inputs,
    .infer = infer,
    .move = move_flat,
    .reference = reference_move,
    .gradient = gradient_of_alias,
    OP_CASES(cases),
};
