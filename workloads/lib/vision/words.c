/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/words.h"

#include <math.h>

#include "base/numbers/random.h"

enum { LETTER_PIXELS = 12, CHANNELS_MAX = 4 };

struct word {
    struct letters letters;
    float ink[CHANNELS_MAX], paper[CHANNELS_MAX];
};

static void draw_word(struct draw *draw, struct word *w, const struct shape *image)
{
    struct letters *l = &w->letters;
    double height = (double)image->dim[2], width = (double)image->dim[3];
    double room = width / (double)l->count;
    double widest = room < LETTER_PIXELS ? room : LETTER_PIXELS;
    l->wide = widest * (0.8 + 0.2 * draw_uniform(draw));
    l->high = height * (0.55 + 0.25 * draw_uniform(draw));
    l->left = (width - l->wide * (double)l->count) * draw_uniform(draw);
    l->top = (height - l->high) * draw_uniform(draw);
    l->slant = 0.2 * (draw_uniform(draw) - 0.5);
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
        float ink =
            (float)letters_ink(&w->letters, (double)(k % width) + 0.5, (double)(k / width) + 0.5);
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
    int64_t room = batch->graph->values[l].shape.dim[1], limit = shape->dim[3] / LETTER_PIXELS;
    limit = limit < room ? limit : room - 1;
    for (int64_t n = 0; n < batch->size; n++, label += room) {
        struct draw draw = draw_begin(batch, n);
        struct word w = {.letters = {.symbol = label, .count = 1 + draw_index(&draw, limit)}};
        for (int64_t k = 0; k < room; k++)
            label[k] = k < w.letters.count ? draw_index(&draw, WORDS_SYMBOLS) : -1;
        length[n] = w.letters.count;
        draw_word(&draw, &w, shape);
        paint(&draw, &w, shape, image + n * shape_span(shape, 1, 4));
    }
}
