/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/regions.h"

#include "workloads/lib/limits.h"

enum { PLACES_MAX = 1024 }; /* of a map, each way */

static int64_t count(const struct graph *g, int x)
{
    return g->failed || x == NONE ? 1 : shape_count(&g->values[x].shape);
}

int const_f32(struct graph *g, struct shape shape, const float *data)
{
    return graph_const(g, NULL, DTYPE_F32, shape, data);
}

int entry(struct graph *g, int x, int64_t k)
{
    return gather(g, x, graph_const_i64(g, -1, &k), 0);
}

int by_place(struct graph *g, int x, int64_t width)
{
    int64_t images = dim_of(g, x, 0);
    x = transpose(g, x, 4, (const int64_t[]){0, 2, 3, 1});
    return width > 1 ? reshape(g, x, 3, (const int64_t[]){images, -1, width})
                     : reshape(g, x, 2, (const int64_t[]){images, -1});
}

int join(struct graph *g, int64_t axis, int count, const int *parts)
{
    return count > 1 ? concat(g, axis, count, parts) : parts[0];
}

bool regions_fit(struct graph *g, const struct workload_config *config, const char *detections)
{
    return at_most(g, "batch", config->batch, IMAGES_MAX) &&
           at_most(g, "proposals", config_int(config, "proposals"), REGIONS_MAX) &&
           (!detections || at_most(g, detections, config_int(config, detections), REGIONS_MAX));
}

bool proposals_fit(struct graph *g, int64_t keep, int64_t candidates)
{
    if (keep > candidates && !g->failed) {
        FAIL(&g->err, STATUS_FAILED,
             "proposals is %lld, but an image of this size has %lld candidates: ask for fewer, or "
             "take a larger image",
             (long long)keep, (long long)candidates);
        g->failed = true;
    }
    return !g->failed;
}

/* ---- boxes ---- */

/* Constants, added up once when constants are folded. */
int anchor_boxes(struct graph *g, const struct anchors *a)
{
    float down[PLACES_MAX * 4] = {0}, across[PLACES_MAX * 4] = {0};
    int first = a->y_first;
    for (int64_t k = 0; k < PLACES_MAX; k++) {
        down[k * 4 + !first] = down[k * 4 + 2 + !first] = (float)(k * a->stride);
        across[k * 4 + first] = across[k * 4 + 2 + first] = (float)(k * a->stride);
    }
    if (!at_most(g, "the height of a map", a->rows, PLACES_MAX) ||
        !at_most(g, "the width of a map", a->columns, PLACES_MAX))
        return NONE;
    int y = const_f32(g, shape_of(a->rows, 1, 1, 4), down);
    int x = const_f32(g, shape_of(1, a->columns, 1, 4), across);
    int boxes = const_f32(g, shape_of(1, 1, a->count, 4), a->boxes);
    return reshape(g, add(g, add(g, y, x), boxes), 2, (const int64_t[]){-1, 4});
}

static int half_of(struct graph *g, int x, int64_t first)
{
    return slice(g, x, (struct range){-1, first, first + 2, 1});
}

int decode_boxes(struct graph *g, int boxes, int deltas, float extent)
{
    int half = graph_const_f32(g, 0.5f), low = half_of(g, boxes, 0);
    int size = binary(g, "Sub", half_of(g, boxes, 2), low);
    if (extent != 0)
        size = add(g, size, graph_const_f32(g, extent));
    int centre = add(g, low, mul(g, size, half));
    centre = add(g, mul(g, half_of(g, deltas, 0), size), centre);
    size = mul(g, mul(g, unary(g, "Exp", half_of(g, deltas, 2)), size), half);
    int corners[] = {binary(g, "Sub", centre, size), add(g, centre, size)};
    return concat(g, -1, 2, corners);
}

int clip_boxes(struct graph *g, int boxes, const float low[4], const float high[4])
{
    boxes = binary(g, "Max", boxes, const_f32(g, shape_of(4), low));
    return binary(g, "Min", boxes, const_f32(g, shape_of(4), high));
}

/* ---- choice ---- */

int kept_scores(struct graph *g, int boxes, int scores, const struct suppression *s)
{
    static const float high_corner[] = {0, 0, 1, 1};
    int64_t k = dim_of(g, scores, 2), classes = dim_of(g, scores, 1);
    if (s->pixels)
        boxes = add(g, boxes, const_f32(g, shape_of(4), high_corner));
    int chosen = graph_node(g, "NonMaxSuppression", NULL,
                            INPUTS(boxes, scores, graph_const_i64(g, 1, &s->limit),
                                   const_f32(g, shape_of(1), &s->iou),
                                   const_f32(g, shape_of(1), (const float[]){0})),
                            NO_ATTRS);
    /* rows [image, class, box] -> places in scores */
    const int64_t steps[] = {classes * k, k, 1};
    int place = NONE;
    for (int64_t column = 0; column < 3; column++) {
        int part = slice(g, chosen, (struct range){1, column, column + 1, 1});
        part = mul(g, part, graph_const_i64(g, -1, &steps[column]));
        place = column ? add(g, place, part) : part;
    }
    place = reshape(g, place, 1, (const int64_t[]){-1});
    int flat = reshape(g, scores, 1, (const int64_t[]){-1});
    return graph_node(g, "ScatterElements", NULL,
                      INPUTS(mul(g, flat, graph_const_f32(g, 0)), place, gather(g, flat, place, 0)),
                      NO_ATTRS);
}

