/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/update.h"

enum status update_infer(const struct infer *c, struct error *err)
{
    const struct op *op = c->node->op;
    int width = update_width(op), each = width - 1;
    int weights = (c->in_count - UPDATE_WEIGHTS) / width;
    if (weights < 1 || c->in_count != UPDATE_WEIGHTS + weights * width ||
        c->out_count != weights * each)
        return FAIL(err, STATUS_FAILED, "%s: %d inputs and %d outputs are no whole weights",
                    op->name, c->in_count, c->out_count);
    for (int t = 0; t < weights; t++) {
        const struct value *const *in = c->in + UPDATE_WEIGHTS + t * width;
        for (int k = 0; k < width; k++) {
            if (!in[k] || in[k]->dtype != in[0]->dtype ||
                !shape_equal(&in[k]->shape, &in[0]->shape))
                return FAIL(err, STATUS_FAILED, "%s: weight %d and its input %d differ", op->name,
                            t, k);
        }
        for (int k = 0; k < each; k++)
            infer_set(c, t * each + k, in[0]->dtype, &in[0]->shape);
    }
    return STATUS_OK;
}

static void update_element(const struct update_step *s, const struct ref_tensor *const *in,
                           struct ref_tensor *const *out, int64_t e,
                           void (*each)(const struct update_step *s, double gradient,
                                        double *weight, double *slot))
{
    double weight = in[0]->f[e], slot[UPDATE_SLOTS_MAX] = {0};
    int slots = s->node->op->update->slots;
    for (int k = 0; k < slots; k++)
        slot[k] = in[2 + k]->f[e];
    each(s, s->scale * in[1]->f[e], &weight, slot);
    if (out[0])
        out[0]->f[e] = weight;
    for (int k = 0; k < slots; k++)
        if (out[1 + k])
            out[1 + k]->f[e] = slot[k];
}

enum status update_reference(const struct ref_call *call,
                             void (*each)(const struct update_step *s, double gradient,
                                          double *weight, double *slot),
                             struct error *err)
{
    const struct node *node = call->node;
    int width = update_width(node->op);
    struct update_step s = {.node = node,
                            .rate = call->in[UPDATE_RATE]->f[0],
                            .scale = call->in[UPDATE_SCALE] ? call->in[UPDATE_SCALE]->f[0] : 1,
                            .step = call->in[UPDATE_STEP]->i[0]};
    (void)err;
    for (int t = 0; t < update_weights(node); t++) {
        const struct ref_tensor *const *in = call->in + UPDATE_WEIGHTS + t * width;
        struct ref_tensor *const *out = call->out + t * (width - 1);
        for (int64_t e = 0; e < in[0]->count; e++)
            update_element(&s, in, out, e, each);
    }
    return STATUS_OK;
}
