/* SPDX-License-Identifier: Apache-2.0
 * MaxRoiPoolGradient: the gradient of a loss by the map x of MaxRoiPool, of that by its result, dy:
 * each bin's part goes to its largest element, to the first of equal ones. Inputs x, regions, dy;
 * attributes are those of MaxRoiPool. */
#include "engine/ops/family/max_roi_pool.h"

static const char *const attrs[] = {"pooled_shape", "spatial_scale", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape, *rois = &c->in[1]->shape, *dy = &c->in[2]->shape;
    int64_t pooled[2] = {0, 0};
    char text_x[96], text_r[96], text_dy[96];
    node_ints(c->node, "pooled_shape", pooled, 2);
    struct shape y = shape_of(rois->dim[0], x->dim[1], pooled[0], pooled[1]);
    if (x->rank != 4 || rois->rank != 2 || rois->dim[1] != 5 || !shape_equal(&y, dy))
        return FAIL(err, STATUS_FAILED,
                    "MaxRoiPoolGradient: input %s, regions %s and gradient %s do not go together",
                    shape_text(x, text_x), shape_text(rois, text_r), shape_text(dy, text_dy));
    infer_set(c, 0, c->in[0]->dtype, x);
    return STATUS_OK;
}

/* Adds dy to the largest element of one bin of a channel. */
static void spread_bin(const struct roi_span *rows, const struct roi_span *columns, int64_t bin,
                       const double *x, double dy, double *dx)
{
    int64_t y0, y1, x0, x1, width = columns->limit;
    roi_bin_of(rows, bin / columns->bins, &y0, &y1);
    roi_bin_of(columns, bin % columns->bins, &x0, &x1);
    if (y0 >= y1 || x0 >= x1)
        return;
    int64_t best = y0 * width + x0;
    for (int64_t y = y0; y < y1; y++)
        for (int64_t k = x0; k < x1; k++)
            best = x[y * width + k] > x[best] ? y * width + k : best;
    dx[best] += dy;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *x = call->in[0], *rois = call->in[1], *dy = call->in[2];
    const int64_t *dim = x->shape.dim, *out = dy->shape.dim;
    double scale = node_float(call->node, "spatial_scale", 1);
    int64_t bins = out[2] * out[3], plane = dim[2] * dim[3];
    for (int64_t r = 0; r < out[0]; r++) {
        const double *roi = rois->f + r * 5;
        if (!(roi[0] >= 0 && roi[0] < (double)dim[0]))
            return FAIL(err, STATUS_FAILED,
                        "MaxRoiPoolGradient: region %lld is in image %g of %lld", (long long)r,
                        roi[0], (long long)dim[0]);
        int64_t image = (int64_t)roi[0];
        struct roi_span columns = roi_span_of(roi[1] * scale, roi[3] * scale, dim[3], out[3]);
        struct roi_span rows = roi_span_of(roi[2] * scale, roi[4] * scale, dim[2], out[2]);
        for (int64_t k = 0; k < dim[1] * bins; k++) {
            int64_t channel = (image * dim[1] + k / bins) * plane;
            spread_bin(&rows, &columns, k % bins, x->f + channel, dy->f[r * dim[1] * bins + k],
                       call->out[0]->f + channel);
        }
    }
    return STATUS_OK;
}

/* An addition for each element of dy. */
static void cost(const struct infer *c, struct cost *cost)
{
    cost->elementwise = (double)shape_count(&c->in[2]->shape);
}

static const struct op_case cases[] = {
    {.name = "three_regions",
     .inputs = "f32[2,5,12,16] f32[3,5]=0,1,1,8,8,1,0,3,15,10,1,5,5,5,5 f32[3,5,7,7]",
     .attrs = "pooled_shape=[7,7]"},
    {.name = "scaled",
     .inputs = "f32[1,3,14,14] f32[2,5]=0,10,20,200,180,0,64,64,223,100 f32[2,3,3,4]",
     .attrs = "pooled_shape=[3,4] spatial_scale=0.0625"},
    {.name = "channels",
     .inputs = "f32[2,70,9,11] f32[4,5]=0,1,0,6,7,1,0,0,10,8,1,3,2,4.4,2.6,0,8,8,30,20 "
               "f32[4,70,3,3]",
     .attrs = "pooled_shape=[3,3] spatial_scale=0.9"},
    {.name = "first_of_equal_ones",
     .inputs = "f32[1,3,8,8]=1 f32[1,5]=0,1,1,6,6 f32[1,3,2,2]",
     .attrs = "pooled_shape=[2,2]"},
    {.name = "outside",
     .inputs = "f32[1,2,6,6] f32[2,5]=0,-3,-3,2,9,0,7,7,9,9 f32[2,2,2,2]",
     .attrs = "pooled_shape=[2,2]"},
};

REGISTER(op, max_roi_pool_gradient) = {
    .name = "MaxRoiPoolGradient",
    .domain = "ridge",
    .inputs_min = 3,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