/* The `keep` best of kept [C K]: places among them and whether each is real, 1 or 0, [keep, 1]. */
struct best {
    int score, place, real;
};

static struct best best_kept(struct graph *g, int kept, int64_t keep)
{
    struct best b;
    int top[2] = {NONE, NONE};
    graph_node_many(g, "TopK", NULL, INPUTS(kept, graph_const_i64(g, 1, &keep)), NO_ATTRS, 2, top);
    b.score = reshape(g, top[0], 2, (const int64_t[]){keep, 1});
    b.place = top[1];
    b.real = cast(g, binary(g, "Greater", b.score, graph_const_f32(g, 0)), DTYPE_F32);
    return b;
}

int propose(struct graph *g, int boxes, int scores, int64_t keep, const struct suppression *s)
{
    int64_t k = dim_of(g, boxes, 0);
    int kept = kept_scores(g, reshape(g, boxes, 3, (const int64_t[]){1, k, 4}),
                           reshape(g, scores, 3, (const int64_t[]){1, 1, k}), s);
    struct best best = best_kept(g, kept, keep);
    return mul(g, gather(g, boxes, best.place, 0), best.real);
}

int detections(struct graph *g, int kept, int boxes, int64_t classes, int64_t keep)
{
    int64_t each = count(g, kept) / classes;
    struct best best = best_kept(g, kept, keep);
    int per_class = graph_const_i64(g, -1, &each);
    int label = binary(g, "Div", best.place, per_class), row = best.place;
    if (dim_of(g, boxes, 0) == each)
        row = binary(g, "Sub", row, mul(g, label, per_class));
    label = reshape(g, cast(g, label, DTYPE_F32), 2, (const int64_t[]){keep, 1});
    int columns[] = {label, best.score, gather(g, boxes, row, 0)};
    return mul(g, concat(g, 1, 3, columns), best.real);
}

/* ---- regions of maps ---- */

/* Boxes as RoiAlign with one sample per bin must get them to read the map where crop_and_resize
 * does: it samples the middle of bins, so a region reaches half a step beyond its first and last
 * sample; half_pixel takes 0.5 away. A linear map per axis, y1 x1 y2 x2 -> x1 y1 x2 y2. */
static int sampled_region(struct graph *g, int boxes, int map, int64_t size)
{
    float matrix[4][4] = {{0}};
    for (int axis = 0; axis < 2; axis++) { /* y, x */
        float span = (float)(dim_of(g, map, 2 + axis) - 1), step = span / (float)(size - 1);
        matrix[axis][1 - axis] = span + step / 2;
        matrix[2 + axis][1 - axis] = -step / 2;
        matrix[axis][3 - axis] = span + step / 2 - (float)size * step;
        matrix[2 + axis][3 - axis] = (float)size * step - step / 2;
    }
    int linear = const_f32(g, shape_of(4, 4), matrix[0]);
    int region = graph_node(g, "MatMul", NULL, INPUTS(boxes, linear), NO_ATTRS);
    return add(g, region, graph_const_f32(g, 0.5f));
}

static int crop_region(struct graph *g, int map, int region, int images, int64_t size)
{
    return graph_node(g, "RoiAlign", NULL, INPUTS(map, region, images),
                      ATTRS(attr_int("output_height", size), attr_int("output_width", size),
                            attr_int("sampling_ratio", 1),
                            attr_string("coordinate_transformation_mode", "half_pixel")));
}

int crop_and_resize(struct graph *g, int map, int boxes, int images, int64_t size)
{
    return crop_region(g, map, sampled_region(g, boxes, map, size), images, size);
}

static int image_numbers(struct graph *g, int64_t regions, int64_t image)
{
    int64_t number[REGIONS_MAX];
    for (int64_t k = 0; k < regions && k < REGIONS_MAX; k++)
        number[k] = image;
    return graph_const_i64(g, (int)regions, number);
}

int crop_pyramid(struct graph *g, const struct pyramid *p, int boxes, int level, int64_t size)
{
    /* A region far off its map is all zeros, so that the crops of all levels can be added. */
    int away = graph_const_f32(g, -1e4f), image = image_numbers(g, dim_of(g, boxes, 0), p->image);
    int sum = NONE;
    for (int k = 0; k < p->levels; k++) {
        int here = binary(g, "Equal", level, graph_const_f32(g, (float)k));
        int region = sampled_region(g, boxes, p->maps[k], size);
        region = graph_node(g, "Where", NULL, INPUTS(here, region, away), NO_ATTRS);
        int crop = crop_region(g, p->maps[k], region, image, size);
        sum = k ? add(g, sum, crop) : crop;
    }
    return sum;
}
