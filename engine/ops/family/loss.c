/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/loss.h"

#include <string.h>

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
