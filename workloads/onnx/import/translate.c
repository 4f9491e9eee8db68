/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators as older versions of the operator set meant them, turned into what engine/ops computes.
 * Most differences need no work here: operators take a list from an attribute or from an input. */
#include <string.h>

#include "workloads/onnx/import/import.h"

typedef enum status translation(struct importer *im, struct draft *d, struct error *err);

struct rule {
    const char *const *ops; /* NULL-terminated */
    int64_t below;          /* applies to opsets before this */
    translation *apply;
};

/* Before 13 the axes from `axis` (default 1) on were one. */
static enum status join_axes(struct importer *im, struct draft *d, struct error *err)
{
    (void)im;
    (void)err;
    if (!draft_attr(d, "axis"))
        draft_add_attr(d, attr_int("axis", 1));
    draft_add_attr(d, attr_int("flatten", 1));
    return STATUS_OK;
}

/* Input 1 gets dimensions of size 1 after its own until its axis 0 is input 0's `axis`. */
static enum status align_operand(struct importer *im, struct draft *d, int axis, struct error *err)
{
    int64_t axes[RANK_MAX];
    int rank = im->g->values[d->inputs[0]].shape.rank, own = im->g->values[d->inputs[1]].shape.rank;
    int count = rank - axis - own;
    if (axis < 0 || count < 0)
        return FAIL(err, STATUS_FAILED, "axis %d does not place an operand of rank %d in rank %d",
                    axis, own, rank);
    if (count == 0)
        return STATUS_OK;
    for (int k = 0; k < count; k++)
        axes[k] = own + k;
    int list = graph_const_i64(im->g, count, axes);
    d->inputs[1] = add_node(im, "Unsqueeze", INPUTS(d->inputs[1], list), NO_ATTRS);
    return graph_failed(im->g, err);
}

/* Before 7 broadcasting had to be asked for, with the place of the smaller operand. */
static enum status explicit_broadcast(struct importer *im, struct draft *d, struct error *err)
{
    const struct attr *broadcast = draft_attr(d, "broadcast"), *axis = draft_attr(d, "axis");
    bool wanted = broadcast && broadcast->i, placed = axis != NULL;
    int64_t at = placed ? axis->i : 0;
    draft_drop_attr(d, "broadcast");
    draft_drop_attr(d, "axis");
    if (!wanted || !placed || d->input_count < 2 || d->inputs[0] == NONE || d->inputs[1] == NONE)
        return STATUS_OK;
    const struct shape *shape = &im->g->values[d->inputs[0]].shape;
    return align_operand(im, d, shape_axis(shape, at), err);
}

/* Before 7 the slope was one per channel, whatever the rank. */
static enum status slope_per_channel(struct importer *im, struct draft *d, struct error *err)
{
    if (d->input_count < 2 || d->inputs[0] == NONE || d->inputs[1] == NONE)
        return STATUS_OK;
    const struct shape *slope = &im->g->values[d->inputs[1]].shape;
    bool lies_behind = slope->rank == 1 && slope->dim[0] > 1;
    return lies_behind ? align_operand(im, d, 1, err) : STATUS_OK;
}

/* Before 14 outputs beyond the first belonged to training. */
static enum status only_inference(struct importer *im, struct draft *d, struct error *err)
{
    (void)im;
    (void)err;
    draft_drop_attr(d, "is_test");
    draft_drop_attr(d, "consumed_inputs");
    d->output_count = 1;
    return STATUS_OK;
}

static enum status drop_test_flag(struct importer *im, struct draft *d, struct error *err)
{
    (void)im;
    (void)err;
    draft_drop_attr(d, "is_test");
    return STATUS_OK;
}

/* Gemm and recurrent cells said in attributes what is now always so. */
static enum status drop_switches(struct importer *im, struct draft *d, struct error *err)
{
    (void)im;
    (void)err;
    draft_drop_attr(d, "broadcast");
    draft_drop_attr(d, "output_sequence");
    return STATUS_OK;
}

/* Version 16 brought the attribute, and another default than what had been done. */
static enum status old_roi_align(struct importer *im, struct draft *d, struct error *err)
{
    (void)im;
    (void)err;
    if (!draft_attr(d, "coordinate_transformation_mode"))
        draft_add_attr(d, attr_string("coordinate_transformation_mode", "output_half_pixel"));
    return STATUS_OK;
}

static enum status drop_consumed(struct importer *im, struct draft *d, struct error *err)
{
    (void)im;
    (void)err;
    draft_drop_attr(d, "consumed_inputs");
    return STATUS_OK;
}

/* Before 4 the axis could be left out. */
static enum status concat_axis(struct importer *im, struct draft *d, struct error *err)
{
    (void)im;
    (void)err;
    if (!draft_attr(d, "axis"))
        draft_add_attr(d, attr_int("axis", 1));
    return STATUS_OK;
}

#define NAMES(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static const struct rule rules[] = {
    {NAMES("Softmax", "LogSoftmax", "Hardmax"), 13, join_axes},
    {NAMES("Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Greater", "Less", "Pow"), 7,
     explicit_broadcast},
    {NAMES("PRelu"), 7, slope_per_channel},
    {NAMES("BatchNormalization"), 14, only_inference},
    {NAMES("Dropout"), 7, drop_test_flag},
    {NAMES("Gemm", "RNN", "GRU", "LSTM"), 7, drop_switches},
    {NAMES("RoiAlign"), 16, old_roi_align},
    {NAMES("Concat"), 4, concat_axis},
    {NULL, 6, drop_consumed},
};

static bool is_about(const struct rule *rule, const char *op)
{
    for (const char *const *name = rule->ops; name && *name; name++)
        if (strcmp(*name, op) == 0)
            return true;
    return !rule->ops;
}

enum status translate_draft(struct importer *im, struct draft *d, struct error *err)
{
    for (int k = 0; k < ARRAY_COUNT(rules); k++)
        if (d->opset < rules[k].below && is_about(&rules[k], d->op))
            TRY(rules[k].apply(im, d, err));
    return STATUS_OK;
}
