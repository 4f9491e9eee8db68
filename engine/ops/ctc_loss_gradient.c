/* SPDX-License-Identifier: Apache-2.0
 * CTCLossGradient (ridge): the gradient of CTCLoss by its logits. Inputs are the gradient of the
 * losses [N] and those of CTCLoss. Per step it is the softmax of the logits minus the probability
 * that a path that spells the labels has the symbol in this step (Graves et al. 2006, equation 16);
 * zero after the end of a sample, and for a sample that no path spells. */
#include <math.h>

#include "engine/ops/family/ctc_paths.h"

static const char *const attrs[] = {"blank", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *dy = &c->in[0]->shape, *x = &c->in[1 + CTC_LOGITS]->shape;
    char text[96];
    TRY(ctc_check(c, 1, err));
    if (dy->rank != 1 || dy->dim[0] != x->dim[1])
        return FAIL(err, STATUS_FAILED, "CTCLossGradient: dy of shape %s for %lld samples",
                    shape_text(dy, text), (long long)x->dim[1]);
    infer_set(c, 0, c->in[1 + CTC_LOGITS]->dtype, x);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    ctc_cost(c, 1, 2, cost);
}

static void write_sample(const struct ctc_paths *p, double dy, double *dx)
{
    for (int64_t t = 0; t < p->steps && p->total > -INFINITY; t++) {
        double *row = dx + t * p->c.samples * p->c.classes;
        for (int64_t k = 0; k < p->c.classes; k++)
            row[k] = dy * exp(p->log_prob[t * p->c.classes + k]);
        for (int64_t s = 0; s < p->states; s++)
            row[p->symbol[s]] -=
                dy * exp(p->before[t * p->states + s] + p->after[t * p->states + s] - p->total);
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct ctc_paths p;
    enum status status = ctc_paths_init(&p, call, 1, err);
    for (int64_t n = 0; status == STATUS_OK && n < p.c.samples; n++) {
        status = ctc_paths_sum(&p, call, 1, n, err);
        if (status == STATUS_OK)
            write_sample(&p, call->in[0]->f[n], call->out[0]->f + n * p.c.classes);
    }
    ctc_paths_release(&p);
    return status;
}

static const struct op_case cases[] = {
    {.name = "words", .inputs = "f32[7] f32[25,7,37]{-3:3} i64[7,9]{0:36} i64[7]{1:10}"},
    {.name = "repeats", .inputs = "f32[9] f32[24,9,3]{-2:2} i32[9,8]{0:2} i32[9]{0:9}"},
    {.name = "blank first",
     .inputs = "f32[5] f32[18,5,4]{-2:2} i64[5,4]{1:4} i64[5]=0,1,2,3,4",
     .attrs = "blank=0"},
    {.name = "lengths",
     .inputs = "f32[5] f32[30,5,6]{-2:2} i64[5,4]{0:5} i64[5]{1:5} i64[5]{9:31}"},
    {.name = "one step", .inputs = "f32[4] f32[1,4,11] i64[4,1]{0:10} i64[4]=0,1,1,0"},
    {.name = "exact", .inputs = "f32[2] f32[5,2,4]{-2:2} i64[2,4]=1,1,2,0,0,1,2,1 i64[2]=4,4"},
    {.name = "long", .inputs = "f32[2] f32[300,2,90]{-4:4} i32[2,80]{0:89} i32[2]=80,41"},
    {.name = "peaked", .inputs = "f32[3] f32[40,3,12]{-40:40} i64[3,10]{0:11} i64[3]=10,3,0"},
    {.name = "impossible",
     .inputs = "f32[3] f32[3,3,4] i64[3,3]=1,1,2,0,2,1,0,0,0 i64[3]=3,3,3 i64[3]=3,3,0"},
    {.name = "no label", .inputs = "f32[2] f32[6,2,5] i64[2,0] i64[2]=0"},
};

REGISTER(op, ctc_loss_gradient) = {
    .name = "CTCLossGradient",
    .domain = "ridge",
    .inputs_min = 1 + CTC_INPUT_LENGTHS,
    .inputs_max = 1 + CTC_INPUTS,
    .int_inputs = 1u << (1 + CTC_LABELS) | 1u << (1 + CTC_LABEL_LENGTHS) |
                  1u << (1 + CTC_INPUT_LENGTHS),
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
