/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/quantize.h"

#include <math.h>
#include <stdlib.h>

#include "base/numbers/integers.h"
#include "engine/graph/op_list.h"

bool quantize_is_rounding(const struct op *op)
{
    return op == &op_quantize_linear || op == &op_dynamic_quantize_linear ||
           op == &op_q_linear_conv || op == &op_q_linear_mat_mul;
}

int64_t quantize_saturate(enum dtype dtype, double value)
{
    int bits = (int)dtype_size(dtype) * 8;
    double span = ldexp(1, bits), low = dtype_is_unsigned(dtype) ? 0 : -span / 2;
    double high = low + span - 1, rounded = rint(value);
    return (int64_t)(rounded < low ? low : rounded > high ? high : isnan(rounded) ? 0 : rounded);
}

double quantize_number(enum dtype dtype, double x, double scale, double zero_point)
{
    float quotient = (float)x / (float)scale;
    if (dtype_is_float(dtype))
        return (double)f8_to_float(f8_from_float(quotient));
    return (double)quantize_saturate(dtype, rint((double)quotient) + zero_point);
}

void quantize_range(const struct ref_tensor *x, double *scale, double *zero_point)
{
    float low = 0, high = 0;
    for (int64_t i = 0; i < x->count; i++) {
        low = fminf(low, (float)x->f[i]);
        high = fmaxf(high, (float)x->f[i]);
    }
    float unit = high == low ? 1 : (high - low) / 255;
    *scale = (double)unit;
    *zero_point = (double)quantize_saturate(DTYPE_U8, (double)(-low / unit));
}

int64_t quantize_index(const struct shape *x, int64_t i, const struct shape *parameter, int axis)
{
    if (shape_count(parameter) == 1)
        return 0;
    if (parameter->rank != 1)
        return ref_broadcast_index(x, i, parameter);
    int at = axis < 0 ? axis + x->rank : axis;
    return i / shape_span(x, at + 1, x->rank) % x->dim[at];
}

static bool fits(const struct shape *x, const struct shape *parameter, int axis)
{
    struct shape both;
    if (shape_count(parameter) == 1)
        return true;
    int at = shape_axis(x, axis);
    if (parameter->rank == 1)
        return at >= 0 && parameter->dim[0] == x->dim[at];
    return shape_broadcast(x, parameter, &both) && shape_equal(x, &both);
}

enum status quantize_check(const struct infer *c, const struct shape *x, int k, int axis,
                           struct error *err)
{
    char text[96], text_x[96];
    if (!infer_has(c, k) || fits(x, &c->in[k]->shape, axis))
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "%s: input %d, a scale or zero point %s, does not fit %s",
                c->node->op->name, k, shape_text(&c->in[k]->shape, text), shape_text(x, text_x));
}

double *quantize_centred(const struct ref_tensor *x, const struct ref_tensor *zero_point, int axis)
{
    double *centred = malloc((size_t)x->count * sizeof(*centred) + 1);
    for (int64_t i = 0; centred && i < x->count; i++) {
        centred[i] = ref_get(x, i);
        if (zero_point)
            centred[i] -=
                ref_get(zero_point, quantize_index(&x->shape, i, &zero_point->shape, axis));
    }
    return centred;
}

enum status quantize_scales_from(const struct node *node, const struct shape *x,
                                 const struct shape *scale, struct quantize_scales *scales,
                                 struct error *err)
{
    int64_t wanted = node_int(node, "axis", 1), block = node_int(node, "block_size", 0);
    *scales = (struct quantize_scales){.x = *x, .count = shape_count(scale)};
    if (scales->count == 1 && scale->rank < 2)
        return STATUS_OK;
    scales->axis = shape_axis(x, wanted);
    char text[96], text_x[96];
    bool per_axis = scale->rank == 1 && scales->axis >= 0 && scale->dim[0] == x->dim[scales->axis];
    if (per_axis)
        return STATUS_OK;
    bool blocked = scales->axis >= 0 && scale->rank == x->rank;
    for (int k = 0; blocked && k < x->rank; k++)
        blocked = k == scales->axis ? scale->dim[k] > 0 : scale->dim[k] == x->dim[k];
    if (!blocked)
        return FAIL(err, STATUS_FAILED, "%s: scale %s does not fit input %s and axis %lld",
                    node->op->name, shape_text(scale, text), shape_text(x, text_x),
                    (long long)wanted);
    int64_t size = x->dim[scales->axis], parts = scale->dim[scales->axis];
    scales->block = block ? block : divide_up(size, parts);
    if (scales->block < 1 || divide_up(size, scales->block) != parts)
        return FAIL(err, STATUS_FAILED, "%s: %lld blocks of %lld do not make %lld elements",
                    node->op->name, (long long)parts, (long long)scales->block, (long long)size);
    return STATUS_OK;
}

enum status quantize_check_scales(const struct infer *c, struct error *err)
{
    struct quantize_scales scales;
    char text[96], text_scale[96];
    const struct shape *scale = &c->in[1]->shape;
    TRY(quantize_scales_from(c->node, &c->in[0]->shape, scale, &scales, err));
    if (!infer_has(c, 2) || shape_count(&c->in[2]->shape) == scales.count)
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "%s: zero point %s does not fit scale %s", c->node->op->name,
                shape_text(&c->in[2]->shape, text), shape_text(scale, text_scale));
}

int64_t quantize_scales_index(const struct quantize_scales *scales, int64_t i)
{
    if (scales->count == 1)
        return 0;
    const struct shape *x = &scales->x;
    int64_t inner = shape_span(x, scales->axis + 1, x->rank), size = x->dim[scales->axis];
    if (!scales->block)
        return i / inner % size;
    int64_t parts = divide_up(size, scales->block);
    return (i / inner / size * parts + i / inner % size / scales->block) * inner + i % inner;
}
