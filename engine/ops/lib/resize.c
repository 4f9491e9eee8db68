/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/resize.h"

#include <math.h>
#include <string.h>

/* ---- reading the node ---- */

/* Position of the node's word in a NULL-terminated list. */
static enum status word_of(const struct node *node, const char *attr, const char *const *words,
                           int *index, struct error *err)
{
    const char *given = node_string(node, attr, words[0]);
    for (int k = 0; words[k]; k++) {
        if (strcmp(words[k], given) == 0) {
            *index = k;
            return STATUS_OK;
        }
    }
    return UNSUPPORTED(err, "%s \"%s\" of %s", attr, given, node->op->name);
}

static enum status words_of(const struct node *node, struct resize *r, struct error *err)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear", NULL};
    static const char *const coordinates[] = {
        "half_pixel",           "pytorch_half_pixel", "align_corners",        "asymmetric",
        "tf_half_pixel_for_nn", "tf_crop_and_resize", "half_pixel_symmetric", NULL};
    static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                          "ceil", NULL};
    int mode, coordinate, rounding;
    TRY(word_of(node, "mode", modes, &mode, err));
    TRY(word_of(node, "coordinate_transformation_mode", coordinates, &coordinate, err));
    TRY(word_of(node, "nearest_mode", nearest, &rounding, err));
    r->mode = mode == 3 ? RESIZE_LINEAR : (enum resize_mode)mode;
    r->coordinate = r->simple ? RESIZE_ASYMMETRIC : (enum resize_coordinate)coordinate;
    r->nearest = (enum resize_nearest)rounding;
    r->cubic_a = node_float(node, "cubic_coeff_a", -0.75);
    r->exclude_outside = node_int(node, "exclude_outside", 0) != 0;
    r->extrapolation = node_float(node, "extrapolation_value", 0);
    if (node_int(node, "antialias", 0) != 0)
        return UNSUPPORTED(err, "antialias of Resize");
    const char *policy = node_string(node, "keep_aspect_ratio_policy", "stretch");
    if (strcmp(policy, "stretch") != 0)
        return UNSUPPORTED(err, "keep_aspect_ratio_policy \"%s\" of Resize", policy);
    return STATUS_OK;
}

/* What the inputs say, per listed axis. */
struct numbers {
    int axis_count, axis[RANK_MAX];
    int scale_count, roi_count;
    double scale[RANK_MAX], roi[2 * RANK_MAX];
    struct int_list sizes;
};

static enum status axes_of(const struct op_args *args, const struct shape *x, struct numbers *n,
                           struct error *err)
{
    struct int_list axes;
    TRY(args_ints(args, NONE, "axes", &axes, err));
    n->axis_count = axes.count < 0 ? x->rank : axes.count;
    if (n->axis_count > x->rank)
        return FAIL(err, STATUS_FAILED, "%d axes of Resize for rank %d", n->axis_count, x->rank);
    for (int k = 0; k < n->axis_count && k < RANK_MAX; k++) {
        n->axis[k] = axes.count < 0 ? k : shape_axis(x, axes.at[k]);
        if (n->axis[k] < 0)
            return FAIL(err, STATUS_FAILED, "axes of Resize do not fit rank %d", x->rank);
    }
    return STATUS_OK;
}

static enum status numbers_of(const struct op_args *args, const struct resize *r, struct numbers *n,
                              struct error *err)
{
    TRY(axes_of(args, args_in(args, 0), n, err));
    n->sizes.count = -1;
    n->roi_count = -1;
    if (r->simple)
        return args_floats(args, 1, "scales", n->scale, RANK_MAX, &n->scale_count, err);
    if (r->coordinate == RESIZE_TF_CROP_AND_RESIZE)
        TRY(args_floats(args, 1, NULL, n->roi, 2 * RANK_MAX, &n->roi_count, err));
    TRY(args_floats(args, 2, NULL, n->scale, RANK_MAX, &n->scale_count, err));
    return args_ints(args, 3, NULL, &n->sizes, err);
}

/* What is resized: input 0. A gradient has that of the result there and says the shape. */
static struct shape image_of(const struct op_args *args)
{
    struct shape image = *args_in(args, 0);
    node_ints(args->node, "output_shape", image.dim, image.rank);
    return image;
}

