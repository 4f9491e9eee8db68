/* SPDX-License-Identifier: Apache-2.0
 *
 * Inference: the identity, with a mask of all true. Before opset 12 ratio is an attribute and there
 * is no training; later training_mode (input 2) must be known to be false, or the ratio to be 0. */
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/op_unary.h"

static enum status check_mode(const struct infer *c, struct error *err)
{
    double ratio = 0.5;
    int64_t training;
    int count;
    if (!infer_has(c, 2))
        return STATUS_OK;
    TRY(infer_ints(c, 2, &training, 1, &count, err));
    if (count == 1 && !training)
        return STATUS_OK;
    if (infer_has(c, 1))
        TRY(infer_floats(c, 1, &ratio, 1, &count, err));
    if (ratio != 0)
        return UNSUPPORTED(err, "Dropout with training_mode=1 and ratio %g: only inference is done",
                           ratio);
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    TRY(op_check_type(c, 0, OP_FLOAT, err));
    TRY(check_mode(c, err));
    infer_set(c, 1, DTYPE_BOOL, &c->in[0]->shape);
    return infer_same(c, err);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    (void)err;
    const struct ref_tensor *x = call->in[0];
    const struct ref_tensor *mask = call->out_count > 1 ? call->out[1] : NULL;
    for (int64_t k = 0; k < x->count; k++) {
        if (call->out[0])
            call->out[0]->f[k] = x->f[k];
        if (mask)
            mask->i[k] = 1;
    }
    return STATUS_OK;
}

static const char *const attrs[] = {"ratio", "seed", NULL};

/* The mask is no float: nobody asks for a gradient through it. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    return c->dy[0] == NONE ? STATUS_OK : gradient_of_alias(c, err);
}

static const struct op_case cases[] = {
    {.name = "plain", .inputs = "f32[2,5,3,7]"},
    {.name = "attribute", .inputs = "f32[67]", .attrs = "ratio=0.25"},
    {.name = "mask", .inputs = "f32[2,5,3,7]", .outputs = 2},
    {.name = "ratio", .inputs = "f32[67] f32[]=0.25", .outputs = 2},
    {.name = "inference", .inputs = "f32[67] f32[]=0.25 bool[]=0", .attrs = "seed=7"},
    {.name = "ratio_zero", .inputs = "f32[67] f32[]=0 bool[]=1", .outputs = 2},
    {.name = "double", .inputs = "f64[3,5]"},
};

REGISTER(op, dropout) = {
    .name = "Dropout",
    .moves_in_passing = true,
    .inputs_min = 1,
    .inputs_max = 3,
    .outputs_max = 2,
    .attrs = attrs,
    .const_inputs = 1u << 1 | 1u << 2,
    .layout = LAYOUT_RULE_ANY,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
