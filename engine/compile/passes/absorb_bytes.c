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

#include "engine/compile/passes/quantised.h"
#include "engine/graph/op_list.h"
#include "engine/ops/lib/op_args.h"

/* So many products of bytes have a sum that 32 bits hold, whatever they are. */
enum { DEPTH_MAX = 65535 };

/* What a node will be. */
struct product {
    const struct op *op;
    struct quantised x;
    struct quantised_end end;
    bool to_bytes;     /* end is there; else the result is f32 */
    int weights, bias; /* bias NONE: 0 */
    int weights_scale; /* one for all channels or one each */
    int64_t channels, w_zero;
    bool bytes_alone; /* kernels cannot do more than round the result */
    bool turned;      /* of a matrix: a row for each channel */
    int old;          /* the value in whose place it comes */
    float *scale, *offset;
};

/* Numbers of a fixed f32 tensor, or of a fixed integer one that is dequantised: malloc'd, or NULL.
 */
static double *floats_of(const struct graph *g, int v)
{
    const struct node *node = rewrite_producer(g, v, &op_dequantize_linear);
    struct quantised q = {.zero = 0};
    if (!node)
        return g->values[v].dtype == DTYPE_F32 ? quantised_numbers(g, v) : NULL;
    double *numbers = quantised_numbers(g, node->inputs[0]),
           *scales = quantised_numbers(g, node->inputs[1]);
    int64_t count = shape_count(&g->values[v].shape);
    int64_t of = shape_count(&g->values[node->inputs[1]].shape);
    bool known = numbers && scales && (of == 1 || of == count) && quantised_zero(g, node, &q.zero);
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
    if (!node || !quantised_is_byte(g, node->inputs[0]) ||
        !value_is_fixed(&g->values[node->inputs[0]]) ||
        g->values[node->inputs[1]].dtype != DTYPE_F32)
        return false;
    const struct shape *shape = &g->values[node->inputs[0]].shape;
    const struct shape *scales = &g->values[node->inputs[1]].shape;
    int64_t given = node_int(node, "axis", 1);
    p->weights = node->inputs[0];
    p->weights_scale = node->inputs[1];
    p->channels = shape->dim[axis];
    if (shape_count(shape) > DEPTH_MAX * p->channels)
        return false;
    bool of_channels = scales->rank == 1 && scales->dim[0] == p->channels &&
                       (given < 0 ? given + shape->rank : given) == axis;
    return (shape_count(scales) == 1 || of_channels) && quantised_zero(g, node, &p->w_zero) &&
           p->w_zero == (g->values[p->weights].dtype == DTYPE_U8 ? 128 : 0);
}

static bool read_conv(const struct graph *g, const struct node *node, struct product *p)
{
    if (node->op != &op_conv)
        return false;
    const struct shape *x = &g->values[node->inputs[0]].shape;
    const struct shape *weights = &g->values[node->inputs[1]].shape;
    int64_t group = node_int(node, "group", 1);
    bool depthwise = group > 1 && group == x->dim[1] && group == weights->dim[0];
    bool words = weights->rank > 1 && weights->dim[1] % 4 == 0; /* of the channels of a group */
    if (group != 1 && !depthwise && !words)
        return false;
    p->op = &op_conv_bytes;
    p->bytes_alone = depthwise;
    p->bias = node->op_inputs > 2 ? node->inputs[2] : NONE;
    return read_weights(g, node->inputs[1], 0, p);
}

static bool read_matmul(const struct graph *g, const struct node *node, struct product *p)
{
    bool gemm = node->op == &op_gemm;
    if ((!gemm && node->op != &op_mat_mul) || g->values[node->inputs[1]].shape.rank != 2)
        return false;
    p->op = &op_mat_mul_bytes;
    p->turned = gemm && node_int(node, "transB", 0);
    p->bias = gemm && node->op_inputs > 2 ? node->inputs[2] : NONE;
    if (gemm && (node_int(node, "transA", 0) || node_float(node, "alpha", 1) != 1 ||
                 (p->bias != NONE && node_float(node, "beta", 1) != 1)))
        return false;
    return read_weights(g, node->inputs[1], p->turned ? 0 : 1, p) &&
           (p->bias == NONE || shape_count(&g->values[p->bias].shape) == p->channels);
}

static bool read_product(const struct graph *g, const struct node *node, struct product *p)
{
    if (node->dead || node->post_count)
        return false;
    *p = (struct product){.old = node->outputs[0]};
    if (!(read_conv(g, node, p) || read_matmul(g, node, p)) ||
        !quantised_source(g, node->inputs[0], &p->x))
        return false;
    p->to_bytes = quantised_end(g, p->old, &p->end);
    if (p->to_bytes)
        p->old = p->end.y.value;
    return p->to_bytes || !p->bytes_alone;
}

/* ---- the replacement ---- */

static float rounded(double x)
{
    return x > (double)FLT_MAX ? FLT_MAX : x < -(double)FLT_MAX ? -FLT_MAX : (float)x;
}

