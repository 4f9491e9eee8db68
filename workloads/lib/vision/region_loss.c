/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/region_loss.h"

#include "base/system/hash.h"
#include "engine/train/train.h"
#include "workloads/lib/layers.h"
#include "workloads/lib/losses.h"
#include "workloads/lib/vision/detector_loss.h"
#include "workloads/lib/vision/regions.h"
#include "workloads/lib/vision/scenes.h"

static int whole(struct graph *g, int64_t value)
{
    return graph_const_i64(g, -1, &value);
}

static int where(struct graph *g, int condition, int x, int y)
{
    return graph_node(g, "Where", NULL, INPUTS(condition, x, y), NO_ATTRS);
}

struct region_truth region_truth(struct graph *g, int objects, const double size[2], bool y_first)
{
    const int64_t order[] = {y_first, !y_first, 2 + y_first, 2 + !y_first};
    const float sides[2] = {(float)size[!y_first], (float)size[y_first]};
    const float scale[] = {sides[0], sides[1], sides[0], sides[1]};
    int64_t images = dim_of(g, objects, 0);
    struct region_truth t;
    int corners = gather(g, objects, graph_const_i64(g, 4, order), 2);
    t.boxes = mul(g, corners, const_f32(g, shape_of(4), scale));
    int labels = slice(g, objects, (struct range){2, 4, SCENE_NUMBERS, 1});
    t.labels = cast(g, reshape(g, labels, 2, (const int64_t[]){images, SCENE_OBJECTS}), DTYPE_I64);
    return t;
}

static int corner(struct graph *g, int boxes, int64_t first)
{
    return slice(g, boxes, (struct range){-1, first, first + 2, 1});
}

int region_priors(struct graph *g, int boxes, float extent)
{
    int low = corner(g, boxes, 0), size = binary(g, "Sub", corner(g, boxes, 2), low);
    if (extent != 0)
        size = add(g, size, graph_const_f32(g, extent));
    int centre = add(g, low, mul(g, size, graph_const_f32(g, 0.5f)));
    return concat(g, -1, 2, (const int[]){centre, size});
}

/* ---- what places are to say, and which are drawn ---- */

struct targets {
    int classes, offsets; /* [N, P], [N, P, 4] */
};

static struct targets match(struct graph *g, const struct region_rule *rule, int boxes, int labels,
                            int priors)
{
    int out[2] = {NONE, NONE};
    graph_node_many(
        g, "MatchPriors", NULL, INPUTS(boxes, labels, priors),
        ATTRS(attr_float("threshold", rule->object), attr_float("background", rule->background),
              attr_float("variance_xy", rule->variance[0]),
              attr_float("variance_size", rule->variance[1]), attr_int("best", rule->best)),
        2, out);
    int side = graph_node(g, "ReduceMin", NULL, INPUTS(corner(g, priors, 2)),
                          ATTRS(attr_ints_of("axes", 1), attr_int("keepdims", 0)));
    int real = binary(g, "Greater", side, graph_const_f32(g, 0));
    return (struct targets){where(g, real, out[0], whole(g, -1)), out[1]};
}

struct drawn {
    int places, classes; /* i64 [N, count] */
};

/* For `classes` [N, P] of images from k on, of a batch of `images`. */
static struct drawn draw(struct graph *g, const struct region_rule *rule, int64_t k, int64_t images,
                         int classes)
{
    int out[2] = {NONE, NONE}, step = g->training ? train_steps(g) : whole(g, 0);
    const char *name = name_of(g, "%s%d", rule->name, (int)k);
    graph_node_many(g, "SampleTargets", name, INPUTS(classes, step),
                    ATTRS(attr_int("count", rule->count), attr_int("positives", rule->positives),
                          attr_float("ratio", rule->ratio),
                          attr_int("seed", (int64_t)(hash_fnv1a(rule->name) >> 1)),
                          attr_int("first", k), attr_int("batch", images)),
                    2, out);
    return (struct drawn){out[0], out[1]};
}

/* Rows of x [N, P, C] at places [N, K]: [N K, C]. */
static int rows_at(struct graph *g, int x, int places)
{
    int64_t images = dim_of(g, x, 0), count = dim_of(g, x, 1), width = dim_of(g, x, 2);
    int64_t first[IMAGES_MAX] = {0};
    for (int64_t k = 0; k < images && k < IMAGES_MAX; k++)
        first[k] = k * count;
    int start = graph_const(g, NULL, DTYPE_I64, shape_of(images, 1), first);
    int rows = reshape(g, add(g, places, start), 1, (const int64_t[]){-1});
    return gather(g, reshape(g, x, 2, (const int64_t[]){-1, width}), rows, 0);
}

/* ---- losses ---- */

