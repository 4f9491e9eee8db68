/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions and products of quantised networks on the bytes themselves. DequantizeLinear, Conv
 * (Gemm, MatMul), Relu or Clip, QuantizeLinear become ConvBytes (MatMulBytes): the scales before
 * and after it, of the tensors and of the channels of its weights, are one factor per channel, and
 * so are the biases. Without QuantizeLinear after it, or with something else before that, the
 * result is floats, to which an epilogue may do more. What lies between the two may be rounded
 * otherwise than in f32, as sums may be: by the last bits. */
#include <float.h>
#include <stdlib.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/ops/lib/op_args.h"

/* A tensor of bytes with one scale and zero point. */
struct quantised {
    int value;
    double scale;
    int64_t zero;
};

/* What a node will be. */
struct product {
    struct quantised x, y; /* y.value NONE: f32 */
    int weights, bias;     /* bias NONE: 0 */
    int64_t channels, w_zero;
    int old;          /* the value in whose place it comes */
    double low, high; /* between which y is kept before it is rounded */
    float *scale, *offset;
};

static bool is_byte(const struct graph *g, int v)
{
    return g->values[v].dtype == DTYPE_U8 || g->values[v].dtype == DTYPE_I8;
}

/* ---- fixed numbers ---- */

/* Contents as doubles, malloc'd; NULL: they are not known, of another type, or no memory. */
static double *numbers_of(const struct graph *g, int v)
{
    const struct value *value = &g->values[v];
    struct ref_tensor tensor;
    if (!value_is_fixed(value))
        return NULL;
    size_t bytes = value_size(value);
    void *data = malloc(bytes + 1);
    int64_t count = shape_count(&value->shape);
    double *numbers = malloc((size_t)count * sizeof(*numbers) + 1);
    bool read = false;
    if (data && numbers) {
        value_materialise(value, data);
        read = ref_from_data(&tensor, value->dtype, &value->shape, data, NULL) == STATUS_OK;
    }
    for (int64_t k = 0; read && k < count; k++)
        numbers[k] = ref_get(&tensor, k);
    if (read)
        ref_release(&tensor);
    free(data);
    if (read)
        return numbers;
    free(numbers);
    return NULL;
}

/* The one number of all zero points; an absent input: 0. */
static bool zero_of(const struct graph *g, const struct node *node, int64_t *zero)
{
    *zero = 0;
    if (node->op_inputs < 3 || node->inputs[2] == NONE)
        return true;
    double *numbers = numbers_of(g, node->inputs[2]);
    int64_t count = shape_count(&g->values[node->inputs[2]].shape);
    bool same = numbers && count > 0;
    for (int64_t k = 1; same && k < count; k++)
        same = numbers[k] == numbers[0];
    if (same)
        *zero = (int64_t)numbers[0];
    free(numbers);
    return same;
}

/* Scale and zero point of a whole tensor of bytes, of Quantize- or DequantizeLinear. */
static bool read_scale(const struct graph *g, const struct node *node, struct quantised *q)
{
    const struct value *scale = &g->values[node->inputs[1]];
    return scale->dtype == DTYPE_F32 && rewrite_scalar(g, node->inputs[1], &q->scale) &&
           q->scale > 0 && zero_of(g, node, &q->zero);
}

static bool dequantised(const struct graph *g, int v, struct quantised *q)
{
    const struct node *node = rewrite_producer(g, v, &op_dequantize_linear);
    if (!node || !is_byte(g, node->inputs[0]) || g->values[v].dtype != DTYPE_F32)
        return false;
    q->value = node->inputs[0];
    return read_scale(g, node, q);
}

/* Numbers of a fixed f32 tensor, or of a fixed integer one that is dequantised; as above. */
static double *floats_of(const struct graph *g, int v)
{
    const struct node *node = rewrite_producer(g, v, &op_dequantize_linear);
    struct quantised q = {.zero = 0};
    if (!node)
        return g->values[v].dtype == DTYPE_F32 ? numbers_of(g, v) : NULL;
    double *numbers = numbers_of(g, node->inputs[0]), *scales = numbers_of(g, node->inputs[1]);
    int64_t count = shape_count(&g->values[v].shape);
    int64_t of = shape_count(&g->values[node->inputs[1]].shape);
    bool known = numbers && scales && (of == 1 || of == count) && zero_of(g, node, &q.zero);
    for (int64_t k = 0; known && k < count; k++)
        numbers[k] = (numbers[k] - (double)q.zero) * scales[of == 1 ? 0 : k];
    free(scales);
    if (known)
        return numbers;
    free(numbers);
    return NULL;
}

/* ---- the pattern ---- */

/* Weights with a scale for each index of `axis`, or one for all, whose zero point is the middle. */
static bool read_weights(const struct graph *g, int v, int axis, struct product *p)
{
    const struct node *node = rewrite_producer(g, v, &op_dequantize_linear);
    if (!node || !is_byte(g, node->inputs[0]) || !value_is_fixed(&g->values[node->inputs[0]]) ||
        g->values[node->inputs[1]].dtype != DTYPE_F32)
        return false;
    const struct shape *shape = &g->values[node->inputs[0]].shape;
    int64_t scales = shape_count(&g->values[node->inputs[1]].shape);
    int64_t given = node_int(node, "axis", 1);
    p->weights = node->inputs[0];
    p->channels = shape->dim[axis];
    bool of_channels = scales == p->channels && g->values[node->inputs[1]].shape.rank == 1 &&
                       (given < 0 ? given + shape->rank : given) == axis;
    return (scales == 1 || of_channels) && zero_of(g, node, &p->w_zero) &&
           p->w_zero == (g->values[p->weights].dtype == DTYPE_U8 ? 128 : 0);
}

