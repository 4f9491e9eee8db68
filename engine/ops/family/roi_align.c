/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/roi_align.h"

#include <math.h>
#include <string.h>

enum status roi_align_settings(const struct node *node, const struct shape *x, struct roi_align *r,
                               struct error *err)
{
    const char *mode = node_string(node, "mode", "avg");
    const char *coordinate = node_string(node, "coordinate_transformation_mode", "half_pixel");
    *r = (struct roi_align){.max = strcmp(mode, "max") == 0,
                            .half_pixel = strcmp(coordinate, "half_pixel") == 0,
                            .out_height = node_int(node, "output_height", 1),
                            .out_width = node_int(node, "output_width", 1),
                            .ratio = node_int(node, "sampling_ratio", 0),
                            .height = x->dim[2],
                            .width = x->dim[3],
                            .scale = node_float(node, "spatial_scale", 1)};
    if ((!r->max && strcmp(mode, "avg")) ||
        (!r->half_pixel && strcmp(coordinate, "output_half_pixel")))
        return UNSUPPORTED(err, "mode \"%s\" with coordinates \"%s\" of RoiAlign", mode,
                           coordinate);
    if (r->out_height < 1 || r->out_width < 1 || r->ratio < 0)
        return FAIL(err, STATUS_FAILED, "RoiAlign to %lld x %lld with sampling_ratio %lld",
                    (long long)r->out_height, (long long)r->out_width, (long long)r->ratio);
    return STATUS_OK;
}

struct roi_side roi_side_of(const struct roi_align *r, double low, double high, int64_t out)
{
    double offset = r->half_pixel ? 0.5 : 0;
    double size = (high - low) * r->scale;
    if (!r->half_pixel && size < 1)
        size = 1;
    int64_t grid = r->ratio ? r->ratio : (int64_t)ceil(size / (double)out);
    return (struct roi_side){.start = low * r->scale - offset,
                             .bin = size / (double)out,
                             .grid = grid > 0 ? grid : 0}; /* corners swapped: no samples */
}

double roi_sample(const struct roi_side *side, int64_t bin, int64_t sample)
{
    return side->start + side->bin * ((double)bin + ((double)sample + 0.5) / (double)side->grid);
}

bool roi_pair_at(double at, int64_t size, struct roi_pair *pair)
{
    if (at < -1 || at > (double)size)
        return false;
    at = at < 0 ? 0 : at;
    int64_t low = (int64_t)at;
    double t = at - (double)low;
    if (low >= size - 1) {
        low = size - 1;
        t = 0;
    }
    *pair = (struct roi_pair){.at = {low, low < size - 1 ? low + 1 : low}, .weight = {1 - t, t}};
    return true;
}
