/* SPDX-License-Identifier: Apache-2.0
 * MaxRoiPool: each region [image, x1, y1, x2, y2] of x to pooled_shape bins, the largest element of
 * each. Corners are rounded to whole elements, bins overlap by rounding outwards; an empty bin
 * gives 0. Girshick 2015, section 2.1. */
#include <math.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/max_roi_pool.h"

static const char *const attrs[] = {"pooled_shape", "spatial_scale", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape, *rois = &c->in[1]->shape;
    int64_t pooled[2] = {0, 0};
    char text_x[96], text_r[96];
    node_ints(c->node, "pooled_shape", pooled, 2);
    if (x->rank != 4 || rois->rank != 2 || rois->dim[1] != 5)
        return FAIL(err, STATUS_FAILED, "MaxRoiPool: input %s, regions %s", shape_text(x, text_x),
                    shape_text(rois, text_r));
    if (pooled[0] < 1 || pooled[1] < 1)
        return FAIL(err, STATUS_FAILED, "MaxRoiPool: pooled_shape [%lld,%lld]",
                    (long long)pooled[0], (long long)pooled[1]);
    struct shape y = shape_of(rois->dim[0], x->dim[1], pooled[0], pooled[1]);
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static double largest(const double *plane, const struct roi_span *rows,
                      const struct roi_span *columns, int64_t bin)
{
    int64_t y0, y1, x0, x1;
    roi_bin_of(rows, bin / columns->bins, &y0, &y1);
    roi_bin_of(columns, bin % columns->bins, &x0, &x1);
    if (y0 >= y1 || x0 >= x1)
        return 0;
    double maximum = (double)-INFINITY;
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++)
            maximum = fmax(maximum, plane[y * columns->limit + x]);
    return maximum;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *x = call->in[0], *rois = call->in[1];
    const int64_t *dim = x->shape.dim, *out = call->out[0]->shape.dim;
    double scale = node_float(call->node, "spatial_scale", 1);
    int64_t bins = out[2] * out[3], plane = dim[2] * dim[3];
    for (int64_t r = 0; r < out[0]; r++) {
        const double *roi = rois->f + r * 5;
        if (!(roi[0] >= 0 && roi[0] < (double)dim[0]))
            return FAIL(err, STATUS_FAILED, "MaxRoiPool: region %lld is in image %g of %lld",
                        (long long)r, roi[0], (long long)dim[0]);
        int64_t image = (int64_t)roi[0];
        struct roi_span columns = roi_span_of(roi[1] * scale, roi[3] * scale, dim[3], out[3]);
        struct roi_span rows = roi_span_of(roi[2] * scale, roi[4] * scale, dim[2], out[2]);
        for (int64_t k = 0; k < dim[1] * bins; k++)
            call->out[0]->f[r * dim[1] * bins + k] =
                largest(x->f + (image * dim[1] + k / bins) * plane, &rows, &columns, k % bins);
    }
    return STATUS_OK;
}

/* By the map alone: corners of regions are rounded. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    (void)err;
    const struct node *node = gradient_node(c);
    if (c->wanted[0])
        c->dx[0] = graph_node(c->g, op_max_roi_pool_gradient.name, NULL,
                              INPUTS(gradient_in(c, 0), gradient_in(c, 1), c->dy[0]),
                              node->attr_count, node->attrs);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "three_regions",
     .inputs = "f32[2,5,12,16] f32[3,5]=0,1,1,8,8,1,0,3,15,10,1,5,5,5,5",
     .attrs = "pooled_shape=[7,7]"},
    {.name = "scaled",
     .inputs = "f32[1,3,14,14] f32[2,5]=0,10,20,200,180,0,64,64,223,100",
     .attrs = "pooled_shape=[3,4] spatial_scale=0.0625"},
    {.name = "channels",
     .inputs = "f32[2,70,9,11] f32[4,5]=0,1,0,6,7,1,0,0,10,8,1,3,2,4.4,2.6,0,8,8,30,20",
     .attrs = "pooled_shape=[3,3] spatial_scale=0.9"},
    {.name = "sizes",
     .inputs = "f32[1,3,40,40] f32[4,5]=0,0,0,28,30,0,3,4,33,34,0,5,5,61,32,0,1,2,31,32",
     .attrs = "pooled_shape=[7,7]"},
    {.name = "half",
     .inputs = "f16[2,5,12,16] f16[3,5]=0,1,1,8,8,1,0,3,15,10,1,5,5,5,5",
     .attrs = "pooled_shape=[7,7]"},
    {.name = "outside",
     .inputs = "f32[1,2,6,6] f32[2,5]=0,-3,-3,2,9,0,7,7,9,9",
     .attrs = "pooled_shape=[2,2]"},
};

REGISTER(op, max_roi_pool) = {
    .name = "MaxRoiPool",
    .narrow = NARROW_MATH,
    .narrow_inputs = 1u << 0,
    .inputs_min = 2,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
