/* SPDX-License-Identifier: Apache-2.0
 * What regions are to say is what the detectors' decoder reads: offsets of a region lead to its
 * object, in pixels that belong to boxes and in parts of the image. */

#include <math.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/vision/region_loss.h"
#include "workloads/lib/vision/regions.h"
#include "workloads/lib/vision/scenes.h"

enum { SIDE = 96, CLASSES = 9, PROPOSALS = 300, COUNT = 64, POSITIVES = 32 };

static const struct region_rule rule = {.name = "regions",
                                        .count = COUNT,
                                        .positives = POSITIVES,
                                        .object = 0.5,
                                        .background = 0.5,
                                        .variance = {0.1, 0.2},
                                        .beta = 1};

/* Outputs: classes, numbers of objects, decoded boxes, boxes of objects. */
static struct graph *decoded(double size, float extent, bool y_first)
{
    static const float deviation[4] = {0.1f, 0.1f, 0.2f, 0.2f};
    const double sides[] = {size, size};
    struct graph *g = graph_new("decoded");
    graph_input(g, "image", DTYPE_F32, shape_of(1, 3, SIDE, SIDE), (struct fill){0});
    int objects = scenes_objects(g, 1, CLASSES);
    int low = graph_input(g, "low", DTYPE_F32, shape_of(PROPOSALS, 2),
                          (struct fill){.kind = FILL_UNIFORM, .a = 0, .b = 0.6 * size});
    int far = graph_input(g, "far", DTYPE_F32, shape_of(PROPOSALS, 2),
                          (struct fill){.kind = FILL_UNIFORM, .a = 0.2 * size, .b = 0.4 * size});
    struct region_truth truth = region_truth(g, objects, sides, y_first);
    int proposals = concat(g, 1, 2, (const int[]){low, add(g, low, far)});
    struct region_sample s = region_sample(g, &rule, &truth, 0, proposals, extent);
    int deltas = mul(g, s.offsets, const_f32(g, shape_of(4), deviation));
    graph_output(g, s.classes);
    graph_output(g, s.objects);
    graph_output(g, decode_boxes(g, s.boxes, deltas, extent));
    graph_output(g, entry(g, truth.boxes, 0));
    return g;
}

static void check(double size, float extent, bool y_first)
{
    struct exe *exe;
    struct exe_options options = {.threads = 1, .no_tune = true};
    struct graph *g = decoded(size, extent, y_first);
    MUST(graph_check, g);
    MUST(exe_new, g, &options, &exe);
    void *data[] = {exe_input(exe, 0), exe_input(exe, 1), NULL, NULL};
    scenes_fill(&(struct batch){.graph = g, .data = data, .first = 3, .size = 1});
    exe_run(exe);
    const int64_t *classes = exe_output(exe, 0), *numbers = exe_output(exe, 1);
    const float *boxes = exe_output(exe, 2), *truth = exe_output(exe, 3), *objects = data[1];
    int positive = 0, negative = 0;
    for (int k = 0; k < COUNT; k++) {
        positive += numbers[k] > 0;
        negative += numbers[k] == 0;
        assert_true(numbers[k] > 0 ? k < POSITIVES : classes[k] == numbers[k]);
        if (numbers[k] <= 0)
            continue;
        assert_true((float)classes[k] == objects[(numbers[k] - 1) * SCENE_NUMBERS + 4]);
        for (int i = 0; i < 4; i++) {
            float edge = truth[(numbers[k] - 1) * 4 + i];
            assert_true(fabsf(boxes[k * 4 + i] - edge) < 1e-4f * (float)size);
        }
    }
    assert_true(positive > 0 && negative == COUNT - positive);
    exe_graph_free(exe, g);
}

TEST(offsets_lead_to_objects_in_pixels)
{
    check(SIDE, 1, false);
}

TEST(offsets_lead_to_objects_in_parts_of_the_image)
{
    check(1, 0, true);
}
