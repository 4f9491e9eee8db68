/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/rescale.h"

#include <float.h>
#include <math.h>

#include "engine/ops/family/quantize.h"
#include "engine/ops/lib/op_args.h"

enum { X, WEIGHTS, SCALE, OFFSET };

enum dtype rescale_type(const struct node *node)
{
    return dtype_from_onnx(node_int(node, "to", 0));
}

static bool is_byte(enum dtype type)
{
    return type == DTYPE_U8 || type == DTYPE_I8;
}

enum status rescale_check(const struct infer *c, int64_t channels, struct error *err)
{
    const char *op = c->node->op->name;
    enum dtype to = rescale_type(c->node);
    for (int k = X; k <= WEIGHTS; k++)
        if (!is_byte(c->in[k]->dtype))
            return FAIL(err, STATUS_FAILED, "%s of %s", op, dtype_name(c->in[k]->dtype));
    if (to != DTYPE_F32 && !is_byte(to))
        return FAIL(err, STATUS_FAILED, "%s to %s", op, dtype_name(to));
    for (int k = SCALE; channels && k <= OFFSET; k++)
        if (c->in[k]->dtype != DTYPE_F32 || shape_count(&c->in[k]->shape) != channels)
            return FAIL(err, STATUS_FAILED, "%s: input %d is not one f32 for each of %lld channels",
                        op, k, (long long)channels);
    return STATUS_OK;
}

struct rescale rescale_of(const struct node *node)
{
    struct rescale r = {.low = (float)node_float(node, "low", -(double)FLT_MAX),
                        .high = (float)node_float(node, "high", (double)FLT_MAX),
                        .zero = (int32_t)node_int(node, "zero", 0),
                        .x_zero = (int32_t)node_int(node, "x_zero", 0),
                        .w_zero = (int32_t)node_int(node, "w_zero", 0),
                        .to = rescale_type(node)};
    if (is_byte(r.to)) {
        int32_t least = r.to == DTYPE_U8 ? 0 : INT8_MIN, most = r.to == DTYPE_U8 ? 255 : INT8_MAX;
        r.low = fmaxf(r.low, (float)(least - r.zero));
        r.high = fminf(r.high, (float)(most - r.zero));
    }
    return r;
}

double *rescale_centred(const struct ref_call *call, int input)
{
    struct rescale r = rescale_of(call->node);
    int64_t zero = input == X ? r.x_zero : r.w_zero;
    struct ref_tensor zero_point = {.dtype = DTYPE_I32, .count = 1, .i = &zero};
    return quantize_centred(call->in[input], &zero_point, 0);
}

void rescale_put(const struct rescale *r, float value, const struct ref_tensor *y, int64_t i)
{
    value = fminf(fmaxf(value, r->low), r->high);
    if (y->f)
        y->f[i] = (double)value;
    else
        y->i[i] = (int64_t)rintf(value) + r->zero;
}

void rescale_sums(const struct ref_call *call, const double *sums, int64_t inner)
{
    const struct ref_tensor *scale = call->in[SCALE], *offset = call->in[OFFSET];
    const struct ref_tensor *y = call->out[0];
    struct rescale r = rescale_of(call->node);
    for (int64_t i = 0; i < y->count; i++) {
        int64_t channel = i / inner % scale->count;
        float scaled = (float)sums[i] * (float)scale->f[channel];
        rescale_put(&r, scaled + (float)offset->f[channel], y, i);
    }
}
