/* SPDX-License-Identifier: Apache-2.0
 * NonMaxSuppression: per image and class the best boxes that overlap no better one by more than a
 * threshold (intersection over union), as rows [image, class, box]. The result is padded with zero
 * rows to the most there can be; output 1 says how many are real. */
#include <stdlib.h>

#include "engine/ops/compute/sort.h"
#include "engine/ops/lib/op_args.h"

static const char *const attrs[] = {"center_point_box", NULL};

enum { BOXES, SCORES, LIMIT, IOU, LEAST_SCORE };

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct int_list limit;
    const struct shape *boxes = &c->in[BOXES]->shape, *scores = &c->in[SCORES]->shape;
    if (boxes->rank != 3 || scores->rank != 3 || boxes->dim[2] != 4 ||
        boxes->dim[0] != scores->dim[0] || boxes->dim[1] != scores->dim[2]) {
        char a[96], b[96];
        return FAIL(err, STATUS_FAILED, "NonMaxSuppression takes [N,B,4] and [N,C,B], not %s, %s",
                    shape_text(boxes, a), shape_text(scores, b));
    }
    int64_t each = infer_has(c, LIMIT) ? boxes->dim[1] : 0;
    if (infer_has(c, LIMIT) && value_is_fixed(c->in[LIMIT]) && c->in[LIMIT]->data) {
        TRY(args_ints(&args, LIMIT, NULL, &limit, err));
        if (limit.count == 1 && limit.at[0] < each)
            each = limit.at[0] < 0 ? 0 : limit.at[0];
    }
    struct shape y = shape_of(scores->dim[0] * scores->dim[1] * each, 3), scalar = shape_scalar();
    infer_set(c, 0, DTYPE_I64, &y);
    infer_set(c, 1, DTYPE_I64, &scalar);
    return STATUS_OK;
}

static int count_axis(const struct infer *c, int output)
{
    (void)c;
    return output == 0 ? 0 : -1;
}

struct box {
    double y1, x1, y2, x2;
};

static struct box box_of(const double *at, bool center)
{
    struct box box = {at[0], at[1], at[2], at[3]};
    if (center) /* x, y, width, height */
        return (struct box){at[1] - at[3] / 2, at[0] - at[2] / 2, at[1] + at[3] / 2,
                            at[0] + at[2] / 2};
    if (box.y1 > box.y2)
        box = (struct box){box.y2, box.x1, box.y1, box.x2};
    if (box.x1 > box.x2)
        box = (struct box){box.y1, box.x2, box.y2, box.x1};
    return box;
}

static double overlap(const struct box *a, const struct box *b)
{
    double height = (a->y2 < b->y2 ? a->y2 : b->y2) - (a->y1 > b->y1 ? a->y1 : b->y1);
    double width = (a->x2 < b->x2 ? a->x2 : b->x2) - (a->x1 > b->x1 ? a->x1 : b->x1);
    if (height <= 0 || width <= 0)
        return 0;
    double both = height * width;
    double all = (a->y2 - a->y1) * (a->x2 - a->x1) + (b->y2 - b->y1) * (b->x2 - b->x1) - both;
    return all > 0 ? both / all : 0;
}

struct search {
    const double *boxes, *scores; /* of this image and class */
    int64_t count, limit;
    double iou, least;
    bool has_least, center;
    int64_t *order; /* room for 3 * count */
};

static bool better(const void *context, int64_t a, int64_t b)
{
    const double *scores = context;
    return scores[a] > scores[b];
}

static bool is_free(const struct search *s, int64_t candidate, const int64_t *kept, int64_t count)
{
    struct box box = box_of(s->boxes + candidate * 4, s->center);
    for (int64_t k = 0; k < count; k++) {
        struct box other = box_of(s->boxes + kept[k] * 4, s->center);
        if (overlap(&box, &other) > s->iou)
            return false;
    }
    return true;
}

