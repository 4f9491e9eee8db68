/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/scenes.h"

#include <math.h>

#include "workloads/lib/vision/canvas.h"

enum { MOST = 4, TRIES = 20, SHAPES = 4 };

int scenes_objects(struct graph *g, int64_t batch, int64_t classes)
{
    return graph_input(g, "objects", DTYPE_F32, shape_of(batch, SCENE_OBJECTS, SCENE_NUMBERS),
                       (struct fill){.kind = FILL_UNIFORM, .a = 0, .b = (double)classes});
}

int scenes_masks(struct graph *g, int64_t batch)
{
    return graph_input(g, "masks", DTYPE_F32,
                       shape_of(batch, SCENE_OBJECTS, SCENE_MASK, SCENE_MASK),
                       (struct fill){.kind = FILL_UNIFORM, .a = 0, .b = 1});
}

/* ---- objects ---- */

static bool apart(const float *a, const float *b)
{
    float width = fminf(a[2], b[2]) - fmaxf(a[0], b[0]);
    float height = fminf(a[3], b[3]) - fmaxf(a[1], b[1]);
    float least = fminf((a[2] - a[0]) * (a[3] - a[1]), (b[2] - b[0]) * (b[3] - b[1]));
    return width <= 0 || height <= 0 || width * height < 0.2f * least;
}

/* Sides of 0.2 to 0.6 of the image, at most one and a half times as long as each other. */
static void draw_box(struct draw *draw, float *box)
{
    double side = 0.25 + 0.24 * draw_uniform(draw), ratio = 0.4 * (draw_uniform(draw) - 0.5);
    double width = side * exp(ratio), height = side * exp(-ratio);
    double x = (1 - width) * draw_uniform(draw), y = (1 - height) * draw_uniform(draw);
    box[0] = (float)x;
    box[1] = (float)y;
    box[2] = (float)(x + width);
    box[3] = (float)(y + height);
}

static int64_t draw_objects(struct draw *draw, int64_t classes, float *objects)
{
    int64_t wanted = 1 + draw_index(draw, MOST), count = 0;
    for (int k = 0; k < SCENE_OBJECTS * SCENE_NUMBERS; k++)
        objects[k] = 0;
    for (int tries = 0; tries < TRIES && count < wanted; tries++) {
        float *object = objects + count * SCENE_NUMBERS;
        bool free = true;
        draw_box(draw, object);
        for (int64_t k = 0; k < count; k++)
            free = free && apart(object, objects + k * SCENE_NUMBERS);
        object[4] = (float)(1 + draw_index(draw, classes - 1));
        count += free;
    }
    for (int k = 0; k < SCENE_NUMBERS && count < SCENE_OBJECTS; k++)
        objects[count * SCENE_NUMBERS + k] = 0; /* the last try may have failed */
    return count;
}

/* ---- pixels ---- */

/* Whether a point of the box, both coordinates in [-1, 1], belongs to the shape. */
static bool inside(int64_t shape, double x, double y)
{
    double x2 = x * x, y2 = y * y;
    switch (shape) {
    case 0: /* a rectangle */
        return true;
    case 1: /* an ellipse */
        return x2 + y2 < 1;
    case 2: /* a cross */
        return fabs(x) < 0.35 || fabs(y) < 0.35;
    default: /* a frame */
        return fabs(x) > 0.5 || fabs(y) > 0.5;
    }
}

static void paint_object(const float *object, int64_t classes, const struct shape *shape,
                         float *image)
{
    int64_t height = shape->dim[2], width = shape->dim[3], class = (int64_t)object[4] - 1;
    double hue = (double)(class / SHAPES) / (double)((classes - 2) / SHAPES + 1);
    double middle[2] = {(object[0] + object[2]) / 2, (object[1] + object[3]) / 2};
    double half[2] = {(object[2] - object[0]) / 2, (object[3] - object[1]) / 2};
    float colour[CANVAS_CHANNELS];
    canvas_hue(hue, colour);
    for (int64_t y = (int64_t)(object[1] * (float)height); y < height; y++) {
        double down = (((double)y + 0.5) / (double)height - middle[1]) / half[1];
        for (int64_t x = (int64_t)(object[0] * (float)width); x < width; x++) {
            double right = (((double)x + 0.5) / (double)width - middle[0]) / half[0];
            if (right > 1 || down > 1)
                break;
            if (right < -1 || down < -1 || !inside(class % SHAPES, right, down))
                continue;
            for (int c = 0; c < CANVAS_CHANNELS; c++)
                image[(c * height + y) * width + x] = colour[c];
        }
    }
}

static void draw_masks(const float *objects, float *masks)
{
    for (int k = 0; k < SCENE_OBJECTS; k++) {
        int64_t class = (int64_t)objects[k * SCENE_NUMBERS + 4] - 1;
        for (int at = 0; at < SCENE_MASK * SCENE_MASK; at++) {
            double x = 2.0 * (at % SCENE_MASK) / (SCENE_MASK - 1) - 1;
            double y = 2.0 * (at / SCENE_MASK) / (SCENE_MASK - 1) - 1;
            *masks++ = class >= 0 && inside(class % SHAPES, x, y);
        }
    }
}

void scenes_fill(const struct batch *batch)
{
    float *masks = batch_input(batch, "masks");
    float *image = batch_input(batch, "image"), *objects = batch_input(batch, "objects");
    int v = graph_find_value(batch->graph, "image");
    if (!image || !objects || v == NONE)
        return;
    const struct shape *shape = &batch->graph->values[v].shape;
    int64_t classes = batch_range(batch, "objects"), size = shape_span(shape, 1, 4);
    for (int64_t n = 0; n < batch->size; n++, image += size) {
        float *first = objects + n * SCENE_OBJECTS * SCENE_NUMBERS;
        struct draw draw = draw_begin(batch, n);
        int64_t count = draw_objects(&draw, classes, first);
        canvas_ground(&draw, shape, image);
        for (int64_t k = 0; k < count; k++)
            paint_object(first + k * SCENE_NUMBERS, classes, shape, image);
        canvas_noise(&draw, size, image);
        if (masks)
            draw_masks(first, masks + n * SCENE_OBJECTS * SCENE_MASK * SCENE_MASK);
    }
}
