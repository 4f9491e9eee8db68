/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/layers.h"

#include <math.h>
#include <stdio.h>

#include "base/numbers/integers.h"
#include "base/system/hash.h"
#include "engine/train/train.h"

const char *const thin_choices[] = {"1", "2", "4", "8", "16", NULL};

const char *name_of(struct graph *g, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    const char *copy = arena_strdup(&g->arena, text);
    return copy ? copy : "";
}

int64_t dim_of(const struct graph *g, int x, int axis)
{
    if (g->failed || x == NONE)
        return 1;
    const struct shape *shape = &g->values[x].shape;
    return shape->dim[axis < 0 ? shape->rank + axis : axis];
}

static struct fill uniform(double bound)
{
    return (struct fill){.kind = FILL_UNIFORM, .a = -bound, .b = bound};
}

/* A weight that is there already is shared. */
static int weight(struct graph *g, const char *name, const char *part, struct shape shape,
                  struct fill fill)
{
    const char *full = name_of(g, "%s.%s", name, part);
    int known = graph_find_value(g, full);
    bool same = known != NONE && g->values[known].kind == VALUE_PARAM &&
                shape_equal(&g->values[known].shape, &shape);
    return same ? known : graph_param(g, full, DTYPE_F32, shape, fill);
}

/* Padding before the first pixel so that ceil(in / stride) windows fit; the rest goes after the
 * last. */
static int64_t pads_same(int64_t in, const struct window2d *w, int64_t *after)
{
    int64_t out = divide_up(in, w->stride);
    int64_t total = (out - 1) * w->stride + w->kernel - in;
    total = total > 0 ? total : 0;
    *after = total - total / 2;
    return total / 2;
}

int image_input(struct graph *g, int64_t batch, int64_t height, int64_t width)
{
    return graph_input(g, "image", DTYPE_F32, shape_of(batch, 3, height, width),
                       (struct fill){.kind = FILL_IMAGE, .a = 0, .b = 0.6});
}

int layer_conv2d(struct graph *g, int x, const struct conv2d *c)
{
    int64_t in = dim_of(g, x, 1), k = c->kernel, stride = c->stride ? c->stride : 1;
    int64_t dilation = c->dilation ? c->dilation : 1;
    double gain = c->gain > 0 ? c->gain : 1;
    double bound = gain * sqrt(6.0 / (double)(in * k * k)); /* He: variance 2 / fan in */
    int w = weight(g, c->name, "weight", shape_of(c->out, in, k, k), uniform(bound));
    int b = c->bias ? weight(g, c->name, "bias", shape_of(c->out), uniform(0.05)) : NONE;
    struct window2d p = {(k - 1) * dilation + 1, stride, c->pad, c->pad, c->pad, c->pad};
    if (c->same) {
        p.top = pads_same(dim_of(g, x, 2), &p, &p.bottom);
        p.left = pads_same(dim_of(g, x, 3), &p, &p.right);
    }
    return graph_node(g, "Conv", c->name, c->bias ? 3 : 2, (const int[]){x, w, b},
                      ATTRS(attr_ints_of("kernel_shape", k, k),
                            attr_ints_of("strides", stride, stride),
                            attr_ints_of("dilations", dilation, dilation),
                            attr_ints_of("pads", p.top, p.left, p.bottom, p.right)));
}

/* A running statistic of a normalisation that learns: what it is before the step, and what a layer
 * of this name has made of it so far. */
struct running {
    int before, now;
};

static struct running running(struct graph *g, const char *name, const char *part,
                              struct shape channels, double first)
{
    const char *full = name_of(g, "%s.%s", name, part);
    int before = graph_find_value(g, full), state = graph_state_of(g, before);
    if (before == NONE || state == NONE)
        before = graph_state(g, full, DTYPE_F32, channels,
                             (struct fill){.kind = FILL_CONST, .a = first});
    bool changed = state != NONE && g->states[state].after != NONE;
    return (struct running){before, changed ? g->states[state].after : before};
}

/* Scale 1 and offset 0 to begin with, as published; running = 0.9 running + 0.1 batch. */
static int batch_norm_learning(struct graph *g, int x, const char *name, double epsilon)
{
    struct shape channels = shape_of(dim_of(g, x, 1));
    int s = weight(g, name, "weight", channels, (struct fill){.kind = FILL_CONST, .a = 1});
    int b = weight(g, name, "bias", channels, (struct fill){.kind = FILL_CONST, .a = 0});
    struct running mean = running(g, name, "running_mean", channels, 0);
    struct running var = running(g, name, "running_var", channels, 1);
    int results[5];
    graph_node_many(g, "BatchNormalization", name, INPUTS(x, s, b, mean.now, var.now),
                    ATTRS(attr_float("epsilon", epsilon), attr_float("momentum", 0.9),
                          attr_int("training_mode", 1)),
                    5, results);
    graph_state_after(g, mean.before, results[1]);
    graph_state_after(g, var.before, results[2]);
    return results[0];
}

