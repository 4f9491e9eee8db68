/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/words.h"

#include <math.h>

#include "base/numbers/random.h"

enum { DOTS_WIDE = 5, DOTS_HIGH = 7, LETTER_PIXELS = 12, CHANNELS_MAX = 4 };

/* Rows of dots from the top; bit 4 is the leftmost one. */
static const uint8_t font[WORDS_SYMBOLS][DOTS_HIGH] = {
    {0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e}, {0x04, 0x0c, 0x14, 0x04, 0x04, 0x04, 0x04},
    {0x0e, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1f}, {0x1f, 0x02, 0x04, 0x02, 0x01, 0x11, 0x0e},
    {0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02}, {0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e},
    {0x06, 0x08, 0x10, 0x1e, 0x11, 0x11, 0x0e}, {0x1f, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08},
    {0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e}, {0x0e, 0x11, 0x11, 0x0f, 0x01, 0x02, 0x0c},
    {0x0e, 0x11, 0x11, 0x11, 0x1f, 0x11, 0x11}, {0x1e, 0x11, 0x11, 0x1e, 0x11, 0x11, 0x1e},
    {0x0e, 0x11, 0x10, 0x10, 0x10, 0x11, 0x0e}, {0x1c, 0x12, 0x11, 0x11, 0x11, 0x12, 0x1c},
    {0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x1f}, {0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x10},
    {0x0e, 0x11, 0x10, 0x17, 0x11, 0x11, 0x0f}, {0x11, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11},
    {0x0e, 0x04, 0x04, 0x04, 0x04, 0x04, 0x0e}, {0x07, 0x02, 0x02, 0x02, 0x02, 0x12, 0x0c},
    {0x11, 0x12, 0x14, 0x18, 0x14, 0x12, 0x11}, {0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x1f},
    {0x11, 0x1b, 0x15, 0x15, 0x11, 0x11, 0x11}, {0x11, 0x11, 0x19, 0x15, 0x13, 0x11, 0x11},
    {0x0e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e}, {0x1e, 0x11, 0x11, 0x1e, 0x10, 0x10, 0x10},
    {0x0e, 0x11, 0x11, 0x11, 0x15, 0x12, 0x0d}, {0x1e, 0x11, 0x11, 0x1e, 0x14, 0x12, 0x11},
    {0x0f, 0x10, 0x10, 0x0e, 0x01, 0x01, 0x1e}, {0x1f, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04},
    {0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e}, {0x11, 0x11, 0x11, 0x11, 0x11, 0x0a, 0x04},
    {0x11, 0x11, 0x11, 0x15, 0x15, 0x15, 0x0a}, {0x11, 0x11, 0x0a, 0x04, 0x0a, 0x11, 0x11},
    {0x11, 0x11, 0x11, 0x0a, 0x04, 0x04, 0x04}, {0x1f, 0x01, 0x02, 0x04, 0x08, 0x10, 0x1f},
};

/* How a word lies in its image, in pixels. */
struct word {
    const int64_t *symbol;
    int64_t letters;
    double left, top, wide, high; /* of the first letter with the gap behind it; height */
    double slant;                 /* pixels to the right per pixel up */
    float ink[CHANNELS_MAX], paper[CHANNELS_MAX];
};

static double dot(int64_t symbol, int64_t column, int64_t row)
{
    if (column < 0 || column >= DOTS_WIDE || row < 0 || row >= DOTS_HIGH)
        return 0;
    return font[symbol][row] >> (DOTS_WIDE - 1 - column) & 1;
}

/* How much ink a pixel has, in [0, 1]: dots run into each other linearly. */
static double ink_at(const struct word *w, double x, double y)
{
    double row = (y - w->top) / w->high * DOTS_HIGH - 0.5;
    double along = (x - w->left + w->slant * (y - w->top - w->high / 2)) / w->wide;
    double letter = floor(along);
    if (letter < 0 || letter >= (double)w->letters)
        return 0;
    int64_t symbol = w->symbol[(int64_t)letter];
    double column = (along - letter) * (DOTS_WIDE + 1) - 0.5;
    int64_t c = (int64_t)floor(column), r = (int64_t)floor(row);
    double right = column - (double)c, below = row - (double)r;
    return (1 - below) * ((1 - right) * dot(symbol, c, r) + right * dot(symbol, c + 1, r)) +
           below * ((1 - right) * dot(symbol, c, r + 1) + right * dot(symbol, c + 1, r + 1));
}

static void draw_word(struct draw *draw, struct word *w, const struct shape *image)
{
    double height = (double)image->dim[2], width = (double)image->dim[3];
    double room = width / (double)w->letters;
    double widest = room < LETTER_PIXELS ? room : LETTER_PIXELS;
    w->wide = widest * (0.8 + 0.2 * draw_uniform(draw));
    w->high = height * (0.55 + 0.25 * draw_uniform(draw));
    w->left = (width - w->wide * (double)w->letters) * draw_uniform(draw);
    w->top = (height - w->high) * draw_uniform(draw);
    w->slant = 0.2 * (draw_uniform(draw) - 0.5);
    bool dark = draw_uniform(draw) < 0.5;
    for (int c = 0; c < CHANNELS_MAX; c++) {
        double low = -1 + 0.8 * draw_uniform(draw), high = 1 - 0.8 * draw_uniform(draw);
        w->ink[c] = (float)(dark ? low : high);
        w->paper[c] = (float)(dark ? high : low);
    }
}

static void paint(const struct draw *draw, const struct word *w, const struct shape *shape,
                  float *image)
{
    int64_t width = shape->dim[3], pixels = shape->dim[2] * width;
    uint32_t noise[4];
    for (int64_t k = 0; k < pixels; k++) {
        if (k % 4 == 0)
            random_words(draw->seed, draw->next + (uint64_t)(k / 4), noise);
        float ink = (float)ink_at(w, (double)(k % width) + 0.5, (double)(k / width) + 0.5);
        float grain = 0.2f * ((float)noise[k % 4] * 0x1p-32f - 0.5f);
        for (int64_t c = 0; c < shape->dim[1]; c++) {
            float paper = w->paper[c % CHANNELS_MAX];
            image[c * pixels + k] = paper + ink * (w->ink[c % CHANNELS_MAX] - paper) + grain;
        }
    }
}

void words_fill(const struct batch *batch)
{
    float *image = batch_input(batch, "image");
    int64_t *label = batch_input(batch, "label"), *length = batch_input(batch, "label_length");
    int v = graph_find_value(batch->graph, "image"), l = graph_find_value(batch->graph, "label");
    if (!image || !label || !length || v == NONE || l == NONE)
        return;
    const struct shape *shape = &batch->graph->values[v].shape;
    int64_t room = batch->graph->values[l].shape.dim[1], most = shape->dim[3] / LETTER_PIXELS;
    most = most < room ? most : room - 1;
    for (int64_t n = 0; n < batch->size; n++, label += room) {
        struct draw draw = draw_begin(batch, n);
        struct word w = {.symbol = label, .letters = 1 + draw_index(&draw, most)};
        for (int64_t k = 0; k < room; k++)
            label[k] = k < w.letters ? draw_index(&draw, WORDS_SYMBOLS) : -1;
        length[n] = w.letters;
        draw_word(&draw, &w, shape);
        paint(&draw, &w, shape, image + n * shape_span(shape, 1, 4));
    }
}