static enum status set_axis(struct resize *r, const struct numbers *n, int k, struct error *err)
{
    struct resize_axis *axis = &r->axes[n->axis[k]];
    if (n->sizes.count > 0) {
        axis->out = n->sizes.at[k];
        axis->scale = (float)axis->out / (float)axis->in;
    } else {
        axis->scale = (float)n->scale[k];
        axis->out = (int64_t)floorf(axis->scale * (float)axis->in);
    }
    if (n->roi_count > 0) {
        axis->roi_start = (float)n->roi[k];
        axis->roi_end = (float)n->roi[n->axis_count + k];
    }
    if (!(axis->scale > 0) || axis->out < 0)
        return FAIL(err, STATUS_FAILED, "axis %d: %lld elements cannot become %lld (scale %g)",
                    n->axis[k], (long long)axis->in, (long long)axis->out, (double)axis->scale);
    return STATUS_OK;
}

enum status resize_of_node(const struct op_args *args, struct resize *r, struct error *err)
{
    struct numbers n;
    const struct shape image = image_of(args), *x = &image;
    *r = (struct resize){.rank = x->rank};
    /* X and scales, an input or an attribute: as before opset 11. */
    r->simple = args->in_count <= 2;
    TRY(words_of(args->node, r, err));
    TRY(numbers_of(args, r, &n, err));
    for (int k = 0; k < x->rank; k++)
        r->axes[k] = (struct resize_axis){
            .in = x->dim[k], .out = x->dim[k], .scale = 1, .roi_start = 0, .roi_end = 1};
    int given = n.sizes.count > 0 ? n.sizes.count : n.scale_count;
    if (given != n.axis_count ||
        (r->coordinate == RESIZE_TF_CROP_AND_RESIZE && n.roi_count != 2 * n.axis_count))
        return FAIL(err, STATUS_FAILED, "%d scales or sizes and %d bounds of roi for %d axes",
                    given, n.roi_count, n.axis_count);
    for (int k = 0; k < n.axis_count; k++)
        TRY(set_axis(r, &n, k, err));
    return STATUS_OK;
}

enum status resize_of_query(const struct kernel_query *q, struct resize *resize, struct error *err)
{
    struct op_args args = args_of_query(q);
    return resize_of_node(&args, resize, err);
}

enum status resize_of_rows(const struct resize *r, struct error *why)
{
    if (r->mode == RESIZE_CUBIC || r->coordinate == RESIZE_TF_CROP_AND_RESIZE)
        return UNSUPPORTED(why, "only nearest and linear, without extrapolation");
    if (r->rank != 3 && r->rank != 4)
        return UNSUPPORTED(why, "rank %d, not 3 or 4", r->rank);
    for (int k = 0; k < 2; k++)
        if (r->axes[k].in != r->axes[k].out || r->axes[k].scale != 1)
            return UNSUPPORTED(why, "axis %d is resized", k);
    for (int k = 2; k < r->rank; k++)
        if (r->axes[k].in > INT32_MAX || r->axes[k].out > INT32_MAX)
            return UNSUPPORTED(why, "axis %d is longer than 2^31", k);
    return STATUS_OK;
}

/* ---- coordinates ---- */

static float original(const struct resize *r, const struct resize_axis *axis, int64_t out)
{
    float x = (float)out, in = (float)axis->in, scale = axis->scale;
    float length = scale * in; /* of the result, before it was cut to whole elements */
    switch (r->coordinate) {
    case RESIZE_HALF_PIXEL:
        return (x + 0.5f) / scale - 0.5f;
    case RESIZE_PYTORCH_HALF_PIXEL:
        return axis->out > 1 ? (x + 0.5f) / scale - 0.5f : 0;
    case RESIZE_ALIGN_CORNERS:
        return axis->out == 1 ? 0 : x * (in - 1) / (length - 1);
    case RESIZE_ASYMMETRIC:
        return x / scale;
    case RESIZE_TF_HALF_PIXEL_FOR_NN:
        return (x + 0.5f) / scale;
    case RESIZE_TF_CROP_AND_RESIZE:
        if (axis->out > 1)
            return axis->roi_start * (in - 1) +
                   x * (axis->roi_end - axis->roi_start) * (in - 1) / (float)(axis->out - 1);
        return 0.5f * (axis->roi_start + axis->roi_end) * (in - 1);
    case RESIZE_HALF_PIXEL_SYMMETRIC:
        return in / 2 * (1 - (float)axis->out / length) + (x + 0.5f) / scale - 0.5f;
    }
    return x;
}