int batch_norm(struct graph *g, int x, const char *name, double epsilon, double gain)
{
    if (g->training)
        return batch_norm_learning(g, x, name, epsilon);
    struct shape channels = shape_of(dim_of(g, x, 1));
    struct fill scale = {.kind = FILL_UNIFORM, .a = 0.8 * gain, .b = 1.2 * gain};
    struct fill spread = {.kind = FILL_UNIFORM, .a = 0.8, .b = 1.2};
    int s = weight(g, name, "weight", channels, scale);
    int b = weight(g, name, "bias", channels, uniform(0.1));
    int mean = weight(g, name, "running_mean", channels, uniform(0.1));
    int var = weight(g, name, "running_var", channels, spread);
    return graph_node(g, "BatchNormalization", name, INPUTS(x, s, b, mean, var),
                      ATTRS(attr_float("epsilon", epsilon)));
}

int layer_norm(struct graph *g, int x, const char *name, double epsilon)
{
    struct shape width = shape_of(dim_of(g, x, -1));
    struct fill spread = {.kind = FILL_UNIFORM, .a = 0.8, .b = 1.2};
    struct fill zero = {.kind = FILL_CONST, .a = 0};
    if (g->training) /* as published */
        spread = (struct fill){.kind = FILL_CONST, .a = 1};
    int s = weight(g, name, "weight", width, spread);
    int b = weight(g, name, "bias", width, g->training ? zero : uniform(0.1));
    return graph_node(g, "LayerNormalization", name, INPUTS(x, s, b),
                      ATTRS(attr_int("axis", -1), attr_float("epsilon", epsilon)));
}

static int dropout_along(struct graph *g, int x, const char *name, double ratio, int64_t axis)
{
    if (!g->training || ratio == 0)
        return x;
    return graph_node(g, "RandomDropout", name, INPUTS(x, train_steps(g)), axis ? 3 : 2,
                      (const struct attr[]){attr_float("ratio", ratio),
                                            attr_int("seed", (int64_t)(hash_fnv1a(name) >> 1)),
                                            attr_int("axis", axis)});
}

int dropout(struct graph *g, int x, const char *name, double ratio)
{
    return dropout_along(g, x, name, ratio, 0);
}

int dropout_in_time(struct graph *g, int x, const char *name, double ratio)
{
    return dropout_along(g, x, name, ratio, 1);
}

int relu(struct graph *g, int x)
{
    return graph_node(g, "Relu", NULL, INPUTS(x), NO_ATTRS);
}

int softmax(struct graph *g, int x, int64_t axis)
{
    return graph_node(g, "Softmax", NULL, INPUTS(x), ATTRS(attr_int("axis", axis)));
}

int sigmoid(struct graph *g, int x)
{
    return graph_node(g, "Sigmoid", NULL, INPUTS(x), NO_ATTRS);
}

int add(struct graph *g, int a, int b)
{
    return graph_node(g, "Add", NULL, INPUTS(a, b), NO_ATTRS);
}

int mul(struct graph *g, int a, int b)
{
    return graph_node(g, "Mul", NULL, INPUTS(a, b), NO_ATTRS);
}

int gelu_tanh(struct graph *g, int x)
{
    int cube = graph_node(g, "Pow", NULL, INPUTS(x, graph_const_f32(g, 3.0f)), NO_ATTRS);
    int inner = add(g, x, mul(g, cube, graph_const_f32(g, 0.044715f)));
    inner = mul(g, inner, graph_const_f32(g, 0.7978845608f));
    int bell = graph_node(g, "Tanh", NULL, INPUTS(inner), NO_ATTRS);
    bell = add(g, bell, graph_const_f32(g, 1.0f));
    return mul(g, mul(g, x, graph_const_f32(g, 0.5f)), bell);
}

static int pool(struct graph *g, const char *op, int x, const struct window2d *w)
{
    return graph_node(g, op, NULL, INPUTS(x),
                      ATTRS(attr_ints_of("kernel_shape", w->kernel, w->kernel),
                            attr_ints_of("strides", w->stride, w->stride),
                            attr_ints_of("pads", w->top, w->left, w->bottom, w->right)));
}

