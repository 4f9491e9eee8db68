/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes, counts and places that a file gives as numbers. Shape rules add and multiply them freely;
 * here is made sure that they may. */
#include <math.h>
#include <string.h>

#include "workloads/onnx/import/import.h"

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words && strcmp(*words, word) != 0)
        words++;
    return *words;
}

/* Exporters write the largest and smallest numbers for "to the end". */
static bool means_the_end(int64_t number)
{
    return number > INT64_MAX - 2 || number < INT64_MIN + 2;
}

static bool is_sane(int64_t number, bool place)
{
    return (number <= ONNX_SIZE_MAX && number >= -ONNX_SIZE_MAX) ||
           (place && means_the_end(number));
}

static enum status check_attr(const struct attr *attr, struct error *err)
{
    static const char *const places[] = {"start", "starts", "end", "ends", NULL};
    bool place = is_one_of(attr->name, places);
    if (attr->kind == ATTR_INT && !is_sane(attr->i, place))
        return FAIL(err, STATUS_FAILED, "attribute \"%s\" has the value %lld", attr->name,
                    (long long)attr->i);
    if (attr->kind == ATTR_INTS)
        for (int k = 0; k < attr->count; k++)
            if (!is_sane(attr->ints[k], place))
                return FAIL(err, STATUS_FAILED, "attribute \"%s\" has the element %lld", attr->name,
                            (long long)attr->ints[k]);
    if (attr->kind == ATTR_FLOATS)
        for (int k = 0; k < attr->count; k++)
            if (strcmp(attr->name, "scales") == 0 &&
                !(fabs(attr->floats[k]) <= (double)ONNX_SIZE_MAX))
                return FAIL(err, STATUS_FAILED, "attribute \"%s\" has the element %g", attr->name,
                            attr->floats[k]);
    return STATUS_OK;
}

/* Input k of the draft as if some operator inferred a shape from it. */
static enum status read_ints(const struct value *value, int64_t *at, int max, int *count)
{
    struct error ignored;
    struct infer c = {.in = &value, .in_count = 1};
    return infer_ints(&c, 0, at, max, count, &ignored);
}

static enum status check_ints(const struct draft *d, int input, const struct value *value,
                              struct error *err)
{
    enum { COUNT_MAX = 256 };
    static const char *const shapes[] = {"Reshape", "Expand", "ConstantOfShape",
                                         "Tile",    "Resize", NULL};
    int64_t at[COUNT_MAX];
    int count;
    double product = 1;
    if (read_ints(value, at, COUNT_MAX, &count) != STATUS_OK)
        return STATUS_OK; /* the operator will say so */
    for (int k = 0; k < count; k++) {
        if (!is_sane(at[k], strcmp(d->op, "Slice") == 0))
            return FAIL(err, STATUS_FAILED, "element %d of input %d is %lld", k, input,
                        (long long)at[k]);
        product *= at[k] ? fabs((double)at[k]) : 1;
    }
    if (is_one_of(d->op, shapes) && product > (double)ONNX_ELEMENTS_MAX)
        return FAIL(err, STATUS_FAILED,
                    "input %d asks for %.4g elements, which take %.4g GB in f32; a tensor has at "
                    "most %.3g",
                    input, product, product * 4e-9, (double)ONNX_ELEMENTS_MAX);
    return STATUS_OK;
}

static enum status check_floats(int input, const struct value *value, struct error *err)
{
    enum { COUNT_MAX = 64 };
    double at[COUNT_MAX];
    int count;
    struct error ignored;
    struct infer c = {.in = &value, .in_count = 1};
    if (infer_floats(&c, 0, at, COUNT_MAX, &count, &ignored) != STATUS_OK)
        return STATUS_OK;
    for (int k = 0; k < count; k++)
        if (!(fabs(at[k]) <= (double)ONNX_SIZE_MAX))
            return FAIL(err, STATUS_FAILED, "element %d of input %d is %g", k, input, at[k]);
    return STATUS_OK;
}

enum status check_draft_numbers(const struct graph *g, const struct draft *d, struct error *err)
{
    if (strcmp(d->op, "Constant") == 0)
        return STATUS_OK; /* data */
    for (int k = 0; k < d->attr_count; k++)
        TRY(check_attr(&d->attrs[k], err));
    for (int k = 0; k < d->input_count && k < 32; k++) {
        const struct value *value = d->inputs[k] == NONE ? NULL : &g->values[d->inputs[k]];
        if (!(d->known->const_inputs >> k & 1) || !value || !value->data)
            continue;
        TRY(dtype_is_float(value->dtype) ? check_floats(k, value, err)
                                         : check_ints(d, k, value, err));
    }
    return STATUS_OK;
}