/* Of the channels, malloc'd in p; false: the bias is not known, or there is no memory. */
static bool make_factors(const struct graph *g, struct product *p)
{
    double *scales = quantised_numbers(g, p->weights_scale);
    double *bias = p->bias == NONE ? NULL : floats_of(g, p->bias);
    int64_t count = shape_count(&g->values[p->weights_scale].shape);
    double unit = p->to_bytes ? p->end.y.scale : 1;
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

/* What a result of bytes is made of: where it is cut, rounded and moved. */
enum { END_ATTRS = 4 };
static void end_attrs(const struct graph *g, const struct quantised_end *end, struct attr *attrs)
{
    attrs[0] = attr_int("zero", end->y.zero);
    attrs[1] = attr_int("to", dtype_to_onnx(g->values[end->y.value].dtype));
    attrs[2] = attr_float("low", (double)rounded(end->low / end->y.scale));
    attrs[3] = attr_float("high", (double)rounded(end->high / end->y.scale));
}

static enum status replace_product(struct graph *g, const struct node *node, struct product *p,
                                   struct error *err)
{
    struct attr *attrs =
        arena_array(&g->arena, (size_t)node->attr_count + END_ATTRS + 3, sizeof(*attrs));
    int count = 0;
    struct shape channels = shape_of(p->channels);
    int inputs[] = {p->x.value, p->weights, rewrite_weight(g, "rescale", channels, p->scale),
                    rewrite_weight(g, "offset", channels, p->offset)};
    if (!attrs)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; p->op == &op_conv_bytes && k < node->attr_count; k++)
        attrs[count++] = node->attrs[k]; /* its window */
    attrs[count++] = attr_int("x_zero", p->x.zero);
    attrs[count++] = attr_int("w_zero", p->w_zero);
    if (p->turned)
        attrs[count++] = attr_int("transB", 1);
    if (p->to_bytes)
        end_attrs(g, &p->end, attrs + count);
    else
        attrs[count] = attr_int("to", dtype_to_onnx(DTYPE_F32));
    count += p->to_bytes ? END_ATTRS : 1;
    g->phase = node->phase;
    int fresh = graph_node(g, p->op->name, node->name, ARRAY_COUNT(inputs), inputs, count, attrs);
    if (g->failed)
        return graph_check(g, err);
    rewrite_replace(g, p->old, fresh);
    return STATUS_OK;
}

/* ---- sums and products of two tensors ---- */

static int add_bytes(struct graph *g, const struct node *node, const struct quantised *a,
                     const struct quantised *b, const struct quantised_end *end)
{
    double unit = end->y.scale, offset = -(double)a->zero * a->scale - (double)b->zero * b->scale;
    struct attr attrs[END_ATTRS + 3] = {attr_float("a_scale", (double)rounded(a->scale / unit)),
                                        attr_float("b_scale", (double)rounded(b->scale / unit)),
                                        attr_float("offset", (double)rounded(offset / unit))};
    end_attrs(g, end, attrs + 3);
    return graph_node(g, op_add_bytes.name, node->name, INPUTS(a->value, b->value),
                      ARRAY_COUNT(attrs), attrs);
}

static int mul_bytes(struct graph *g, const struct node *node, const struct quantised *a,
                     const struct quantised *b, const struct quantised_end *end)
{
    double scale = (double)rounded(a->scale * b->scale / end->y.scale);
    struct attr attrs[END_ATTRS + 3] = {attr_int("a_zero", a->zero), attr_int("b_zero", b->zero),
                                        attr_float("scale", scale)};
    end_attrs(g, end, attrs + 3);
    return graph_node(g, op_mul_bytes.name, node->name, INPUTS(a->value, b->value),
                      ARRAY_COUNT(attrs), attrs);
}

/* Two tensors of bytes that are added or multiplied, and rounded to bytes again. */
static enum status absorb_pair(struct graph *g, const struct node *node, struct error *err)
{
    struct quantised a, b;
    struct quantised_end end;
    bool sum = node->op == &op_add;
    if (node->dead || node->post_count || (!sum && node->op != &op_mul) ||
        !quantised_source(g, node->inputs[0], &a) || !quantised_source(g, node->inputs[1], &b) ||
        !quantised_end(g, node->outputs[0], &end))
        return STATUS_OK;
    const struct shape *y = &g->values[node->outputs[0]].shape;
    if (!sum && !shape_equal(&g->values[a.value].shape, y)) {
        struct quantised other = a;
        a = b;
        b = other;
    }
    if (!shape_equal(&g->values[a.value].shape, y) ||
        (sum && !shape_equal(&g->values[b.value].shape, y)))
        return STATUS_OK;
    g->phase = node->phase;
    int fresh = sum ? add_bytes(g, node, &a, &b, &end) : mul_bytes(g, node, &a, &b, &end);
    if (g->failed)
        return graph_check(g, err);
    rewrite_replace(g, end.y.value, fresh);
    return STATUS_OK;
}

enum status pass_absorb_bytes(struct graph *g, struct error *err)
{
    int count = g->node_count; /* nodes are added at the end */
    for (int n = 0; n < count; n++) {
        struct node node = g->nodes[n];
        struct product p;
        TRY(absorb_pair(g, &node, err));
        if (read_product(g, &node, &p) && make_factors(g, &p))
            TRY(replace_product(g, &node, &p, err));
    }
    return STATUS_OK;
}