static int64_t clamp(int64_t at, int64_t size)
{
    return at < 0 ? 0 : at >= size ? size - 1 : at;
}

static float nearest(const struct resize *r, const struct resize_axis *axis, float at)
{
    if (r->simple)
        return axis->scale < 1 ? ceilf(at) : floorf(at);
    switch (r->nearest) {
    case RESIZE_ROUND_PREFER_FLOOR:
        return ceilf(at - 0.5f);
    case RESIZE_ROUND_PREFER_CEIL:
        return floorf(at + 0.5f);
    case RESIZE_FLOOR:
        return floorf(at);
    case RESIZE_CEIL:
        return ceilf(at);
    }
    return at;
}

/* Weights of the cubic convolution at distances 1 + t, t, 1 - t and 2 - t (Keys, 1981). */
static void cubic_weights(double a, double t, double weight[4])
{
    double u = 1 - t;
    weight[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
    weight[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    weight[2] = ((a + 2) * u - (a + 3)) * u * u + 1;
    weight[3] = ((a * (u + 1) - 5 * a) * (u + 1) + 8 * a) * (u + 1) - 4 * a;
}

/* Drops taps of no weight, clamps the others into the axis, makes up for excluded ones. */
static void settle(const struct resize *r, int64_t size, int64_t first, struct resize_taps *taps)
{
    double sum = 0;
    int kept = 0;
    for (int k = 0; k < taps->count; k++) {
        int64_t at = first + k;
        double weight = taps->weight[k];
        if (weight == 0 || (r->exclude_outside && (at < 0 || at >= size)))
            continue;
        sum += weight;
        taps->index[kept] = clamp(at, size);
        taps->weight[kept++] = weight;
    }
    taps->count = kept;
    for (int k = 0; r->exclude_outside && k < kept; k++)
        taps->weight[k] /= sum;
}

void resize_taps_at(const struct resize *r, int index, int64_t out, struct resize_taps *taps)
{
    const struct resize_axis *axis = &r->axes[index];
    *taps = (struct resize_taps){.count = 1, .index = {out}, .weight = {1}};
    bool crop = r->coordinate == RESIZE_TF_CROP_AND_RESIZE;
    if (axis->scale == 1 && axis->in == axis->out && !crop)
        return;
    float at = original(r, axis, out);
    taps->outside = crop && (at < 0 || at > (float)(axis->in - 1));
    if (r->mode == RESIZE_NEAREST) {
        taps->index[0] = clamp((int64_t)nearest(r, axis, at), axis->in);
        return;
    }
    int64_t low = (int64_t)floorf(at);
    double t = (double)(at - (float)low);
    if (r->mode == RESIZE_LINEAR) {
        taps->count = 2;
        taps->weight[0] = 1 - t;
        taps->weight[1] = t;
        settle(r, axis->in, low, taps);
        return;
    }
    taps->count = 4;
    cubic_weights(r->cubic_a, t, taps->weight);
    settle(r, axis->in, low - 1, taps);
}

/* ---- the operators ---- */

static struct shape result_of(const struct resize *r)
{
    struct shape y = {.rank = r->rank};
    for (int k = 0; k < r->rank; k++)
        y.dim[k] = r->axes[k].out;
    return y;
}

enum status resize_infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct resize r;
    TRY(resize_of_node(&args, &r, err));
    struct shape y = result_of(&r);
    if (shape_count(&y) && !shape_count(&c->in[0]->shape))
        return FAIL(err, STATUS_FAILED, "an empty tensor cannot be resized");
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

enum status resize_gradient_infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct shape x = image_of(&args), y;
    const struct shape *dy = &c->in[0]->shape;
    struct resize r;
    char text_x[96], text_dy[96];
    TRY(resize_of_node(&args, &r, err));
    y = result_of(&r);
    if (!shape_equal(&y, dy))
        return FAIL(err, STATUS_FAILED, "%s: output_shape %s and gradient %s do not go together",
                    c->node->op->name, shape_text(&x, text_x), shape_text(dy, text_dy));
    infer_set(c, 0, c->in[0]->dtype, &x);
    return STATUS_OK;
}

/* One way through the taps of all axes: which of each. */
struct path {
    int rank, pick[RANK_MAX];
    const struct resize_taps *taps; /* per axis */
};

static double path_weight(const struct path *p)
{
    double weight = 1;
    for (int d = 0; d < p->rank; d++)
        weight *= p->taps[d].weight[p->pick[d]];
    return weight;
}

/* The element of an image that it leads to. */
static int64_t path_end(const struct path *p, const struct shape *image)
{
    int64_t at = 0;
    for (int d = 0; d < p->rank; d++)
        at = at * image->dim[d] + p->taps[d].index[p->pick[d]];
    return at;
}

/* False after the last one. */
static bool path_next(struct path *p)
{
    int d = p->rank - 1;
    while (d >= 0 && ++p->pick[d] == p->taps[d].count)
        p->pick[d--] = 0;
    return d >= 0;
}

/* The weighted sum over the taps of all axes. */
static double combine(const struct ref_tensor *x, const struct resize_taps *taps)
{
    struct path p = {.rank = x->shape.rank, .taps = taps};
    double sum = 0;
    do
        sum += path_weight(&p) * ref_get(x, path_end(&p, &x->shape));
    while (path_next(&p));
    return sum;
}

/* Whole numbers are cut off, as ONNX Runtime does, but 80.9999 (weights are floats) is 81; cubic
 * overshoot stays in the range of a byte. */
static double whole(enum dtype dtype, double value)
{
    if (dtype_is_float(dtype))
        return value;
    if (dtype == DTYPE_U8)
        value = value < 0 ? 0 : value > 255 ? 255 : value;
    return fabs(value - rint(value)) < 0x1p-10 ? rint(value) : trunc(value);
}

/* The elements of the result, one after the other, and what each is made of. */
struct walk {
    struct resize resize;
    struct resize_taps taps[RANK_MAX];
    int64_t index[RANK_MAX];
};

static enum status walk_start(const struct ref_call *call, int64_t count, struct walk *w,
                              struct error *err)
{
    struct op_args args = args_of_ref(call);
    *w = (struct walk){.index = {0}};
    TRY(resize_of_node(&args, &w->resize, err));
    for (int d = 0; count && d < w->resize.rank; d++)
        resize_taps_at(&w->resize, d, 0, &w->taps[d]);
    return STATUS_OK;
}

static void walk_on(struct walk *w)
{
    for (int d = w->resize.rank - 1; d >= 0; d--) {
        bool wraps = ++w->index[d] == w->resize.axes[d].out;
        w->index[d] = wraps ? 0 : w->index[d];
        resize_taps_at(&w->resize, d, w->index[d], &w->taps[d]);
        if (!wraps)
            break;
    }
}

static bool walk_is_outside(const struct walk *w)
{
    bool outside = false;
    for (int d = 0; d < w->resize.rank; d++)
        outside = outside || w->taps[d].outside;
    return outside;
}

enum status resize_reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *y = call->out[0];
    struct walk w;
    TRY(walk_start(call, y->count, &w, err));
    for (int64_t k = 0; k < y->count; k++, walk_on(&w)) {
        double value = w.resize.extrapolation;
        if (!walk_is_outside(&w))
            value = combine(call->in[0], w.taps);
        ref_set(y, k, whole(y->dtype, value));
    }
    return STATUS_OK;
}

enum status resize_gradient_reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *dy = call->in[0], *dx = call->out[0];
    struct walk w;
    TRY(walk_start(call, dy->count, &w, err));
    for (int64_t k = 0; k < dy->count; k++, walk_on(&w)) {
        struct path p = {.rank = dx->shape.rank, .taps = w.taps};
        if (walk_is_outside(&w))
            continue;
        do
            dx->f[path_end(&p, &dx->shape)] += path_weight(&p) * dy->f[k];
        while (path_next(&p));
    }
    return STATUS_OK;
}

void resize_cost(const struct infer *c, struct cost *cost)
{
    struct op_args args = args_of_infer(c);
    struct resize r;
    if (resize_of_node(&args, &r, NULL) != STATUS_OK || r.mode == RESIZE_NEAREST)
        return;
    struct shape y = result_of(&r);
    double each = r.mode == RESIZE_LINEAR ? 7 : 35;
    cost->elementwise += each * (double)shape_count(&y);
}
