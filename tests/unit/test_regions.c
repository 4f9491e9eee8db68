/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "engine/reference/reference.h"
#include "engine/run/exe.h"
#include "tests/lib/unit.h"
#include "workloads/lib/vision/regions.h"

enum { H = 9, W = 7, BOXES = 4, SIZE = 5 };

static const float boxes[BOXES][4] = {/* y1, x1, y2, x2 */
                                      {0, 0, 1, 1},
                                      {0.1f, 0.2f, 0.8f, 0.5f},
                                      {0.3f, 0.6f, 0.35f, 0.9f},
                                      {0, 0, 0, 0}};

/* Runs the graph's only output through the reference and frees the graph. */
static void run(struct graph *g, struct ref_tensor *out)
{
    struct error err;
    if (graph_check(g, &err) != STATUS_OK || reference_run(g, NULL, out, NULL, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    graph_free(g);
}

/* Map k holds 100 k + 10 y + x + x y: bilinear interpolation gives that function of any point. */
static int map_of(struct graph *g, int number)
{
    float data[H * W];
    for (int k = 0; k < H * W; k++) {
        int y = k / W, x = k % W;
        data[k] = (float)(100 * number + 10 * y + x + x * y);
    }
    return graph_const(g, NULL, DTYPE_F32, shape_of(1, 1, H, W), data);
}

/* TensorFlow's formula: element i of n reads low (H - 1) + i (high - low) (H - 1) / (n - 1). */
static double at(double low, double high, int i, int size)
{
    return low * (size - 1) + i * (high - low) * (size - 1) / (SIZE - 1);
}

TEST(crops_are_read_where_tensorflow_reads_them)
{
    const float level[BOXES] = {0, 1, 1, 0};
    struct graph *g = graph_new("crops");
    const int maps[] = {map_of(g, 0), map_of(g, 1)};
    struct pyramid p = {maps, 2, 0};
    int given = const_f32(g, shape_of(BOXES, 4), boxes[0]);
    graph_output(g, crop_pyramid(g, &p, given, const_f32(g, shape_of(BOXES, 1), level), SIZE));
    struct ref_tensor out;
    run(g, &out);
    assert_int_equal(out.count, BOXES * SIZE * SIZE);
    for (int k = 0; k < out.count; k++) {
        const float *box = boxes[k / (SIZE * SIZE)];
        double y = at((double)box[0], (double)box[2], k / SIZE % SIZE, H);
        double x = at((double)box[1], (double)box[3], k % SIZE, W);
        double wanted = 100 * (double)level[k / (SIZE * SIZE)] + 10 * y + x + x * y;
        if (fabs(out.f[k] - wanted) > 1e-4)
            fail_msg("element %d is %g, not %g", k, out.f[k], wanted);
    }
    ref_release(&out);
}

/* Box 1 covers most of box 0, which is worse in class 0 and better in class 1; box 2 is apart. */
TEST(suppression_keeps_the_best_of_each_class)
{
    const float corners[3][4] = {{0, 0, 10, 10}, {0, 1, 10, 11}, {50, 50, 60, 60}};
    const float scores[2][3] = {{0, 0, 0}, {0.5f, 0.9f, 0}};
    const float others[2][3] = {{0, 0, 0}, {0.7f, 0.6f, 0.1f}};
    const double kept[2][6] = {{0, 0, 0, 0, (double)0.9f, 0},
                               {0, 0, 0, (double)0.7f, 0, (double)0.1f}};
    for (int turn = 0; turn < 2; turn++) {
        const struct suppression rule = {.limit = 3, .iou = 0.5f};
        struct graph *g = graph_new("kept");
        int box = const_f32(g, shape_of(1, 3, 4), corners[0]);
        int score = const_f32(g, shape_of(1, 2, 3), turn ? others[0] : scores[0]);
        graph_output(g, kept_scores(g, box, score, &rule));
        struct ref_tensor out;
        run(g, &out);
        for (int k = 0; k < 6; k++)
            if (out.f[k] != kept[turn][k])
                fail_msg("turn %d, place %d: %g, not %g", turn, k, out.f[k], kept[turn][k]);
        ref_release(&out);
    }
}

/* Widths count both end pixels: box 10..19 is 10 wide; half its width to the right, twice as wide.
 */
TEST(deltas_move_and_scale_boxes)
{
    const float box[] = {10, 10, 19, 29}, delta[] = {0.5f, 0, logf(2), 0};
    const double wanted[] = {10, 10, 30, 30};
    struct graph *g = graph_new("decode");
    graph_output(g, decode_boxes(g, const_f32(g, shape_of(1, 4), box),
                                 const_f32(g, shape_of(1, 4), delta), 1));
    struct ref_tensor out;
    run(g, &out);
    for (int k = 0; k < 4; k++)
        assert_true(fabs(out.f[k] - wanted[k]) < 1e-5);
    ref_release(&out);
}