int max_pool(struct graph *g, int x, struct window2d w)
{
    return pool(g, "MaxPool", x, &w);
}

int average_pool(struct graph *g, int x, struct window2d w)
{
    return pool(g, "AveragePool", x, &w);
}

int global_average_pool(struct graph *g, int x)
{
    return graph_node(g, "GlobalAveragePool", NULL, INPUTS(x), NO_ATTRS);
}

int flatten(struct graph *g, int x)
{
    return graph_node(g, "Flatten", NULL, INPUTS(x), ATTRS(attr_int("axis", 1)));
}

int dense_scaled(struct graph *g, int x, const char *name, int64_t out, double gain)
{
    int64_t in = dim_of(g, x, -1);
    double bound = gain * sqrt(6.0 / (double)(in + out)); /* Glorot */
    int w = weight(g, name, "weight", shape_of(in, out), uniform(bound));
    int b = weight(g, name, "bias", shape_of(out), uniform(0.05));
    return add(g, graph_node(g, "MatMul", name, INPUTS(x, w), NO_ATTRS), b);
}

int dense(struct graph *g, int x, const char *name, int64_t out)
{
    return dense_scaled(g, x, name, out, 1);
}

int embedding(struct graph *g, int ids, const char *name, int64_t rows, int64_t width)
{
    int table = weight(g, name, "weight", shape_of(rows, width), uniform(0.5));
    return graph_node(g, "Gather", name, INPUTS(table, ids), ATTRS(attr_int("axis", 0)));
}

int reshape(struct graph *g, int x, int rank, const int64_t *dim)
{
    return graph_node(g, "Reshape", NULL, INPUTS(x, graph_const_i64(g, rank, dim)), NO_ATTRS);
}

int transpose(struct graph *g, int x, int rank, const int64_t *perm)
{
    return graph_node(g, "Transpose", NULL, INPUTS(x), ATTRS(attr_ints("perm", rank, perm)));
}

int concat(struct graph *g, int64_t axis, int count, const int *values)
{
    return graph_node(g, "Concat", NULL, count, values, ATTRS(attr_int("axis", axis)));
}

int cast(struct graph *g, int x, enum dtype to)
{
    /* ONNX's numbers of the types that graphs here cast to */
    static const int64_t codes[] = {
        [DTYPE_F32] = 1, [DTYPE_I32] = 6, [DTYPE_I64] = 7, [DTYPE_BOOL] = 9, [DTYPE_BF16] = 16};
    int64_t code = (int)to < ARRAY_COUNT(codes) ? codes[to] : 0; /* 0: Cast refuses it */
    return graph_node(g, "Cast", NULL, INPUTS(x), ATTRS(attr_int("to", code)));
}

int unary(struct graph *g, const char *op, int x)
{
    return graph_node(g, op, NULL, INPUTS(x), NO_ATTRS);
}

int binary(struct graph *g, const char *op, int a, int b)
{
    return graph_node(g, op, NULL, INPUTS(a, b), NO_ATTRS);
}

int slice(struct graph *g, int x, struct range r)
{
    int start = graph_const_i64(g, 1, &r.start), stop = graph_const_i64(g, 1, &r.stop);
    int axis = graph_const_i64(g, 1, &r.axis);
    int step = graph_const_i64(g, 1, r.step ? &r.step : (const int64_t[]){1});
    return graph_node(g, "Slice", NULL, INPUTS(x, start, stop, axis, step), NO_ATTRS);
}

int gather(struct graph *g, int x, int ids, int64_t axis)
{
    return graph_node(g, "Gather", NULL, INPUTS(x, ids), ATTRS(attr_int("axis", axis)));
}

int one_hot(struct graph *g, int ids, int64_t depth)
{
    const float off_on[2] = {0, 1};
    int range = graph_const(g, NULL, DTYPE_F32, shape_of(2), off_on);
    int size = graph_const_i64(g, -1, &depth);
    return graph_node(g, "OneHot", NULL, INPUTS(ids, size, range), ATTRS(attr_int("axis", -1)));
}

int resize_bilinear(struct graph *g, int x, int64_t height, int64_t width)
{
    int64_t size[] = {dim_of(g, x, 0), dim_of(g, x, 1), height, width};
    return graph_node(g, "Resize", NULL, INPUTS(x, NONE, NONE, graph_const_i64(g, 4, size)),
                      ATTRS(attr_string("mode", "linear"),
                            attr_string("coordinate_transformation_mode", "asymmetric")));
}
