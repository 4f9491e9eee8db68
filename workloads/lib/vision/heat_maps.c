/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/heat_maps.h"

#include <math.h>

#include "workloads/lib/layers.h"
#include "workloads/lib/vision/poses.h"

enum { BORDER = 10, BLUR = 2 * BORDER + 1 };

struct size {
    int64_t height, width;
};

static struct size size_of(const struct graph *g, int x)
{
    return (struct size){dim_of(g, x, 2), dim_of(g, x, 3)};
}

/* OpenCV's, of a Gaussian that is given its taps alone. */
static double deviation(int64_t taps)
{
    return 0.3 * ((double)(taps - 1) * 0.5 - 1) + 0.8;
}

int heat_maps_flipped(struct graph *g, int x)
{
    return slice(g, x, (struct range){3, -1, INT64_MIN + 1, -1});
}

int heat_maps_averaged(struct graph *g, int maps)
{
    const int64_t crops = dim_of(g, maps, 0) / 2;
    int64_t swap[POSE_JOINTS] = {0};
    for (int64_t k = 1; k < POSE_JOINTS; k++)
        swap[k] = k % 2 ? k + 1 : k - 1;
    int there = slice(g, maps, (struct range){0, 0, crops, 1});
    int back = heat_maps_flipped(g, slice(g, maps, (struct range){0, crops, 2 * crops, 1}));
    back = gather(g, back, graph_const_i64(g, POSE_JOINTS, swap), 1);
    return mul(g, add(g, there, back), graph_const_f32(g, 0.5f));
}

/* A Gaussian of 21 taps with the deviation that OpenCV gives it, one axis at a time; the maps get a
 * border of zeros as wide as its radius. */
static int blur(struct graph *g, int maps)
{
    const double sigma = deviation(BLUR);
    const int64_t joints = dim_of(g, maps, 1);
    double bell[BLUR], sum = 0;
    float *taps = arena_array(&g->arena, (size_t)(joints * BLUR), sizeof(*taps));
    for (int k = 0; k < BLUR; k++)
        sum += bell[k] = exp(-(k - BORDER) * (k - BORDER) / (2 * sigma * sigma));
    for (int64_t k = 0; taps && k < joints * BLUR; k++)
        taps[k] = (float)(bell[k % BLUR] / sum);
    int down = graph_const(g, "blur.down", DTYPE_F32, shape_of(joints, 1, BLUR, 1), taps);
    int across = graph_const(g, "blur.across", DTYPE_F32, shape_of(joints, 1, 1, BLUR), taps);
    maps = graph_node(g, "Conv", "blur.rows", INPUTS(maps, down),
                      ATTRS(attr_int("group", joints), attr_ints_of("kernel_shape", BLUR, 1),
                            attr_ints_of("pads", 2 * BORDER, 0, 2 * BORDER, 0)));
    return graph_node(g, "Conv", "blur.columns", INPUTS(maps, across),
                      ATTRS(attr_int("group", joints), attr_ints_of("kernel_shape", 1, BLUR),
                            attr_ints_of("pads", 0, 2 * BORDER, 0, 2 * BORDER)));
}

static int column(struct graph *g, int x, int64_t k)
{
    return slice(g, x, (struct range){2, k, k + 1, 1});
}

/* One coordinate of the joints: the first peak, a quarter of an element towards the second one. */
static int refine_peak(struct graph *g, int coordinate, int distance, int64_t size)
{
    int step = binary(g, "Sub", column(g, coordinate, 1), column(g, coordinate, 0));
    step = mul(g, binary(g, "Div", step, distance), graph_const_f32(g, 0.25f));
    int at = add(g, binary(g, "Sub", column(g, coordinate, 0), graph_const_f32(g, BORDER)), step);
    return graph_node(g, "Clip", NULL,
                      INPUTS(at, graph_const_f32(g, 0), graph_const_f32(g, (float)(size - 1))),
                      NO_ATTRS);
}