/* The bounds of a Clip; false: they are not known. */
static bool read_clip(const struct graph *g, const struct node *node, double bounds[2])
{
    for (int k = 0; k < 2; k++)
        if (node->op_inputs > k + 1 && node->inputs[k + 1] != NONE &&
            !rewrite_scalar(g, node->inputs[k + 1], &bounds[k]))
            return false;
    return true;
}

/* Follows the result through Relu or Clip to QuantizeLinear, if that is all that happens to it. */
static void read_end(const struct graph *g, struct product *p)
{
    double bounds[2] = {-(double)FLT_MAX, (double)FLT_MAX};
    int n = rewrite_only_user(g, p->old);
    const struct node *node = n == NONE ? NULL : &g->nodes[n];
    bool bent =
        node && ((node->op == &op_relu && !node->post_count) ||
                 (node->op == &op_clip && node->inputs[0] == p->old && read_clip(g, node, bounds)));
    if (bent && node->op == &op_relu)
        bounds[0] = 0;
    int before = bent ? node->outputs[0] : p->old;
    n = bent ? rewrite_only_user(g, before) : n;
    node = n == NONE ? NULL : &g->nodes[n];
    if (!node || node->op != &op_quantize_linear || node->inputs[0] != before ||
        !is_byte(g, node->outputs[0]) || !read_scale(g, node, &p->y))
        return;
    p->y.value = p->old = node->outputs[0];
    p->low = bounds[0];
    p->high = bounds[1];
}

static bool read_conv(const struct graph *g, const struct node *node, struct product *p)
{
    if (node->dead || node->post_count || node->op != &op_conv || node_int(node, "group", 1) != 1)
        return false;
    *p = (struct product){.y.value = NONE,
                          .old = node->outputs[0],
                          .bias = node->op_inputs > 2 ? node->inputs[2] : NONE,
                          .low = -(double)FLT_MAX,
                          .high = (double)FLT_MAX};
    return dequantised(g, node->inputs[0], &p->x) && read_weights(g, node->inputs[1], 0, p);
}

/* ---- the replacement ---- */

static float rounded(double x)
{
    return x > (double)FLT_MAX ? FLT_MAX : x < -(double)FLT_MAX ? -FLT_MAX : (float)x;
}

/* Of the channels, malloc'd in p; false: the bias is not known, or there is no memory. */
static bool make_factors(const struct graph *g, int weights, struct product *p)
{
    const struct node *node = rewrite_producer(g, weights, &op_dequantize_linear);
    double *scales = numbers_of(g, node->inputs[1]);
    double *bias = p->bias == NONE ? NULL : floats_of(g, p->bias);
    int64_t count = shape_count(&g->values[node->inputs[1]].shape);
    double unit = p->y.value == NONE ? 1 : p->y.scale;
    size_t bytes = (size_t)p->channels * sizeof(float) + 1;
    p->scale = malloc(bytes);
    p->offset = malloc(bytes);
    bool known = scales && p->scale && p->offset && (p->bias == NONE || bias);
    for (int64_t m = 0; known && m < p->channels; m++) {
        p->scale[m] = rounded(p->x.scale * scales[count == 1 ? 0 : m] / unit);
        p->offset[m] = bias ? rounded(bias[m] / unit) : 0;
    }
    free(bias);
    free(scales);
    if (!known) {
        free(p->scale);
        free(p->offset);
    }
    return known;
}

enum { CONV_ATTRS = 6, ALL_ATTRS = CONV_ATTRS + 6 };

static enum status replace(struct graph *g, const struct node *node, const char *op,
                           struct product *p, struct error *err)
{
    static const char *const kept[] = {"auto_pad",     "dilations", "group",
                                       "kernel_shape", "pads",      "strides"};
    struct attr attrs[ALL_ATTRS];
    int count = 0;
    double unit = p->y.value == NONE ? 1 : p->y.scale;
    struct shape channels = shape_of(p->channels);
    int inputs[] = {p->x.value, p->weights, rewrite_weight(g, "rescale", channels, p->scale),
                    rewrite_weight(g, "offset", channels, p->offset)};
    for (int k = 0; k < ARRAY_COUNT(kept); k++)
        if (node_attr(node, kept[k]))
            attrs[count++] = *node_attr(node, kept[k]);
    attrs[count++] = attr_int("x_zero", p->x.zero);
    attrs[count++] = attr_int("w_zero", p->w_zero);
    attrs[count++] = attr_int("zero", p->y.value == NONE ? 0 : p->y.zero);
    attrs[count++] =
        attr_int("to", dtype_to_onnx(p->y.value == NONE ? DTYPE_F32 : g->values[p->y.value].dtype));
    attrs[count++] = attr_float("low", (double)rounded(p->low / unit));
    attrs[count++] = attr_float("high", (double)rounded(p->high / unit));
    g->phase = node->phase;
    int fresh = graph_node(g, op, node->name, ARRAY_COUNT(inputs), inputs, count, attrs);
    if (g->failed)
        return graph_check(g, err);
    rewrite_replace(g, p->old, fresh);
    return STATUS_OK;
}

enum status pass_absorb_bytes(struct graph *g, struct error *err)
{
    int count = g->node_count; /* nodes are added at the end */
    for (int n = 0; n < count; n++) {
        struct node node = g->nodes[n];
        struct product p;
        if (!read_conv(g, &node, &p))
            continue;
        read_end(g, &p);
        if (make_factors(g, node.inputs[1], &p))
            TRY(replace(g, &node, op_conv_bytes.name, &p, err));
    }
    return STATUS_OK;
}