/* The mean of those that count. */
static int class_loss(struct graph *g, int logits, int classes)
{
    return graph_node(g, "SoftmaxCrossEntropyLoss", NULL, INPUTS(logits, classes),
                      ATTRS(attr_string("reduction", "mean"), attr_int("ignore_index", -1)));
}

static int loss_of(struct graph *g, const struct region_rule *rule, int logits, int classes,
                   int deltas, int offsets)
{
    int positive = is_positive(g, classes), counts = positive;
    if (!rule->mean)
        counts = cast(g, binary(g, "Greater", classes, whole(g, -1)), DTYPE_F32);
    int column = reshape(g, positive, 2, (const int64_t[]){-1, 1});
    int apart = sum_of(g, mul(g, smooth_l1_of_each(g, deltas, offsets, rule->beta), column));
    int count = binary(g, "Max", sum_of(g, counts), graph_const_f32(g, 1));
    if (rule->mean)
        count = mul(g, count, graph_const_f32(g, 4));
    return add(g, class_loss(g, logits, classes), binary(g, "Div", apart, count));
}

int anchor_loss(struct graph *g, const struct region_rule *rule, const struct region_truth *truth,
                int priors, int logits, int deltas)
{
    int any = binary(g, "Min", truth->labels, whole(g, 1));
    struct targets t = match(g, rule, truth->boxes, any, priors);
    struct drawn d = draw(g, rule, 0, dim_of(g, logits, 0), t.classes);
    int classes = reshape(g, d.classes, 1, (const int64_t[]){-1});
    return loss_of(g, rule, rows_at(g, logits, d.places), classes, rows_at(g, deltas, d.places),
                   rows_at(g, t.offsets, d.places));
}

struct region_sample region_sample(struct graph *g, const struct region_rule *rule,
                                   const struct region_truth *truth, int64_t k, int proposals,
                                   float extent)
{
    const float less[] = {0, 0, extent, extent};
    const int64_t one[] = {1, SCENE_OBJECTS, 4}, row[] = {1, SCENE_OBJECTS}, flat = -1;
    int64_t number[SCENE_OBJECTS];
    for (int b = 0; b < SCENE_OBJECTS; b++)
        number[b] = b + 1;
    int boxes = entry(g, truth->boxes, k), labels = entry(g, truth->labels, k);
    int corners = binary(g, "Sub", boxes, const_f32(g, shape_of(4), less));
    int all = concat(g, 0, 2, (const int[]){proposals, corners});
    all = graph_node(g, "StopGradient", NULL, INPUTS(all), NO_ATTRS);
    /* Of no size: what fills the proposals up, and objects that are none. */
    int high = graph_node(g, "ReduceMax", NULL, INPUTS(all),
                          ATTRS(attr_ints_of("axes", 1), attr_int("keepdims", 1)));
    int real = cast(g, binary(g, "Greater", high, graph_const_f32(g, 0)), DTYPE_F32);
    int priors = mul(g, region_priors(g, all, extent), real);

    int numbers = where(g, binary(g, "Greater", labels, whole(g, 0)),
                        graph_const_i64(g, SCENE_OBJECTS, number), whole(g, 0));
    struct targets t =
        match(g, rule, reshape(g, boxes, 3, one), reshape(g, numbers, 2, row), priors);
    struct drawn d = draw(g, rule, k, dim_of(g, truth->labels, 0), t.classes);
    /* Classes of numbers -1, 0, 1 ... */
    int table =
        concat(g, 0, 2, (const int[]){graph_const_i64(g, 2, (const int64_t[]){-1, 0}), labels});
    struct region_sample s = {.objects = reshape(g, d.classes, 1, &flat)};
    s.classes = gather(g, table, add(g, s.objects, whole(g, 1)), 0);
    s.boxes = gather(g, all, reshape(g, d.places, 1, &flat), 0);
    s.offsets = rows_at(g, t.offsets, d.places);
    return s;
}

int rows_of_classes(struct graph *g, int x, int classes, int64_t count)
{
    int64_t rows = dim_of(g, classes, 0);
    int64_t *start = arena_array(&g->arena, (size_t)rows + 1, sizeof(*start));
    for (int64_t r = 0; start && r < rows; r++)
        start[r] = r * count;
    int at = graph_const(g, NULL, DTYPE_I64, shape_of(rows), start);
    return gather(g, x, add(g, at, binary(g, "Max", classes, whole(g, 0))), 0);
}

int region_loss(struct graph *g, const struct region_rule *rule, int logits, int deltas,
                int classes, int offsets)
{
    int64_t count = dim_of(g, logits, 1);
    int rows = reshape(g, deltas, 2, (const int64_t[]){-1, 4});
    return loss_of(g, rule, logits, classes, rows_of_classes(g, rows, classes, count), offsets);
}
