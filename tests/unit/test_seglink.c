/* SPDX-License-Identifier: Apache-2.0
 * What SegLink is to say of a page is what its decoder finds the lines of the page by; how found
 * lines are counted. */

#include <math.h>
#include <string.h>

#include "base/registry.h"
#include "engine/compile/compile.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/vision/pages.h"
#include "workloads/lib/vision/seglink.h"

enum { PAGES = 24, SIDE = 192, PAGE = PAGE_WORDS * PAGE_NUMBERS, BOX = 5 };
enum { CELLS = 24 * 24 + 12 * 12 + 6 * 6 + 3 * 3 + 2 * 2 + 1 };

/* Logits that are as sure as need be of classes [N, K]. */
static int sure_of(struct graph *g, int classes)
{
    const int64_t column[] = {PAGES, -1, 1};
    int zero = graph_const_i64(g, -1, (const int64_t[]){0});
    int on = reshape(g, cast(g, binary(g, "Greater", classes, zero), DTYPE_F32), 3, column);
    int off = binary(g, "Sub", graph_const_f32(g, 1), on);
    return mul(g, concat(g, 2, 2, (const int[]){off, on}), graph_const_f32(g, 10));
}

/* Lines found where all cells and links say what they are to. */
static struct graph *perfect(void)
{
    static const double anchors[] = {11.842, 23.684, 45, 90, 150, 285};
    struct graph *g = graph_new("perfect");
    struct seglink net = {.batch = PAGES, .height = SIDE, .width = SIDE};
    for (int l = 0, side = SIDE / 8; l < SEGLINK_LAYERS; l++, side = (side + 1) / 2)
        net.layers[l] = (struct seglink_layer){side, side, l == 0 ? 8 : 12, anchors[l]};
    graph_input(g, "image", DTYPE_F32, shape_of(PAGES, 3, SIDE, SIDE), (struct fill){0});
    int words = graph_input(g, "words", DTYPE_F32, shape_of(PAGES, PAGE_WORDS, PAGE_NUMBERS),
                            (struct fill){0});
    struct seglink_targets t = seglink_targets(g, &net, words);
    net.segments = sure_of(g, t.cells);
    net.links = sure_of(g, t.links);
    net.offsets = t.offsets;
    int outputs[2];
    seglink_decode(g, &net, outputs);
    graph_output(g, outputs[0]);
    return g;
}

static double found(struct exe *exe, const float *boxes)
{
    struct judged j = {boxes, exe_input(exe, 1), DTYPE_F32, (int64_t)PAGES * CELLS * BOX,
                       (int64_t)PAGES * PAGE};
    return quality_words.of(&j);
}

TEST(targets_are_what_the_decoder_reads)
{
    struct exe *exe;
    struct exe_options options = {.threads = 1, .no_tune = true};
    struct graph *g = perfect();
    MUST(graph_check, g);
    MUST(exe_new, g, &options, &exe);
    void *data[] = {exe_input(exe, 0), exe_input(exe, 1)};
    pages_fill(&(struct batch){.graph = g, .data = data, .size = PAGES});
    exe_run(exe);
    const float *boxes = exe_output(exe, 0);
    assert_true(found(exe, boxes) == 1);

    /* Not the first line of the first page, and one where there is nothing. */
    static float other[PAGES * CELLS * BOX];
    assert_int_equal(shape_count(&g->values[g->outputs[0]].shape), ARRAY_COUNT(other));
    memcpy(other, boxes, sizeof(other));
    other[0] += 1000;
    double lines = 0;
    for (int k = 0; k < PAGES * PAGE_WORDS; k++)
        lines += ((const float *)data[1])[k * PAGE_NUMBERS + 2] > 0;
    assert_true(lines > PAGES);
    assert_true(fabs(found(exe, other) - (lines - 1) / lines) < 1e-12);
    exe_graph_free(exe, g);
}

/* A square of 2 x 2 on its corner, and upright ones in it: of 1.5 the corners stick out, and 0.56
 * is common; of 1.38 there is 0.48. */
TEST(overlap_of_boxes_that_are_turned)
{
    const float half = 0.70710678f;
    float words[PAGE] = {5, 5, 2, 2, half, half}, box[BOX] = {5, 5, 1.5f, 1.5f, 0};
    struct judged j = {box, words, DTYPE_F32, BOX, PAGE};
    assert_true(quality_words.of(&j) == 1);
    box[2] = box[3] = 1.38f;
    assert_true(quality_words.of(&j) == 0);
    box[4] = 0.78539816f; /* turned alike */
    assert_true(quality_words.of(&j) == 0);
    box[2] = box[3] = 1.42f;
    assert_true(quality_words.of(&j) == 1);
    words[2] = 0;
    assert_true(isnan(quality_words.of(&j)));
}