/* The chosen boxes of one image and class, best first; returns how many. */
static int64_t choose(const struct search *s, int64_t *kept)
{
    int64_t candidates = 0, count = 0;
    for (int64_t k = 0; k < s->count; k++)
        if (!s->has_least || s->scores[k] > s->least)
            s->order[candidates++] = k;
    sort_indices(s->order, candidates, s->order + s->count, better, s->scores);
    for (int64_t k = 0; k < candidates && count < s->limit; k++)
        if (is_free(s, s->order[k], kept, count))
            kept[count++] = s->order[k];
    return count;
}

static const struct ref_tensor *optional(const struct ref_call *call, int input)
{
    const struct ref_tensor *t = input < call->in_count ? call->in[input] : NULL;
    return t && t->count ? t : NULL;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct shape *scores = &call->in[SCORES]->shape;
    const struct ref_tensor *limit = optional(call, LIMIT), *iou = optional(call, IOU);
    const struct ref_tensor *least = optional(call, LEAST_SCORE), *y = call->out[0];
    struct search s = {.count = scores->dim[2],
                       .limit = limit ? limit->i[0] : 0,
                       .iou = iou ? iou->f[0] : 0,
                       .least = least ? least->f[0] : 0,
                       .has_least = least != NULL,
                       .center = node_int(call->node, "center_point_box", 0) != 0};
    s.order = malloc((size_t)(s.count + 1) * 3 * sizeof(*s.order));
    if (!s.order)
        return FAIL_NO_MEMORY(err);
    int64_t *kept = s.order + 2 * s.count, total = 0;
    for (int64_t line = 0; line < scores->dim[0] * scores->dim[1]; line++) {
        int64_t image = line / scores->dim[1];
        s.boxes = call->in[BOXES]->f + image * s.count * 4;
        s.scores = call->in[SCORES]->f + line * s.count;
        int64_t found = choose(&s, kept);
        for (int64_t k = 0; y && k < found; k++) {
            y->i[(total + k) * 3] = image;
            y->i[(total + k) * 3 + 1] = line % scores->dim[1];
            y->i[(total + k) * 3 + 2] = kept[k];
        }
        total += found;
    }
    if (call->out_count > 1 && call->out[1])
        call->out[1]->i[0] = total;
    free(s.order);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "many",
     .inputs = "f32[2,30,4]{0:1} f32[2,3,30]{0:1} i64[1]=5 f32[1]=0.3 f32[1]=0.2",
     .outputs = 2},
    {.name = "center",
     .inputs = "f32[1,20,4]{0.1:1} f32[1,1,20] i64[1]=20 f32[1]=0.5",
     .attrs = "center_point_box=1",
     .outputs = 2},
    {.name = "none", .inputs = "f32[1,4,4] f32[1,1,4]", .outputs = 2},
    {.name = "long",
     .inputs = "f32[1,300,4]{0:1} f32[1,2,300]{0:1} i64[1]=200 f32[1]=0.6",
     .outputs = 2},
    /* Boxes that hardly overlap: nearly all are kept, of several runs and tiles. */
    {.name = "small_boxes",
     .inputs = "f32[2,2100,4]{0.02:0.9} f32[2,1,2100]{0:1} i64[1]=2000 f32[1]=0.5 f32[1]=0.1",
     .attrs = "center_point_box=1",
     .outputs = 2},
    /* Longer than what is compared at once: later candidates meet what was kept before. */
    {.name = "very_long",
     .inputs = "f32[1,4300,4]{0:1} f32[1,1,4300]{0:1} i64[1]=4300 f32[1]=0.5",
     .outputs = 2},
    {.name = "few_of_a_very_long_one",
     .inputs = "f32[1,4300,4]{0:1} f32[1,1,4300]{0:1} i64[1]=90 f32[1]=0.5",
     .outputs = 2},
    {.name = "limit_at_run_time",
     .inputs = "f32[1,150,4]{0:1} f32[1,3,150]{0:1} i64[1]{20:70} f32[1]{0.8:0.9}",
     .outputs = 2},
};

REGISTER(op, non_max_suppression) = {
    .name = "NonMaxSuppression",
    .inputs_min = 2,
    .inputs_max = 5,
    .outputs_max = 2,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .no_gradient = "its result is an index",
    OP_CASES(cases),
    .count_output = 1,
    .count_axis = count_axis,
};
