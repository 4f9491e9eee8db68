/* SPDX-License-Identifier: Apache-2.0
 * RoiAlign (He et al., Mask R-CNN, 2017): regions of feature maps as small images of one size; each
 * element is the mean (or largest) of samples on a grid in its bin. As in ONNX Runtime, mode "max"
 * takes the largest weighted corner, not the largest interpolated sample. Before opset 16 there was
 * no coordinate_transformation_mode; the importer then sets it to "output_half_pixel". */
#include <math.h>
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/roi_align.h"

static const char *const attrs[] = {"mode",
                                    "output_height",
                                    "output_width",
                                    "sampling_ratio",
                                    "spatial_scale",
                                    "coordinate_transformation_mode",
                                    NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape, *rois = &c->in[1]->shape;
    struct roi_align r;
    if (x->rank != 4 || rois->rank != 2 || rois->dim[1] != 4 ||
        shape_count(&c->in[2]->shape) != rois->dim[0]) {
        char a[96], b[96];
        return FAIL(err, STATUS_FAILED, "RoiAlign takes [N,C,H,W] and [R,4], not %s and %s",
                    shape_text(x, a), shape_text(rois, b));
    }
    TRY(roi_align_settings(c->node, x, &r, err));
    struct shape y = shape_of(rois->dim[0], x->dim[1], r.out_height, r.out_width);
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static double sample_at(const struct roi_align *r, const double *plane, double y, double x)
{
    struct roi_pair rows, columns;
    if (!roi_pair_at(y, r->height, &rows) || !roi_pair_at(x, r->width, &columns))
        return 0;
    double sum = 0, largest = -INFINITY;
    for (int k = 0; k < 4; k++) {
        double part = rows.weight[k / 2] * columns.weight[k % 2] *
                      plane[rows.at[k / 2] * r->width + columns.at[k % 2]];
        sum += part;
        largest = part > largest ? part : largest;
    }
    return r->max ? largest : sum;
}

static double element(const struct roi_align *r, const double *plane, const struct roi_side *rows,
                      const struct roi_side *columns, int64_t at)
{
    double sum = 0, largest = -INFINITY;
    int64_t row = at / r->out_width, column = at % r->out_width;
    int64_t count = rows->grid * columns->grid;
    for (int64_t k = 0; k < count; k++) {
        int64_t i = k / columns->grid, j = k % columns->grid;
        double value =
            sample_at(r, plane, roi_sample(rows, row, i), roi_sample(columns, column, j));
        sum += value;
        largest = value > largest ? value : largest;
    }
    if (count < 1)
        return 0;
    return r->max ? largest : sum / (double)count;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *x = call->in[0], *rois = call->in[1], *y = call->out[0];
    struct roi_align r;
    TRY(roi_align_settings(call->node, &x->shape, &r, err));
    int64_t channels = x->shape.dim[1], places = r.out_height * r.out_width;
    for (int64_t n = 0; n < rois->shape.dim[0]; n++) {
        const double *box = rois->f + n * 4;
        int64_t image = call->in[2]->i[n];
        if (image < 0 || image >= x->shape.dim[0])
            return FAIL(err, STATUS_FAILED, "region %lld is of image %lld of %lld", (long long)n,
                        (long long)image, (long long)x->shape.dim[0]);
        struct roi_side columns = roi_side_of(&r, box[0], box[2], r.out_width);
        struct roi_side rows = roi_side_of(&r, box[1], box[3], r.out_height);
        for (int64_t k = 0; k < channels * places; k++) {
            const double *plane = x->f + (image * channels + k / places) * r.height * r.width;
            y->f[n * channels * places + k] = element(&r, plane, &rows, &columns, k % places);
        }
    }
    return STATUS_OK;
}

/* By the map alone: regions are proposals, through which nothing is trained. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    const struct node *node = gradient_node(c);
    struct shape x = gradient_shape(c->g, gradient_in(c, 0));
    struct attr all[ARRAY_COUNT(attrs)];
    if (!c->wanted[0])
        return STATUS_OK;
    if (strcmp(node_string(node, "mode", "avg"), "avg") != 0)
        return UNSUPPORTED(err, "mode \"max\": no network is trained with it");
    if (node->attr_count)
        memcpy(all, node->attrs, (size_t)node->attr_count * sizeof(*all));
    all[node->attr_count] = attr_ints("output_shape", x.rank, x.dim);
    c->dx[0] = graph_node(c->g, op_roi_align_gradient.name, NULL,
                          INPUTS(c->dy[0], gradient_in(c, 1), gradient_in(c, 2)),
                          node->attr_count + 1, all);
    return STATUS_OK;
}

/* A sample is one bilinear interpolation (7) and one addition; where sampling_ratio 0 leaves the
 * number of samples to the data, 2 x 2 are counted, as detectors use it. */
static void cost(const struct infer *c, struct cost *cost)
{
    int64_t ratio = node_int(c->node, "sampling_ratio", 0);
    double samples = ratio ? (double)(ratio * ratio) : 4;
    cost->elementwise += 8 * samples * (double)shape_count(&c->out[0]->shape);
}

static const struct op_case cases[] = {
    {.name = "mean",
     .inputs = "f32[2,3,10,12] f32[3,4]=0,0,9,9,2,3,7,5,-1,4,12,11 i64[3]=0,1,1",
     .attrs = "output_height=3 output_width=4 sampling_ratio=2 spatial_scale=0.9"},
    {.name = "adaptive",
     .inputs = "f32[1,2,8,8] f32[2,4]=1,1,30,25,4,4,4.5,4.5 i64[2]=0",
     .attrs = "output_height=2 output_width=2 spatial_scale=0.25 "
              "coordinate_transformation_mode=\"output_half_pixel\""},
    {.name = "channels",
     .inputs = "f32[2,70,9,9] f32[3,4]=1,0,6,7,-3,-2,4,30,0.5,8.2,8.6,8.9 i64[3]=1,0,1",
     .attrs = "output_height=2 output_width=3 sampling_ratio=2"},
    {.name = "half",
     .inputs = "f16[2,3,10,12] f16[3,4]=0,0,9,9,2,3,7,5,-1,4,12,11 i64[3]=0,1,1",
     .attrs = "output_height=3 output_width=4 sampling_ratio=2 spatial_scale=0.9"},
    {.name = "largest",
     .inputs = "f32[1,2,8,8] f32[1,4]=1,0,6,7 i64[1]=0",
     .attrs = "mode=\"max\" output_height=2 output_width=3 sampling_ratio=2"},
};

REGISTER(op, roi_align) = {
    .name = "RoiAlign",
    .narrow = NARROW_MATH,
    .narrow_inputs = 1u << 0,
    .inputs_min = 3,
    .int_inputs = 1u << 2,
    .attrs = attrs,
    .layout = LAYOUT_RULE_AXIS,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
