/* SPDX-License-Identifier: Apache-2.0
 * What detectors are trained to say: MatchPriors against a detector that says just that, and by
 * hand; HardNegatives by hand. */

#include <math.h>

#include "engine/graph/op_list.h"
#include "engine/reference/reference.h"
#include "tests/lib/unit.h"

enum { IMAGES = 3, BOXES = 5, GRID = 12, SIDES = 2, PRIORS = GRID * GRID * SIDES, CLASSES = 4 };

static void run(struct graph *g, struct ref_tensor *outputs)
{
    MUST(graph_check, g);
    MUST(reference_run, g, NULL, outputs, NULL);
}

static int scene(struct graph *g, float *boxes, int64_t *labels)
{
    for (int k = 0; k < IMAGES * BOXES; k++) {
        float x = 0.1f + 0.17f * (float)(k % BOXES), y = 0.07f * (float)(k * 5 % 9);
        float *box = boxes + (ptrdiff_t)k * 4;
        box[0] = x;
        box[1] = y;
        box[2] = x + 0.11f + 0.01f * (float)(k % 3);
        box[3] = y + 0.21f - 0.01f * (float)(k % 4);
        labels[k] = k == 7 ? 0 : 1 + k % (CLASSES - 1);
    }
    return graph_const(g, "boxes", DTYPE_F32, shape_of(IMAGES, BOXES, 4), boxes);
}

static int grid(struct graph *g)
{
    float priors[PRIORS][4];
    for (int k = 0; k < PRIORS; k++) {
        float side = k % SIDES ? 0.2f : 0.1f;
        priors[k][0] = ((float)(k / SIDES % GRID) + 0.5f) / GRID;
        priors[k][1] = ((float)(k / SIDES / GRID) + 0.5f) / GRID;
        priors[k][2] = side;
        priors[k][3] = 1.5f * side;
    }
    return graph_const(g, "priors", DTYPE_F32, shape_of(PRIORS, 4), priors);
}

static bool is_box(const double *found, const float *box)
{
    bool same = true;
    for (int e = 0; e < 4; e++)
        same = same && fabs(found[e] - (double)box[e]) < 1e-6;
    return same;
}

/* A detector that is sure of the target classes and places finds each box, and nothing else. */
TEST(targets_decode_to_the_boxes)
{
    float boxes[IMAGES * BOXES * 4];
    int64_t labels[IMAGES * BOXES], found[IMAGES * BOXES] = {0};
    int target[2], detected[2];
    struct ref_tensor out[2];
    struct graph *g = graph_new("targets");
    int box = scene(g, boxes, labels), priors = grid(g);
    int label = graph_const(g, "labels", DTYPE_I64, shape_of(IMAGES, BOXES), labels);
    graph_node_many(g, op_match_priors.name, NULL, INPUTS(box, label, priors),
                    ATTRS(attr_float("threshold", 0.4)), 2, target);
    int depth = graph_const_i64(g, -1, (const int64_t[]){CLASSES});
    int values = graph_const(g, "values", DTYPE_F32, shape_of(2), (const float[]){0, 0.9f});
    int scores = graph_node(g, op_one_hot.name, NULL, INPUTS(target[0], depth, values), NO_ATTRS);
    graph_node_many(g, op_detection_output.name, NULL, INPUTS(target[1], scores, priors),
                    ATTRS(attr_int("keep", 50), attr_float("score_threshold", 0.5)), 2, detected);
    graph_output(g, detected[0]);
    graph_output(g, detected[1]);
    run(g, out);
    for (int n = 0; n < IMAGES; n++) {
        assert_int_equal(out[1].i[n], n == 7 / BOXES ? BOXES - 1 : BOXES);
        for (int k = 0; k < out[1].i[n]; k++) {
            const double *row = out[0].f + (n * 50 + k) * 7;
            for (int b = n * BOXES; b < (n + 1) * BOXES; b++)
                found[b] += (int64_t)row[1] == labels[b] && is_box(row + 3, boxes + b * 4);
        }
    }
    for (int b = 0; b < IMAGES * BOXES; b++)
        assert_int_equal(found[b], b != 7);
    ref_release(&out[0]);
    ref_release(&out[1]);
    graph_free(g);
}

/* Overlaps with the box [0, 0, 1, 1]: 1/2, 1/4, 0.3, none; the box's own prior is the first. */
TEST(priors_between_two_thresholds_are_ignored)
{
    static const float priors[] = {0.5f,  0.25f, 1,    0.5f, 0.25f, 0.25f, 0.5f, 0.5f,
                                   0.15f, 0.5f,  0.3f, 1,    3,     3,     1,    1};
    static const float box[] = {0, 0, 1, 1};
    struct ref_tensor out[2];
    for (int best = 0; best < 2; best++) {
        int target[2];
        struct graph *g = graph_new("thresholds");
        int b = graph_const(g, "box", DTYPE_F32, shape_of(1, 1, 4), box);
        int l = graph_const(g, "label", DTYPE_I64, shape_of(1, 1), (const int64_t[]){3});
        int p = graph_const(g, "priors", DTYPE_F32, shape_of(4, 4), priors);
        graph_node_many(g, op_match_priors.name, NULL, INPUTS(b, l, p),
                        ATTRS(attr_float("threshold", 0.6), attr_float("background", 0.28),
                              attr_int("best", best)),
                        2, target);
        graph_output(g, target[0]);
        graph_output(g, target[1]);
        run(g, out);
        assert_memory_equal(out[0].i, ((int64_t[]){best ? 3 : -1, 0, -1, 0}), 4 * sizeof(int64_t));
        /* centre 0.5 below that of the prior, of whose height it is twice; variances 0.1, 0.2 */
        const double offset[4] = {0, best * 0.25 / 0.5 / 0.1, 0, best * log(2) / 0.2};
        for (int k = 0; k < 16; k++)
            assert_true(fabs(out[1].f[k] - (k < 4 ? offset[k] : 0)) < 1e-6);
        ref_release(&out[0]);
        ref_release(&out[1]);
        graph_free(g);
    }
}

TEST(negatives_with_the_largest_losses_count)
{
    static const float losses[] = {0.5f, 9, 0.1f, 2, 2, 3, 2, 0.2f, 1, 1, 1, 1, 1, 1, 1, 1};
    static const int64_t classes[] = {4, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    static const int64_t flags[] = {1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    struct ref_tensor out[1];
    struct graph *g = graph_new("negatives");
    int l = graph_const(g, "losses", DTYPE_F32, shape_of(2, 8), losses);
    int c = graph_const(g, "classes", DTYPE_I64, shape_of(2, 8), classes);
    graph_output(g, graph_node(g, op_hard_negatives.name, NULL, INPUTS(l, c), NO_ATTRS));
    run(g, out);
    assert_memory_equal(out[0].i, flags, sizeof(flags));
    ref_release(&out[0]);
    graph_free(g);
}