struct joints heat_maps_read(struct graph *g, int maps)
{
    struct size size = size_of(g, maps);
    int64_t crops = dim_of(g, maps, 0), wide = size.width + 2 * BORDER, joints = dim_of(g, maps, 1);
    int top[2], two = graph_const_i64(g, 1, (const int64_t[]){2});
    int flat = reshape(g, blur(g, maps), 3, (const int64_t[]){crops, joints, -1});
    graph_node_many(g, "TopK", "peaks", INPUTS(flat, two), ATTRS(attr_int("axis", 2)), 2, top);

    int width = graph_const_i64(g, -1, &wide);
    int row = binary(g, "Div", top[1], width);
    int y = cast(g, row, DTYPE_F32);
    int x = cast(g, binary(g, "Sub", top[1], mul(g, row, width)), DTYPE_F32);
    int dx = binary(g, "Sub", column(g, x, 1), column(g, x, 0));
    int dy = binary(g, "Sub", column(g, y, 1), column(g, y, 0));
    int distance = unary(g, "Sqrt", add(g, mul(g, dx, dx), mul(g, dy, dy)));
    x = refine_peak(g, x, distance, size.width);
    y = refine_peak(g, y, distance, size.height);

    /* Maps are trained to reach HEAT_PEAK; the score is read where the joint is. */
    int at = add(g, mul(g, unary(g, "Round", y), graph_const_f32(g, (float)size.width)),
                 unary(g, "Round", x));
    int plain = reshape(g, maps, 3, (const int64_t[]){crops, joints, -1});
    int score = graph_node(g, "GatherElements", NULL, INPUTS(plain, cast(g, at, DTYPE_I64)),
                           ATTRS(attr_int("axis", 2)));
    score = add(g, mul(g, score, graph_const_f32(g, 1.0f / HEAT_PEAK)), graph_const_f32(g, 0.5f));

    int four = graph_const_f32(g, HEAT_STRIDE), half = graph_const_f32(g, HEAT_STRIDE / 2);
    int parts[] = {add(g, mul(g, x, four), half), add(g, mul(g, y, four), half), score};
    return (struct joints){concat(g, 2, 3, parts), score};
}

/* ---- what is to be learnt ---- */

/* Of one coordinate [N, JOINTS, 1]: a bell along an axis of a map, [N, JOINTS, size]. */
static int bell(struct graph *g, int at, int64_t size, int64_t taps)
{
    double sigma = deviation(taps);
    float *place = arena_array(&g->arena, (size_t)size, sizeof(*place));
    for (int64_t k = 0; place && k < size; k++)
        place[k] = (float)k;
    int middle = binary(g, "Sub", at, graph_const_f32(g, HEAT_STRIDE / 2));
    middle = unary(g, "Round", mul(g, middle, graph_const_f32(g, 1.0f / HEAT_STRIDE)));
    int axis = graph_const(g, NULL, DTYPE_F32, shape_of(1, 1, size), place);
    int off = binary(g, "Sub", axis, middle);
    int y = mul(g, mul(g, off, off), graph_const_f32(g, (float)(-0.5 / (sigma * sigma))));
    int reach = graph_const_f32(g, (float)(taps / 2));
    int near = binary(g, "LessOrEqual", unary(g, "Abs", off), reach);
    return mul(g, unary(g, "Exp", y), cast(g, near, DTYPE_F32));
}

int heat_maps_drawn(struct graph *g, int x, int y, int like, int64_t taps)
{
    struct size size = size_of(g, like);
    int64_t crops = dim_of(g, x, 0), joints = dim_of(g, x, 1);
    int down = mul(g, bell(g, y, size.height, taps), graph_const_f32(g, HEAT_PEAK));
    down = reshape(g, down, 4, (const int64_t[]){crops, joints, size.height, 1});
    int across = reshape(g, bell(g, x, size.width, taps), 4,
                         (const int64_t[]){crops, joints, 1, size.width});
    return mul(g, down, across);
}
