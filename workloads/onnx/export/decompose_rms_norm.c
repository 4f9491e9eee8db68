/* SPDX-License-Identifier: Apache-2.0
 *
 * RMSNormalization in ONNX before opset 23: x / sqrt(mean x^2 + epsilon), in f32 whatever x is,
 * times the scale. */
#include "engine/graph/op_list.h"
#include "workloads/onnx/export/parts.h"

enum { ONNX_FLOAT = 1 };

static const char *as_float(struct parts *p, const char *x, enum dtype dtype)
{
    bool narrow = dtype != DTYPE_F32 && dtype != DTYPE_F64;
    return narrow ? part(p, op_cast.name, NAMES(x), ATTRS(attr_int("to", ONNX_FLOAT))) : x;
}

static const char *number(struct parts *p, enum dtype dtype, double value)
{
    struct shape scalar = shape_scalar();
    float single = (float)value;
    return dtype == DTYPE_F64 ? part_const(p, DTYPE_F64, &scalar, &value)
                              : part_const(p, DTYPE_F32, &scalar, &single);
}

enum status export_rms_normalization(const struct form *f, struct error *err)
{
    struct parts p = {.form = f, .err = err};
    const struct value *value = &f->x->g->values[f->node->inputs[0]];
    int axis = shape_axis(&value->shape, node_int(f->node, "axis", -1)), rank = value->shape.rank;
    int64_t axes[RANK_MAX];
    for (int k = axis; k < rank; k++)
        axes[k - axis] = k;
    const char *x = as_float(&p, f->inputs[0], value->dtype);
    const char *mean =
        part(&p, op_reduce_mean.name, NAMES(part(&p, op_mul.name, NAMES(x, x), NO_ATTRS)),
             ATTRS(attr_ints("axes", rank - axis, axes)));
    const char *epsilon = number(&p, value->dtype, node_float(f->node, "epsilon", 1e-5));
    const char *root = part(&p, op_sqrt.name,
                            NAMES(part(&p, op_add.name, NAMES(mean, epsilon), NO_ATTRS)), NO_ATTRS);
    const char *y = part(&p, op_div.name, NAMES(x, root), NO_ATTRS);
    if (x != f->inputs[0])
        y = part(&p, op_cast_like.name, NAMES(y, f->inputs[0]), NO_ATTRS);
    part_last(&p, 0, op_mul.name, 2, (const char *[]){y, f->inputs[1]}, NO_ATTRS);
    return p.status;
}
