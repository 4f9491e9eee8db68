/* SPDX-License-Identifier: Apache-2.0
 *
 * What RoiAlign by means and its gradient have in common: the map x and its bins y, or the
 * gradients of both, and where the bins of a region lie (engine/kernels/lib/roi_parts.h).
 */
#ifndef ENGINE_KERNELS_LIB_ROI_MEAN_H
#define ENGINE_KERNELS_LIB_ROI_MEAN_H

#include <string.h>

#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/roi_parts.h"

struct roi_mean {
    bool nhwc, wide, bf16; /* wide: image numbers are i64; bf16: the map and its bins are */
    int64_t rois, images, channels, height, width, out_h, out_w;
    struct roi_cut cut;
    size_t slot; /* parts per thread: the rows of one bin and the columns of another */
    int threads;
};

/* For plan. x and y: shapes of the map and of the bins; narrow: the map may be bf16. */
static inline enum status roi_mean_from(const struct kernel_query *q, const struct shape *x,
                                        const struct shape *y, bool narrow, struct roi_mean *r,
                                        struct error *why)
{
    const char *mode = node_string(q->node, "coordinate_transformation_mode", "half_pixel");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    bool bf16 = narrow && q->in[0].dtype == DTYPE_BF16;
    if ((!bf16 && q->in[0].dtype != DTYPE_F32) || q->in[1].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only f32%s", narrow ? ", or a map of bf16" : "");
    if (q->in[2].dtype != DTYPE_I64 && q->in[2].dtype != DTYPE_I32)
        return UNSUPPORTED(why, "image numbers of type %s", dtype_name(q->in[2].dtype));
    if (strcmp(node_string(q->node, "mode", "avg"), "avg") != 0)
        return UNSUPPORTED(why, "only mode avg");
    bool nhwc = desc_is_nhwc(&q->in[0]) && desc_is_nhwc(&q->out[0]);
    if (!nhwc && !(desc_is_plain(&q->in[0]) && desc_is_plain(&q->out[0])))
        return UNSUPPORTED(why, "input and output are neither both plain nor both channels-last");
    *r = (struct roi_mean){.nhwc = nhwc,
                           .wide = q->in[2].dtype == DTYPE_I64,
                           .bf16 = bf16,
                           .rois = y->dim[0],
                           .images = x->dim[0],
                           .channels = x->dim[1],
                           .height = x->dim[2],
                           .width = x->dim[3],
                           .out_h = y->dim[2],
                           .out_w = y->dim[3],
                           .cut = {.scale = (float)node_float(q->node, "spatial_scale", 1),
                                   .half_pixel = strcmp(mode, "half_pixel") == 0,
                                   .ratio = node_int(q->node, "sampling_ratio", 0)},
                           .slot = (size_t)(x->dim[2] + x->dim[3] + 15) / 8 * 8,
                           .threads = q->threads};
    return STATUS_OK;
}

static inline size_t roi_mean_workspace(const struct roi_mean *r)
{
    return r->slot * sizeof(struct roi_part) * (size_t)r->threads;
}

/* The image that region n lies in, by the list of their numbers. */
static inline int64_t roi_mean_image(const struct roi_mean *r, const void *images, int64_t n)
{
    return r->wide ? ((const int64_t *)images)[n] : ((const int32_t *)images)[n];
}

/* The axes of a region, of which x, y, x, y of two corners are given. */
struct roi_axes {
    struct roi_axis down, across;
};

static inline struct roi_axes roi_mean_axes(const struct roi_mean *r, const float *box)
{
    return (struct roi_axes){roi_axis_of(&r->cut, box[1], box[3], r->out_h, r->height),
                             roi_axis_of(&r->cut, box[0], box[2], r->out_w, r->width)};
}

#endif
