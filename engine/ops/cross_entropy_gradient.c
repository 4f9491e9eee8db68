/* SPDX-License-Identifier: Apache-2.0
 * CrossEntropyGradient (ridge): the gradient of SoftmaxCrossEntropyLoss (of "softmax") or of
 * NegativeLogLikelihoodLoss (of "log") by its input 0. Inputs are the gradient of the loss and then
 * what the loss was computed of: input 0, labels, weights of the classes. */
#include <string.h>

#include "engine/ops/family/loss.h"

static const char *const attrs[] = {"of", "ignore_index", "reduction", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct value loss = {0}, *out = &loss;
    char text[96], text_dy[96];
    struct infer of_loss = {
        .node = c->node, .in = c->in + 1, .out = &out, .in_count = c->in_count - 1, .out_count = 1};
    TRY(loss_infer(&of_loss, err));
    if (!shape_equal(&loss.shape, &c->in[0]->shape))
        return FAIL(err, STATUS_FAILED, "CrossEntropyGradient: a gradient of shape %s of a loss %s",
                    shape_text(&c->in[0]->shape, text_dy), shape_text(&loss.shape, text));
    infer_set(c, 0, c->in[1]->dtype, &c->in[1]->shape);
    return STATUS_OK;
}

static bool of_softmax(const struct node *node)
{
    return strcmp(node_string(node, "of", "softmax"), "softmax") == 0;
}

static void cost(const struct infer *c, struct cost *cost)
{
    double count = (double)shape_count(&c->in[1]->shape);
    cost->elementwise = of_softmax(c->node) ? 5 * count : 0;
    cost->elementwise += 2 * (double)shape_count(&c->in[2]->shape);
    cost->transcendentals = of_softmax(c->node) ? count : 0;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    return loss_gradient_reference(call, of_softmax(call->node), err);
}

static const struct op_case cases[] = {
    {.name = "mean", .inputs = "f32[]{0.5:1} f32[9,17]{-5:5} i64[9]{0:17}"},
    {.name = "sum",
     .inputs = "f32[]{0.5:1} f32[9,17]{-5:5} i64[9]{0:17}",
     .attrs = "reduction=\"sum\""},
    {.name = "none",
     .inputs = "f32[3,4,2] f32[3,5,4,2]{-5:5} i64[3,4,2]{0:5}",
     .attrs = "reduction=\"none\""},
    {.name = "weights", .inputs = "f32[]{0.5:1} f32[3,5,7]{-5:5} i32[3,7]{0:5} f32[5]{0.1:2}"},
    {.name = "ignored",
     .inputs = "f32[]{0.5:1} f32[4,5]{-5:5} i64[4]=1,-1,4,-1 f32[5]{0.1:2}",
     .attrs = "ignore_index=-1"},
    {.name = "few_classes",
     .inputs = "f32[2708] f32[2708,7]{-5:5} i64[2708]{0:7}",
     .attrs = "reduction=\"none\""},
    {.name = "one_class", .inputs = "f32[]{0.5:1} f32[37,1]{-5:5} i64[37]{0:1}"},
    {.name = "65_classes", .inputs = "f32[]{0.5:1} f32[35,65]{-9:9} i32[35]{0:65}"},
    {.name = "many_classes", .inputs = "f32[]{0.5:1} f32[3,36548]{-9:9} i64[3]{0:36548}"},
    {.name = "columns",
     .inputs = "f32[]{0.5:1} f32[2,21,41]{-5:5} i64[2,41]{0:21} f32[21]{0.1:2}",
     .attrs = "ignore_index=3 reduction=\"sum\""},
    {.name = "log", .inputs = "f32[]{0.5:1} f32[9,17]{-5:0} i64[9]{0:17}", .attrs = "of=\"log\""},
    {.name = "log_weights",
     .inputs = "f32[3,7] f32[3,5,7]{-5:0} i32[3,7]{0:5} f32[5]{0.1:2}",
     .attrs = "of=\"log\" reduction=\"none\" ignore_index=2"},
};

REGISTER(op, cross_entropy_gradient) = {
    .name = "CrossEntropyGradient",
    .domain = "ridge",
    .inputs_min = 3,
    .inputs_max = 4,
    .int_inputs = 1u << 2,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
