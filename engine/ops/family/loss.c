/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/loss.h"

#include <math.h>
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/axis.h"

enum reduction { REDUCTION_NONE, REDUCTION_SUM, REDUCTION_MEAN };

static enum status read_reduction(const struct node *node, enum reduction *reduction,
                                  struct error *err)
{
    static const char *const names[] = {"none", "sum", "mean"};
    const char *text = node_string(node, "reduction", "mean");
    for (int k = 0; k < ARRAY_COUNT(names); k++)
        if (strcmp(text, names[k]) == 0) {
            *reduction = (enum reduction)k;
            return STATUS_OK;
        }
    return FAIL(err, STATUS_FAILED, "%s: reduction \"%s\" is none of none, sum, mean",
                node->op->name, text);
}

enum status loss_infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape, *labels = &c->in[1]->shape;
    enum reduction reduction;
    char text[96], text_l[96];
    TRY(read_reduction(c->node, &reduction, err));
    bool fits = x->rank >= 2 && labels->rank == x->rank - 1;
    for (int k = 0; fits && k < labels->rank; k++)
        fits = labels->dim[k] == x->dim[k ? k + 1 : 0];
    if (fits && infer_has(c, 2))
        fits = shape_count(&c->in[2]->shape) == x->dim[1];
    if (!fits)
        return FAIL(err, STATUS_FAILED, "%s: scores %s, labels %s%s", c->node->op->name,
                    shape_text(x, text), shape_text(labels, text_l),
                    infer_has(c, 2) ? " and the weights do not go together" : "");
    struct shape y = reduction == REDUCTION_NONE ? *labels : shape_scalar();
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

enum status loss_reference(const struct ref_call *call, const double *log_prob, struct error *err)
{
    const struct ref_tensor *labels = call->in[1], *y = call->out[0];
    const struct ref_tensor *weights = call->in_count > 2 ? call->in[2] : NULL;
    const struct shape *x = &call->in[0]->shape;
    bool ignores = node_attr(call->node, "ignore_index") != NULL;
    int64_t ignored = node_int(call->node, "ignore_index", 0);
    int64_t classes = x->dim[1], positions = shape_span(x, 2, x->rank);
    enum reduction reduction;
    double sum = 0, total = 0;
    TRY(read_reduction(call->node, &reduction, err));
    for (int64_t i = 0; i < labels->count; i++) {
        int64_t label = labels->i[i];
        if (ignores && label == ignored)
            continue; /* outputs start at zero */
        if (label < 0 || label >= classes)
            return FAIL(err, STATUS_FAILED, "%s: label %lld of %lld classes", call->node->op->name,
                        (long long)label, (long long)classes);
        double weight = weights ? weights->f[label] : 1;
        int64_t at = (i / positions * classes + label) * positions + i % positions;
        double loss = -log_prob[at] * weight;
        sum += loss;
        total += weight;
        if (reduction == REDUCTION_NONE)
            y->f[i] = loss;
    }
    if (reduction != REDUCTION_NONE)
        y->f[0] = reduction == REDUCTION_MEAN ? sum / total : sum;
    return STATUS_OK;
}

/* ---- the gradient ---- */

struct labels {
    const struct ref_tensor *labels, *weights; /* weights may be NULL */
    int64_t classes, ignored;
    bool ignores;
};

static enum status weight_of(const struct ref_call *call, const struct labels *l, int64_t i,
                             double *weight, struct error *err)
{
    int64_t label = l->labels->i[i];
    *weight = 0;
    if (l->ignores && label == l->ignored)
        return STATUS_OK;
    if (label < 0 || label >= l->classes)
        return FAIL(err, STATUS_FAILED, "%s: label %lld of %lld classes", call->node->op->name,
                    (long long)label, (long long)l->classes);
    *weight = l->weights ? l->weights->f[label] : 1;
    return STATUS_OK;
}

enum status loss_gradient_reference(const struct ref_call *call, bool softmax, struct error *err)
{
    const struct ref_tensor *dy = call->in[0], *x = call->in[1], *dx = call->out[0];
    struct labels l = {.labels = call->in[2],
                       .weights = call->in_count > 3 ? call->in[3] : NULL,
                       .classes = x->shape.dim[1],
                       .ignored = node_int(call->node, "ignore_index", 0),
                       .ignores = node_attr(call->node, "ignore_index") != NULL};
    struct axis axis = axis_at(&x->shape, 1);
    enum reduction reduction;
    double total = 0, weight;
    TRY(read_reduction(call->node, &reduction, err));
    for (int64_t i = 0; i < l.labels->count; i++) {
        TRY(weight_of(call, &l, i, &weight, err));
        total += weight;
    }
    for (int64_t i = 0; i < l.labels->count; i++) {
        int64_t start = axis_line(&axis, i);
        TRY(weight_of(call, &l, i, &weight, err));
        double factor = dy->f[reduction == REDUCTION_NONE ? i : 0] * weight;
        factor = reduction == REDUCTION_MEAN ? factor / total : factor;
        if (softmax)
            axis_log_softmax(&axis, x->f + start, dx->f + start);
        for (int64_t k = 0; k < axis.size; k++) {
            double *at = &dx->f[start + k * axis.inner];
            *at = weight == 0 ? 0 : factor * ((softmax ? exp(*at) : 0) - (k == l.labels->i[i]));
        }
    }
    return STATUS_OK;
}

int loss_gradient(const struct gradient_call *c, const char *of)
{
    const struct node *node = gradient_node(c);
    int inputs[4] = {c->dy[0], node->inputs[0], node->inputs[1], gradient_in(c, 2)};
    struct attr attrs[3] = {attr_string("of", of),
                            attr_string("reduction", node_string(node, "reduction", "mean"))};
    int count = 2;
    if (node_attr(node, "ignore_index"))
        attrs[count++] = attr_int("ignore_index", node_int(node, "ignore_index", 0));
    return graph_node(c->g, op_cross_entropy_gradient.name, NULL, inputs[3] == NONE ? 3 : 4, inputs,
                      count, attrs);
}
