/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/posts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/run/exe.h"
#include "tests/lib/noise.h"

enum operand { NO_OPERAND, RESIDUAL, CHANNELS };

struct sequence {
    const char *name;
    int count;
    struct post posts[POST_MAX];
    enum operand operands[POST_MAX];
};

static const struct sequence sequences[] = {
    {"relu", 1, {{.kind = POST_ACT, .act = FN_RELU}}, {0}},
    {"add", 1, {{.kind = POST_ADD}}, {RESIDUAL}},
    {"add_relu", 2, {{.kind = POST_ADD}, {.kind = POST_ACT, .act = FN_RELU}}, {RESIDUAL}},
    {"relu6", 1, {{.kind = POST_ACT, .act = FN_CLIP, .a = 0, .b = 6}}, {0}},
    {"gelu_tanh", 1, {{.kind = POST_ACT, .act = FN_GELU_TANH}}, {0}},
    {"sigmoid", 1, {{.kind = POST_ACT, .act = FN_SIGMOID}}, {0}},
    {"scale_shift", 2, {{.kind = POST_MUL}, {.kind = POST_ADD}}, {CHANNELS, CHANNELS}},
};

int posts_count(void)
{
    return ARRAY_COUNT(sequences);
}

const char *posts_name(int index)
{
    return sequences[index].name;
}

bool posts_has_operands(int index)
{
    return sequences[index].count > 1;
}

/* Channels are dimension 1 of images, else the last dimension. */
static struct shape channels_of(const struct op *op, const struct shape *out)
{
    bool image = op->layout == LAYOUT_RULE_CHANNELS_LAST && out->rank >= 2;
    struct shape shape = {.rank = image ? out->rank - 1 : 1};
    for (int d = 0; d < shape.rank; d++)
        shape.dim[d] = 1;
    shape.dim[0] = out->dim[image ? 1 : out->rank - 1];
    return shape;
}

static int add_operand(struct graph *g, enum operand operand, int index)
{
    const struct node *node = &g->nodes[0];
    struct shape out = g->values[node->outputs[0]].shape;
    enum dtype type = g->values[node->outputs[0]].dtype;
    if (operand == RESIDUAL)
        return graph_input(g, "residual", type, out, noise());
    return graph_param(g, index ? "shift" : "scale", type, channels_of(node->op, &out), noise());
}

enum status posts_add(int index, struct graph *g, struct error *err)
{
    const struct sequence *sequence = &sequences[index];
    struct node *node = &g->nodes[0];
    const struct value *out = node->outputs[0] == NONE ? NULL : &g->values[node->outputs[0]];
    bool is_float = out && (out->dtype == DTYPE_F32 || dtype_size(out->dtype) == 2) &&
                    dtype_is_float(out->dtype);
    if (!is_float || out->shape.rank < 1 || !shape_count(&out->shape))
        return UNSUPPORTED(err, "no tensor of floats to put an epilogue on");
    size_t room = (size_t)node->input_count + POST_MAX;
    int *inputs = arena_array(&g->arena, room, sizeof(*inputs));
    if (!inputs)
        return FAIL_NO_MEMORY(err);
    memcpy(inputs, node->inputs, (size_t)node->input_count * sizeof(*inputs));
    node->inputs = inputs;
    for (int k = 0; k < sequence->count; k++) {
        struct post *post = &node->posts[node->post_count++];
        *post = sequence->posts[k];
        if (sequence->operands[k] == NO_OPERAND)
            continue;
        post->input = node->input_count;
        inputs[node->input_count++] = add_operand(g, sequence->operands[k], k);
    }
    return graph_check(g, err);
}

static double activation(const struct post *post, double x)
{
    const double pi = 3.14159265358979323846;
    double low = (double)post->a, high = (double)post->b;
    switch (post->act) {
    case FN_RELU:
        return x < 0 ? 0 : x;
    case FN_CLIP:
        return x < low ? low : x > high ? high : x;
    case FN_SIGMOID:
        return 1 / (1 + exp(-x));
    case FN_GELU_TANH:
        return x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * pow(x, 3))));
    default:
        return (double)NAN; /* not in the list above */
    }
}

static enum status apply(const struct graph *g, const struct post *post,
                         const struct ref_tensor *out, struct error *err)
{
    struct ref_tensor operand = {0};
    if (post->kind != POST_ACT) {
        const struct value *value = &g->values[g->nodes[0].inputs[post->input]];
        void *data = calloc((size_t)shape_count(&value->shape) + 1, dtype_size(value->dtype));
        if (!data)
            return FAIL_NO_MEMORY(err);
        value_materialise(value, data);
        enum status status = ref_from_data(&operand, value->dtype, &value->shape, data, err);
        free(data);
        TRY(status);
    }
    for (int64_t k = 0; k < out->count; k++) {
        double x = out->f[k];
        if (post->kind == POST_ACT) {
            out->f[k] = activation(post, x);
            continue;
        }
        double y = operand.f[ref_broadcast_index(&out->shape, k, &operand.shape)];
        out->f[k] = post->kind == POST_ADD ? x + y : x * y;
    }
    ref_release(&operand);
    return STATUS_OK;
}

enum status posts_expect(const struct graph *g, const struct ref_tensor *out, struct error *err)
{
    const struct node *node = &g->nodes[0];
    for (int k = 0; k < node->post_count; k++)
        TRY(apply(g, &node->posts[k], out, err));
    return STATUS_OK;
}

double posts_slope(const struct graph *g)
{
    const struct node *node = &g->nodes[0];
    double slope = 1; /* also of products: scales are in [-1, 1) */
    for (int k = 0; k < node->post_count; k++) {
        if (node->posts[k].kind == POST_ACT && node->posts[k].act == FN_SIGMOID)
            slope *= 0.25;
        if (node->posts[k].kind == POST_ACT && node->posts[k].act == FN_GELU_TANH)
            slope *= 1.13; /* at x = 1.41 */
    }
    return slope;
}
