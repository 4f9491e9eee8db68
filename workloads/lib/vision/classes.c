/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/classes.h"

#include <math.h>
#include <stdlib.h>

#include "base/numbers/random.h"
#include "base/system/hash.h"
#include "workloads/lib/losses.h"

enum { CHANNELS_MAX = 4 };

static const double full_turn = 6.283185307179586;

void classes_end(struct graph *g, const struct workload_config *config, int logits)
{
    graph_rename(g, logits, "logits");
    if (config->loss && !g->failed) {
        struct fill classes = {.kind = FILL_INDEX, .a = 0, .b = (double)dim_of(g, logits, 1)};
        int label = graph_input(g, "label", DTYPE_I64, shape_of(dim_of(g, logits, 0)), classes);
        graph_output(g, cross_entropy(g, logits, label, 0, COUNT_ALL));
    }
    graph_output(g, logits);
}

/* What all images of a class have in common. */
struct grating {
    double across, down; /* waves per image */
    double colour[CHANNELS_MAX];
};

static struct grating grating_of(int64_t class)
{
    uint64_t seed = hash_fnv1a("grating");
    double direction = 0.5 * full_turn * fmod(0.6180339887 * (double)class, 1);
    double waves = 2 + 4 * fmod(0.4142135624 * (double)class, 1);
    struct grating g = {.across = waves * cos(direction), .down = waves * sin(direction)};
    for (int c = 0; c < CHANNELS_MAX; c++)
        g.colour[c] = 0.6 * random_normal(seed, (uint64_t)(class * CHANNELS_MAX + c));
    return g;
}

/* One line of one channel: sin(a + b) = sin a cos b + cos a sin b, two products a pixel. */
static void draw_line(const float *wave, int64_t width, float sine, float cosine, uint64_t noise,
                      uint64_t first, float *line)
{
    uint32_t word[4];
    for (int64_t x = 0; x < width; x++) {
        if (x % 4 == 0)
            random_words(noise, first + (uint64_t)x, word);
        line[x] = wave[x] * cosine + wave[width + x] * sine +
                  0.5f * ((float)word[x % 4] * 0x1p-32f - 0.5f);
    }
}

/* wave: scratch of 2 width. */
static void draw_image(struct draw *draw, const struct grating *g, const struct shape *shape,
                       float *wave, float *image)
{
    int64_t height = shape->dim[2], width = shape->dim[3];
    double shift = full_turn * draw_uniform(draw);
    uint64_t noise = draw->seed + draw->next;
    for (int64_t x = 0; x < width; x++) {
        double at = full_turn * g->across * (double)x / (double)width;
        wave[x] = (float)sin(at);
        wave[width + x] = (float)cos(at);
    }
    for (int64_t c = 0; c < shape->dim[1]; c++)
        for (int64_t y = 0; y < height; y++) {
            double at = full_turn * g->down * (double)y / (double)height + shift;
            double colour = g->colour[c % CHANNELS_MAX];
            int64_t first = (c * height + y) * width;
            draw_line(wave, width, (float)(colour * sin(at)), (float)(colour * cos(at)), noise,
                      (uint64_t)first, image + first);
        }
}

void classes_fill(const struct batch *batch)
{
    float *image = batch_input(batch, "image");
    int64_t *label = batch_input(batch, "label");
    int v = graph_find_value(batch->graph, "image");
    if (!image || !label || v == NONE)
        return;
    const struct shape *shape = &batch->graph->values[v].shape;
    int64_t classes = batch_range(batch, "label"), size = shape_span(shape, 1, shape->rank);
    float *wave = malloc((size_t)(2 * shape->dim[3] + 1) * sizeof(*wave));
    for (int64_t n = 0; wave && n < batch->size; n++) {
        struct draw draw = draw_begin(batch, n);
        label[n] = draw_index(&draw, classes);
        struct grating g = grating_of(label[n]);
        draw_image(&draw, &g, shape, wave, image + n * size);
    }
    free(wave);
}
