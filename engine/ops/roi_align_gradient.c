/* SPDX-License-Identifier: Apache-2.0
 * RoiAlignGradient: the gradient of a loss by the map that RoiAlign (mode "avg") took regions of,
 * of that by the regions' contents, which is input 0: each sample gives to the elements round it
 * what it took of them. Further inputs and attributes are those of RoiAlign; output_shape is the
 * map's shape. */
#include "engine/ops/family/roi_align.h"

static const char *const attrs[] = {"mode",
                                    "output_height",
                                    "output_width",
                                    "output_shape",
                                    "sampling_ratio",
                                    "spatial_scale",
                                    "coordinate_transformation_mode",
                                    NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *dy = &c->in[0]->shape, *rois = &c->in[1]->shape;
    struct shape x = {.rank = 4};
    struct roi_align r;
    char text_dy[96], text_rois[96];
    if (node_ints(c->node, "output_shape", x.dim, 4) != 4)
        return FAIL(err, STATUS_FAILED, "RoiAlignGradient: output_shape must have 4 sizes");
    TRY(roi_align_settings(c->node, &x, &r, err));
    struct shape y = shape_of(rois->dim[0], x.dim[1], r.out_height, r.out_width);
    if (rois->rank != 2 || rois->dim[1] != 4 || !shape_equal(dy, &y) ||
        shape_count(&c->in[2]->shape) != rois->dim[0])
        return FAIL(err, STATUS_FAILED,
                    "RoiAlignGradient: gradient %s and regions %s do not go together",
                    shape_text(dy, text_dy), shape_text(rois, text_rois));
    if (r.max)
        return UNSUPPORTED(err, "RoiAlignGradient of mode \"max\"");
    infer_set(c, 0, c->in[0]->dtype, &x);
    return STATUS_OK;
}

static void spread_sample(const struct roi_align *r, double y, double x, double part, double *plane)
{
    struct roi_pair rows, columns;
    if (!roi_pair_at(y, r->height, &rows) || !roi_pair_at(x, r->width, &columns))
        return;
    for (int k = 0; k < 4; k++)
        plane[rows.at[k / 2] * r->width + columns.at[k % 2]] +=
            rows.weight[k / 2] * columns.weight[k % 2] * part;
}

static void spread_element(const struct roi_align *r, const struct roi_side *rows,
                           const struct roi_side *columns, int64_t at, double dy, double *plane)
{
    int64_t count = rows->grid * columns->grid;
    for (int64_t k = 0; k < count; k++)
        spread_sample(r, roi_sample(rows, at / r->out_width, k / columns->grid),
                      roi_sample(columns, at % r->out_width, k % columns->grid), dy / (double)count,
                      plane);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *dy = call->in[0], *rois = call->in[1], *dx = call->out[0];
    struct roi_align r;
    TRY(roi_align_settings(call->node, &dx->shape, &r, err));
    int64_t channels = dx->shape.dim[1], places = r.out_height * r.out_width;
    for (int64_t n = 0; n < rois->shape.dim[0]; n++) {
        const double *box = rois->f + n * 4;
        int64_t image = call->in[2]->i[n];
        if (image < 0 || image >= dx->shape.dim[0])
            return FAIL(err, STATUS_FAILED, "region %lld is of image %lld of %lld", (long long)n,
                        (long long)image, (long long)dx->shape.dim[0]);
        struct roi_side columns = roi_side_of(&r, box[0], box[2], r.out_width);
        struct roi_side rows = roi_side_of(&r, box[1], box[3], r.out_height);
        for (int64_t k = 0; k < channels * places; k++)
            spread_element(&r, &rows, &columns, k % places, dy->f[n * channels * places + k],
                           dx->f + (image * channels + k / places) * r.height * r.width);
    }
    return STATUS_OK;
}

/* Of each sample four weighted additions; samples are counted as RoiAlign does. */
static void cost(const struct infer *c, struct cost *cost)
{
    int64_t ratio = node_int(c->node, "sampling_ratio", 0);
    double samples = ratio ? (double)(ratio * ratio) : 4;
    cost->elementwise += 8 * samples * (double)shape_count(&c->in[0]->shape);
}

static const struct op_case cases[] = {
    {.name = "mean",
     .inputs = "f32[3,3,3,4] f32[3,4]=0,0,9,9,2,3,7,5,-1,4,12,11 i64[3]=0,1,1",
     .attrs = "output_shape=[2,3,10,12] output_height=3 output_width=4 sampling_ratio=2 "
              "spatial_scale=0.9"},
    {.name = "adaptive",
     .inputs = "f32[2,2,2,2] f32[2,4]=1,1,30,25,4,4,4.5,4.5 i64[2]=0",
     .attrs = "output_shape=[1,2,8,8] output_height=2 output_width=2 spatial_scale=0.25 "
              "coordinate_transformation_mode=\"output_half_pixel\""},
    {.name = "channels",
     .inputs = "f32[3,70,2,3] f32[3,4]=1,0,6,7,-3,-2,4,30,0.5,8.2,8.6,8.9 i64[3]=1,0,1",
     .attrs = "output_shape=[2,70,9,9] output_height=2 output_width=3 sampling_ratio=2"},
    {.name = "image_without_regions",
     .inputs = "f32[2,18,2,2] f32[2,4]=0,0,6,5,2,1,7,3 i64[2]=2,0",
     .attrs = "output_shape=[3,18,7,8] output_height=2 output_width=2 sampling_ratio=1"},
};

REGISTER(op, roi_align_gradient) = {
    .name = "RoiAlignGradient",
    .domain = "ridge",
    .inputs_min = 3,
    .int_inputs = 1u << 2,
    .attrs = attrs,
    .layout = LAYOUT_RULE_AXIS,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
