/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/pages.h"

#include <math.h>

#include "workloads/lib/vision/canvas.h"
#include "workloads/lib/vision/letters.h"

enum { MOST = 3, TRIES = 20, LETTERS_LEAST = 3, LETTERS_MOST = 7 };
enum { X, Y, WIDTH, HEIGHT, SINE, COSINE };

struct line {
    struct letters letters; /* from (0, 0) on, in the direction of the line */
    int64_t symbol[LETTERS_MOST];
    float ink[CANVAS_CHANNELS];
};

/* Half of the sides of the upright box round a line. */
static void reach(const float *word, float half[2])
{
    float c = fabsf(word[COSINE]), s = fabsf(word[SINE]);
    half[0] = 0.5f * (c * word[WIDTH] + s * word[HEIGHT]);
    half[1] = 0.5f * (s * word[WIDTH] + c * word[HEIGHT]);
}

static bool apart(const float *a, const float *b)
{
    float ha[2], hb[2], gap = 0.3f * (a[HEIGHT] + b[HEIGHT]);
    reach(a, ha);
    reach(b, hb);
    return fabsf(a[X] - b[X]) > ha[0] + hb[0] + gap || fabsf(a[Y] - b[Y]) > ha[1] + hb[1] + gap;
}

/* Heights are a tenth to a fifth of the shorter side. False: it does not fit into the image. */
static bool draw_line(struct draw *draw, const struct shape *image, struct line *line, float *word)
{
    double size[2] = {(double)image->dim[3], (double)image->dim[2]};
    double high = fmin(size[0], size[1]) * (0.1 + 0.1 * draw_uniform(draw));
    double angle = 1.2 * (draw_uniform(draw) - 0.5);
    struct letters *l = &line->letters;
    *l = (struct letters){.symbol = line->symbol, .high = high};
    l->count = LETTERS_LEAST + draw_index(draw, LETTERS_MOST - LETTERS_LEAST + 1);
    l->wide = high * (0.7 + 0.2 * draw_uniform(draw));
    for (int64_t k = 0; k < l->count; k++)
        line->symbol[k] = draw_index(draw, LETTERS_SYMBOLS);
    canvas_hue(draw_uniform(draw), line->ink);
    word[WIDTH] = (float)((double)l->count * l->wide - letters_gap(l));
    word[HEIGHT] = (float)high;
    word[SINE] = (float)sin(angle);
    word[COSINE] = (float)cos(angle);
    float half[2];
    reach(word, half);
    for (int k = 0; k < 2; k++)
        word[k] = half[k] + (float)((size[k] - 2 * (double)half[k]) * draw_uniform(draw));
    return 2 * (double)half[0] < size[0] && 2 * (double)half[1] < size[1];
}

static void paint_line(const struct line *line, const float *word, const struct shape *shape,
                       float *image)
{
    int64_t height = shape->dim[2], width = shape->dim[3];
    float half[2];
    reach(word, half);
    int64_t bottom = (int64_t)fminf(word[Y] + half[1] + 1, (float)height);
    int64_t right = (int64_t)fminf(word[X] + half[0] + 1, (float)width);
    for (int64_t y = (int64_t)fmaxf(word[Y] - half[1], 0); y < bottom; y++)
        for (int64_t x = (int64_t)fmaxf(word[X] - half[0], 0); x < right; x++) {
            float dx = (float)x + 0.5f - word[X], dy = (float)y + 0.5f - word[Y];
            float along = dx * word[COSINE] + dy * word[SINE] + word[WIDTH] / 2;
            float down = dy * word[COSINE] - dx * word[SINE] + word[HEIGHT] / 2;
            float ink = (float)letters_ink(&line->letters, (double)along, (double)down);
            for (int c = 0; c < CANVAS_CHANNELS; c++) {
                float *pixel = image + (c * height + y) * width + x;
                *pixel += ink * (line->ink[c] - *pixel);
            }
        }
}

static void draw_page(struct draw *draw, const struct shape *shape, float *words, float *image)
{
    int64_t wanted = 1 + draw_index(draw, MOST), count = 0;
    struct line line;
    for (int k = 0; k < PAGE_WORDS * PAGE_NUMBERS; k++)
        words[k] = 0;
    canvas_ground(draw, shape, image);
    for (int tries = 0; tries < TRIES && count < wanted; tries++) {
        float word[PAGE_NUMBERS];
        bool fits = draw_line(draw, shape, &line, word);
        for (int64_t k = 0; k < count; k++)
            fits = fits && apart(word, words + k * PAGE_NUMBERS);
        if (!fits)
            continue;
        paint_line(&line, word, shape, image);
        for (int k = 0; k < PAGE_NUMBERS; k++)
            words[count * PAGE_NUMBERS + k] = word[k];
        count++;
    }
}

void pages_fill(const struct batch *batch)
{
    float *image = batch_input(batch, "image"), *words = batch_input(batch, "words");
    int v = graph_find_value(batch->graph, "image");
    if (!image || !words || v == NONE)
        return;
    const struct shape *shape = &batch->graph->values[v].shape;
    int64_t size = shape_span(shape, 1, 4);
    for (int64_t n = 0; n < batch->size; n++) {
        struct draw draw = draw_begin(batch, n);
        draw_page(&draw, shape, words + n * PAGE_WORDS * PAGE_NUMBERS, image + n * size);
        canvas_noise(&draw, size, image + n * size);
    }
}
