/* SPDX-License-Identifier: Apache-2.0
 * MeanVarianceNormalization over `axes` (default 0, 2, 3). 1e-9 is added to the deviation. */
#include <math.h>
#include <stdlib.h>

#include "engine/ops/lib/mean_variance.h"

static const char *const attrs[] = {"axes", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    bool chosen[RANK_MAX];
    TRY(mean_variance_axes(c->node, &c->in[0]->shape, chosen, err));
    return infer_same(c, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    cost->elementwise = 7 * (double)shape_count(&c->in[0]->shape);
}

static void normalise(const struct ref_call *call, int64_t base, const int64_t *offset,
                      int64_t count)
{
    const double *x = call->in[0]->f + base;
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < count; k++)
        sum += x[offset[k]];
    double mean = sum / (double)count;
    for (int64_t k = 0; k < count; k++)
        squares += (x[offset[k]] - mean) * (x[offset[k]] - mean);
    double deviation = sqrt(squares / (double)count) + 1e-9;
    for (int64_t k = 0; k < count; k++)
        call->out[0]->f[base + offset[k]] = (x[offset[k]] - mean) / deviation;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct shape *shape = &call->in[0]->shape;
    bool chosen[RANK_MAX], kept[RANK_MAX];
    TRY(mean_variance_axes(call->node, shape, chosen, err));
    for (int k = 0; k < RANK_MAX; k++)
        kept[k] = !chosen[k];
    int64_t results = 0, count = 0;
    int64_t *base = reduce_offsets(shape, kept, &results);
    int64_t *offset = reduce_offsets(shape, chosen, &count);
    bool fine = base && offset;
    for (int64_t i = 0; fine && i < results; i++)
        normalise(call, base[i], offset, count);
    free(offset);
    free(base);
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static const struct op_case cases[] = {
    {.name = "image", .inputs = "f32[2,5,7,6]"},
    {.name = "each_image", .inputs = "f32[2,5,7,6]", .attrs = "axes=[1,2,3]"},
    {.name = "middle_axes", .inputs = "f32[3,4,5,7]", .attrs = "axes=[1,2]"},
    {.name = "one_column", .inputs = "f32[3,4,21,1]", .attrs = "axes=[0,2]"},
    {.name = "far_from_0", .inputs = "f32[2,3,40,40]{1000:1001}"},
    {.name = "constant", .inputs = "f32[2,3,5,5]=0.1"},
    {.name = "one_element_each", .inputs = "f32[1,5,1,1]"},
    {.name = "long", .inputs = "f32[2,3,130,131]"},
    {.name = "not_a_number", .inputs = "f32[2,2,1,3]=nan,1,2,3,4,5,6,7,8,9,10,11"},
    {.name = "last_axis", .inputs = "f32[4,33]", .attrs = "axes=[-1]"},
};

REGISTER(op, mean_variance_normalization) = {
    .name = "MeanVarianceNormalization",
    .inputs_min = 1,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
};
