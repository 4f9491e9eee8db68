/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/pose_loss.h"

#include "workloads/lib/layers.h"
#include "workloads/lib/losses.h"
#include "workloads/lib/vision/heat_maps.h"
#include "workloads/lib/vision/poses.h"

enum { HARDEST = 8 };

struct targets {
    int x, y, seen, labelled; /* [N, POSE_JOINTS, 1]; the last two are 1 or 0 */
    int64_t height;
};

static struct targets targets_of(struct graph *g, int64_t crops, int64_t height)
{
    int joints = graph_input(g, "joints", DTYPE_F32, shape_of(crops, POSE_JOINTS, POSE_NUMBERS),
                             (struct fill){.kind = FILL_UNIFORM, .a = 0, .b = 2});
    struct targets t = {.height = height};
    t.x = slice(g, joints, (struct range){2, 0, 1, 1});
    t.y = slice(g, joints, (struct range){2, 1, 2, 1});
    int sight = slice(g, joints, (struct range){2, 2, 3, 1});
    t.seen = cast(g, binary(g, "Greater", sight, graph_const_f32(g, 1.1f)), DTYPE_F32);
    t.labelled = cast(g, binary(g, "Greater", sight, graph_const_f32(g, 0.1f)), DTYPE_F32);
    return t;
}

/* Finer maps have narrower peaks: 9, 13, 17 and 23 taps for a height of 384, 7 to 15 for 256. */
static int64_t taps_of(const struct targets *t, int level)
{
    static const int64_t taps[POSE_LEVELS] = {9, 13, 17, 23};
    int64_t odd = taps[level] * t->height / 768 * 2 + 1;
    return odd < 3 ? 3 : odd;
}

/* Half of the mean over all levels of squared errors, where joints that are hidden have empty maps.
 */
static int global_loss(struct graph *g, const int maps[POSE_LEVELS], const struct targets *t)
{
    const int64_t column[] = {dim_of(g, t->seen, 0), POSE_JOINTS, 1, 1};
    int seen = reshape(g, t->seen, 4, column), sum = NONE;
    for (int k = 0; k < POSE_LEVELS; k++) {
        int target = mul(g, heat_maps_drawn(g, t->x, t->y, maps[k], taps_of(t, k)), seen);
        int error = mean_squared_error(g, maps[k], target);
        sum = k ? add(g, sum, error) : error;
    }
    return mul(g, sum, graph_const_f32(g, 0.5f / POSE_LEVELS));
}

/* The mean of the errors of each person's HARDEST joints; what is not in the picture has none. */
static int refine_loss(struct graph *g, int refined, const struct targets *t)
{
    const int64_t row[] = {dim_of(g, t->seen, 0), POSE_JOINTS}, hardest = HARDEST;
    int target = heat_maps_drawn(g, t->x, t->y, refined, taps_of(t, 0)), top[2];
    int error = binary(g, "Sub", refined, target);
    int each = graph_node(g, "ReduceMean", NULL, INPUTS(mul(g, error, error)),
                          ATTRS(attr_ints_of("axes", 2, 3), attr_int("keepdims", 0)));
    each = mul(g, each, reshape(g, t->labelled, 2, row));
    graph_node_many(g, "TopK", "hardest", INPUTS(each, graph_const_i64(g, 1, &hardest)), NO_ATTRS,
                    2, top);
    int least = slice(g, top[0], (struct range){1, HARDEST - 1, HARDEST, 1});
    int hard = binary(g, "GreaterOrEqual", each, least);
    each = graph_node(g, "Where", NULL, INPUTS(hard, each, graph_const_f32(g, 0)), NO_ATTRS);
    return mul(g, sum_of(g, each), graph_const_f32(g, 1 / (float)(HARDEST * row[0])));
}

int pose_loss(struct graph *g, const int maps[POSE_LEVELS], int refined, int64_t height)
{
    struct targets targets = targets_of(g, dim_of(g, refined, 0), height);
    return add(g, global_loss(g, maps, &targets), refine_loss(g, refined, &targets));
}
