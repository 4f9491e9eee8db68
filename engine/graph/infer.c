/* SPDX-License-Identifier: Apache-2.0
 *
 * What shape rules are written with. Apart from the list of operators because plug-ins link it. */
#include "engine/graph/op.h"

bool infer_has(const struct infer *c, int input)
{
    return input < c->in_count && c->in[input];
}

void infer_set(const struct infer *c, int output, enum dtype dtype, const struct shape *shape)
{
    if (output >= c->out_count || !c->out[output])
        return;
    c->out[output]->dtype = dtype;
    c->out[output]->shape = *shape;
}

static enum status known(const struct infer *c, int input, int max, int *count, struct error *err)
{
    if (!infer_has(c, input))
        return FAIL(err, STATUS_FAILED, "input %d is missing", input);
    const struct value *value = c->in[input];
    int64_t size = shape_count(&value->shape);
    if (!value_is_fixed(value) || !value->data)
        return UNSUPPORTED(err,
                           "the contents of input %d (\"%s\") decide a shape but are not known "
                           "before the run",
                           input, value->name);
    if (size > max)
        return FAIL(err, STATUS_FAILED, "input %d has %lld elements, at most %d make sense", input,
                    (long long)size, max);
    *count = (int)size;
    return STATUS_OK;
}

enum status infer_ints(const struct infer *c, int input, int64_t *values, int max, int *count,
                       struct error *err)
{
    TRY(known(c, input, max, count, err));
    const struct value *value = c->in[input];
    for (int k = 0; k < *count; k++) {
        switch (value->dtype) {
        case DTYPE_I64:
            values[k] = ((const int64_t *)value->data)[k];
            break;
        case DTYPE_I32:
            values[k] = ((const int32_t *)value->data)[k];
            break;
        case DTYPE_U8:
        case DTYPE_BOOL:
            values[k] = ((const uint8_t *)value->data)[k];
            break;
        default:
            return UNSUPPORTED(err, "input %d must be i64 or i32, not %s", input,
                               dtype_name(value->dtype));
        }
    }
    return STATUS_OK;
}

enum status infer_floats(const struct infer *c, int input, double *values, int max, int *count,
                         struct error *err)
{
    TRY(known(c, input, max, count, err));
    const struct value *value = c->in[input];
    int64_t ints[64];
    for (int k = 0; k < *count; k++) {
        switch (value->dtype) {
        case DTYPE_F32:
            values[k] = (double)((const float *)value->data)[k];
            break;
        case DTYPE_F64:
            values[k] = ((const double *)value->data)[k];
            break;
        case DTYPE_F16:
            values[k] = (double)half_to_float(((const uint16_t *)value->data)[k]);
            break;
        case DTYPE_BF16:
            values[k] = (double)bfloat_to_float(((const uint16_t *)value->data)[k]);
            break;
        case DTYPE_F8E4M3:
            values[k] = (double)f8_to_float(((const uint8_t *)value->data)[k]);
            break;
        default:
            TRY(infer_ints(c, input, ints, max < 64 ? max : 64, count, err));
            for (int i = 0; i < *count; i++)
                values[i] = (double)ints[i];
            return STATUS_OK;
        }
    }
    return STATUS_OK;
}

enum status infer_same(const struct infer *c, struct error *err)
{
    (void)err;
    infer_set(c, 0, c->in[0]->dtype, &c->in[0]->shape);
    return STATUS_OK;
}

static enum status broadcast_all(const struct infer *c, struct shape *shape, struct error *err)
{
    *shape = c->in[0]->shape;
    for (int k = 1; k < c->in_count; k++) {
        char a[96], b[96];
        if (!shape_broadcast(shape, &c->in[k]->shape, shape))
            return FAIL(err, STATUS_FAILED, "shapes %s and %s do not broadcast",
                        shape_text(shape, a), shape_text(&c->in[k]->shape, b));
        if (c->in[k]->dtype != c->in[0]->dtype)
            return FAIL(err, STATUS_FAILED, "input 0 is %s but input %d is %s",
                        dtype_name(c->in[0]->dtype), k, dtype_name(c->in[k]->dtype));
    }
    return STATUS_OK;
}

enum status infer_broadcast(const struct infer *c, struct error *err)
{
    struct shape shape;
    TRY(broadcast_all(c, &shape, err));
    infer_set(c, 0, c->in[0]->dtype, &shape);
    return STATUS_OK;
}

enum status infer_compare(const struct infer *c, struct error *err)
{
    struct shape shape;
    TRY(broadcast_all(c, &shape, err));
    infer_set(c, 0, DTYPE_BOOL, &shape);
    return STATUS_OK;
}
