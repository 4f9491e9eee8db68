/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/data/pictures.h"

#include <math.h>

struct picture_part picture_shifted(const struct batch *batch, int64_t row,
                                    const struct picture *picture, int pad, bool mirrors)
{
    struct picture_part part = {.width = picture->width, .height = picture->height};
    if (batch->held_out)
        return part;
    struct draw draw = draw_begin(batch, row);
    part.x = (double)(draw_index(&draw, 2 * pad + 1) - pad);
    part.y = (double)(draw_index(&draw, 2 * pad + 1) - pad);
    part.mirrored = mirrors && draw_uniform(&draw) < 0.5;
    return part;
}

static struct picture_part middle(int width, int height)
{
    double side = 0.875 * (width < height ? width : height);
    return (struct picture_part){
        .x = (width - side) / 2, .y = (height - side) / 2, .width = side, .height = side};
}

struct picture_part picture_resized(const struct batch *batch, int64_t row, int width, int height)
{
    enum { TRIES = 10 };
    struct picture_part part = middle(width, height);
    if (batch->held_out)
        return part;
    struct draw draw = draw_begin(batch, row);
    bool mirrored = draw_uniform(&draw) < 0.5, fits = false;
    for (int k = 0; k < TRIES && !fits; k++) {
        double area = (0.08 + 0.92 * draw_uniform(&draw)) * width * height;
        double shape = exp((2 * draw_uniform(&draw) - 1) * log(4.0 / 3));
        double w = sqrt(area * shape), h = sqrt(area / shape);
        fits = w <= width && h <= height;
        if (fits)
            part = (struct picture_part){.x = draw_uniform(&draw) * (width - w),
                                         .y = draw_uniform(&draw) * (height - h),
                                         .width = w,
                                         .height = h};
    }
    part.mirrored = mirrored;
    return part;
}

/* Between which two pixels of a line a point of the image lies. */
struct tap {
    int first, second;
    float weight; /* of the second */
    bool outside;
};

static struct tap tap_of(double at, int size)
{
    double floored = floor(at - 0.5);
    int first = (int)floored;
    if (!(at >= 0 && at < size))
        return (struct tap){.outside = true};
    return (struct tap){.first = first < 0 ? 0 : first,
                        .second = first + 1 < size ? first + 1 : size - 1,
                        .weight = (float)(at - 0.5 - floored)};
}

static void put_line(const struct picture *p, const uint8_t *plane, const struct tap *y,
                     const struct tap *across, int64_t width, float factor, float shift,
                     float *line)
{
    const uint8_t *upper = plane + y->first * p->row, *lower = plane + y->second * p->row;
    for (int64_t x = 0; x < width; x++) {
        const struct tap *t = &across[x];
        int64_t a = t->first * p->pixel, b = t->second * p->pixel;
        float up = (float)upper[a] + t->weight * (float)(upper[b] - upper[a]);
        float low = (float)lower[a] + t->weight * (float)(lower[b] - lower[a]);
        line[x] = t->outside ? 0 : (up + y->weight * (low - up)) * factor + shift;
    }
}

void picture_put(const struct batch *batch, int64_t row, const struct picture *picture,
                 const struct picture_part *part, const struct picture_scale *scale)
{
    struct tap across[PICTURE_MAX];
    float *image = batch_input(batch, "image");
    int v = graph_find_value(batch->graph, "image");
    if (!image || v == NONE)
        return;
    const struct shape *shape = &batch->graph->values[v].shape;
    int64_t channels = shape->dim[1], height = shape->dim[2], width = shape->dim[3];
    for (int64_t x = 0; x < width; x++) {
        int64_t from = part->mirrored ? width - 1 - x : x;
        double at = part->x + ((double)from + 0.5) * part->width / (double)width;
        across[x] = tap_of(at, picture->width);
    }
    float *line = image + row * channels * height * width;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t y = 0; y < height; y++, line += width) {
            double at = part->y + ((double)y + 0.5) * part->height / (double)height;
            struct tap down = tap_of(at, picture->height);
            float factor = 1 / (255 * scale->deviation[c % 3]);
            float shift = -scale->mean[c % 3] / scale->deviation[c % 3];
            for (int64_t x = 0; x < width && down.outside; x++)
                line[x] = 0;
            if (!down.outside)
                put_line(picture, picture->pixels + c % 3 * picture->plane, &down, across, width,
                         factor, shift, line);
        }
}

enum status pictures_check(const struct data_set *set, const struct graph *graph, int64_t classes,
                           struct error *err)
{
    const struct value *image, *label;
    TRY(data_input(set, graph, "image", DTYPE_F32, 4, &image, err));
    TRY(data_input(set, graph, "label", DTYPE_I64, 1, &label, err));
    if (image->shape.dim[2] > PICTURE_MAX || image->shape.dim[3] > PICTURE_MAX)
        return UNSUPPORTED(err, "%s: images of more than %d x %d are not read", graph->name,
                           PICTURE_MAX, PICTURE_MAX);
    if (classes > data_ids(label))
        return FAIL(err, STATUS_FAILED,
                    "the data have %lld classes, but the network tells %lld apart: %s:classes=%lld",
                    (long long)classes, (long long)data_ids(label), graph->name,
                    (long long)classes);
    return STATUS_OK;
}
