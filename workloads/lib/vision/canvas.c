/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/canvas.h"

#include <math.h>

#include "base/numbers/random.h"

static const double full_turn = 6.283185307179586;

void canvas_ground(struct draw *draw, const struct shape *shape, float *image)
{
    int64_t height = shape->dim[2], width = shape->dim[3];
    double across = full_turn * (1 + 7 * draw_uniform(draw)) / (double)width;
    double down = full_turn * (1 + 7 * draw_uniform(draw)) / (double)height;
    double shift = full_turn * draw_uniform(draw), level[CANVAS_CHANNELS];
    for (int c = 0; c < CANVAS_CHANNELS; c++)
        level[c] = 0.3 * (draw_uniform(draw) - 0.5);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            double wave = 0.15 * sin(across * (double)x + down * (double)y + shift);
            for (int c = 0; c < CANVAS_CHANNELS; c++)
                image[(c * height + y) * width + x] = (float)(level[c] + wave);
        }
}

void canvas_noise(const struct draw *draw, int64_t count, float *image)
{
    uint32_t word[4];
    for (int64_t k = 0; k < count; k++) {
        if (k % 4 == 0)
            random_words(draw->seed, draw->next + (uint64_t)(k / 4), word);
        image[k] += 0.2f * ((float)word[k % 4] * 0x1p-32f - 0.5f);
    }
}

void canvas_hue(double hue, float colour[CANVAS_CHANNELS])
{
    for (int c = 0; c < CANVAS_CHANNELS; c++)
        colour[c] = (float)(0.2 + 0.8 * cos(full_turn * (hue + (double)c / CANVAS_CHANNELS)));
}

/* The square of the distance of a point from the line. */
static double apart(const struct canvas_line *line, double x, double y)
{
    double along[2] = {line->to[0] - line->from[0], line->to[1] - line->from[1]};
    double from[2] = {x - line->from[0], y - line->from[1]};
    double length = along[0] * along[0] + along[1] * along[1];
    double at = length > 0 ? (from[0] * along[0] + from[1] * along[1]) / length : 0;
    at = fmin(fmax(at, 0), 1);
    double dx = from[0] - at * along[0], dy = from[1] - at * along[1];
    return dx * dx + dy * dy;
}

void canvas_draw(const struct canvas_line *line, const struct shape *shape, float *image)
{
    int64_t size[2] = {shape->dim[3], shape->dim[2]}, first[2], last[2];
    for (int k = 0; k < 2; k++) {
        double low = fmin(line->from[k], line->to[k]) - line->radius;
        double high = fmax(line->from[k], line->to[k]) + line->radius;
        first[k] = (int64_t)fmax(low, 0);
        last[k] = (int64_t)fmin(high + 1, (double)size[k]);
    }
    for (int64_t y = first[1]; y < last[1]; y++)
        for (int64_t x = first[0]; x < last[0]; x++) {
            if (apart(line, (double)x + 0.5, (double)y + 0.5) > line->radius * line->radius)
                continue;
            for (int c = 0; c < CANVAS_CHANNELS; c++)
                image[(c * size[1] + y) * size[0] + x] = line->colour[c];
        }
}
