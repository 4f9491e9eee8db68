/* SPDX-License-Identifier: Apache-2.0
 * The images that classifiers learn: a linear model, which has one weight per pixel and class,
 * cannot tell them apart, so what a network makes of them (tests/long/learning.sh) is more than
 * that. It can where the lines of a class lie in the same place in every image, so the model itself
 * is sound. */
#include <math.h>
#include <stdlib.h>

#include "tests/lib/unit.h"
#include "workloads/lib/vision/classes.h"

enum { SIZE = 32, CLASSES = 4, BATCH = 16, STEPS = 1500, HELD_OUT = 64, PIXELS = 3 * SIZE * SIZE };

struct linear {
    struct graph *g;
    float *image; /* [BATCH, PIXELS] */
    int64_t label[BATCH];
    double weight[CLASSES][PIXELS], bias[CLASSES];
};

static void take(struct linear *m, int64_t first, bool held_out)
{
    void *data[] = {m->image, m->label};
    classes_fill(&(struct batch){
        .graph = m->g, .data = data, .first = first, .size = BATCH, .held_out = held_out});
}

/* The same image for every sample of a class. */
static void take_still(struct linear *m, int64_t first, bool held_out)
{
    take(m, first, held_out);
    for (int n = 0; n < BATCH; n++)
        for (int k = 0; k < PIXELS; k++)
            m->image[n * PIXELS + k] +=
                (float)sin(0.1 * (double)(k % SIZE) * (double)(1 + m->label[n]));
}

static void probabilities(const struct linear *m, int n, double *p)
{
    double sum = 0;
    for (int c = 0; c < CLASSES; c++) {
        double score = m->bias[c];
        for (int k = 0; k < PIXELS; k++)
            score += m->weight[c][k] * (double)m->image[n * PIXELS + k];
        sum += p[c] = exp(fmin(score, 300));
    }
    for (int c = 0; c < CLASSES; c++)
        p[c] /= sum;
}

/* One step of gradient descent on the mean cross-entropy. */
static void step(struct linear *m, double rate)
{
    for (int n = 0; n < BATCH; n++) {
        double p[CLASSES];
        probabilities(m, n, p);
        for (int c = 0; c < CLASSES; c++) {
            double off = rate / BATCH * (p[c] - (m->label[n] == c));
            m->bias[c] -= off;
            for (int k = 0; k < PIXELS; k++)
                m->weight[c][k] -= off * (double)m->image[n * PIXELS + k];
        }
    }
}

static double learn(void (*take_samples)(struct linear *m, int64_t first, bool held_out))
{
    struct linear *m = calloc(1, sizeof(*m));
    assert_non_null(m);
    m->image = calloc(BATCH * PIXELS, sizeof(float));
    assert_non_null(m->image);
    m->g = graph_new("images");
    graph_input(m->g, "image", DTYPE_F32, shape_of(BATCH, 3, SIZE, SIZE), (struct fill){0});
    graph_input(m->g, "label", DTYPE_I64, shape_of(BATCH),
                (struct fill){.kind = FILL_INDEX, .b = CLASSES});
    for (int64_t k = 0; k < STEPS; k++) {
        take_samples(m, k * BATCH, false);
        step(m, 0.01);
    }
    int right = 0;
    for (int64_t k = 0; k < HELD_OUT; k++) {
        take_samples(m, k * BATCH, true);
        for (int n = 0; n < BATCH; n++) {
            double p[CLASSES];
            int best = 0;
            probabilities(m, n, p);
            for (int c = 1; c < CLASSES; c++)
                best = p[c] > p[best] ? c : best;
            right += best == m->label[n];
        }
    }
    graph_free(m->g);
    free(m->image);
    free(m);
    return right / (double)(HELD_OUT * BATCH);
}

TEST(a_linear_model_cannot_tell_them_apart)
{
    double share = learn(take);
    print_message("%.3f of the held-out images\n", share);
    assert_true(share < 0.6);
}

TEST(it_can_where_lines_do_not_move)
{
    assert_true(learn(take_still) > 0.99);
}
