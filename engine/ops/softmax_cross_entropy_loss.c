/* SPDX-License-Identifier: Apache-2.0
 * SoftmaxCrossEntropyLoss: minus the log softmax of each label; output 1: the log softmax. */
#include <stdlib.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/loss.h"
#include "engine/ops/lib/axis.h"

static const char *const attrs[] = {"ignore_index", "reduction", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    infer_set(c, 1, c->in[0]->dtype, &c->in[0]->shape);
    return loss_infer(c, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    double count = (double)shape_count(&c->in[0]->shape);
    cost->elementwise = 5 * count + 2 * (double)shape_count(&c->in[1]->shape);
    cost->transcendentals = count;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *x = call->in[0];
    struct axis axis = axis_at(&x->shape, 1);
    double *log_prob = calloc((size_t)x->count + 1, sizeof(*log_prob));
    if (!log_prob)
        return FAIL_NO_MEMORY(err);
    for (int64_t l = 0; l < axis.outer * axis.inner; l++) {
        int64_t start = axis_line(&axis, l);
        axis_log_softmax(&axis, x->f + start, log_prob + start);
    }
    enum status status = loss_reference(call, log_prob, err);
    for (int64_t i = 0; call->out_count > 1 && call->out[1] && i < x->count; i++)
        call->out[1]->f[i] = log_prob[i];
    free(log_prob);
    return status;
}

/* Output 1 is a log softmax. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    if (gradient_in(c, 2) != NONE && c->wanted[2])
        return UNSUPPORTED(err, "the weights of the classes are not trained");
    if (c->dy[0] != NONE)
        c->dx[0] = loss_gradient(c, "softmax");
    if (gradient_out(c, 1) == NONE || c->dy[1] == NONE || !c->wanted[0])
        return STATUS_OK;
    int prob = make_unary(g, &op_exp, gradient_out(c, 1));
    int sum = make_sum_of_lines(g, c->dy[1], 1, 2);
    int part = make_sub(g, c->dy[1], make_mul(g, prob, sum));
    c->dx[0] = c->dy[0] != NONE ? make_add(g, c->dx[0], part) : part;
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "mean", .inputs = "f32[9,17]{-5:5} i64[9]{0:17}", .outputs = 2},
    {.name = "sum", .inputs = "f32[9,17]{-5:5} i64[9]{0:17}", .attrs = "reduction=\"sum\""},
    {.name = "none",
     .inputs = "f32[3,5,4,2]{-5:5} i64[3,4,2]{0:5}",
     .attrs = "reduction=\"none\"",
     .outputs = 2},
    {.name = "weights", .inputs = "f32[3,5,7]{-5:5} i32[3,7]{0:5} f32[5]{0.1:2}"},
    {.name = "ignored",
     .inputs = "f32[4,5]{-5:5} i64[4]=1,-1,4,-1 f32[5]{0.1:2}",
     .attrs = "ignore_index=-1"},
    {.name = "few classes",
     .inputs = "f32[2708,7]{-5:5} i64[2708]{0:7}",
     .attrs = "reduction=\"none\""},
    {.name = "one class", .inputs = "f32[37,1]{-5:5} i64[37]{0:1}", .outputs = 2},
    {.name = "64 classes", .inputs = "f32[35,64]{-9:9} i32[35]{0:64} f32[64]{0.1:2}", .outputs = 2},
    {.name = "65 classes",
     .inputs = "f32[35,65]{-9:9} i32[35]{0:65}",
     .attrs = "reduction=\"none\"",
     .outputs = 2},
    {.name = "many classes", .inputs = "f32[3,36548]{-9:9} i64[3]{0:36548}"},
    {.name = "columns",
     .inputs = "f32[2,21,41]{-5:5} i64[2,41]{0:21} f32[21]{0.1:2}",
     .attrs = "ignore_index=3 reduction=\"sum\"",
     .outputs = 2},
    {.name = "one column", .inputs = "f32[4,6,1]{-5:5} i64[4,1]{0:6}"},
};

REGISTER(op, softmax_cross_entropy_loss) = {
    .name = "SoftmaxCrossEntropyLoss",
    .inputs_min = 2,
    .inputs_max = 3,
    .int_inputs = 1u << 1,
    .outputs_max = 2,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
