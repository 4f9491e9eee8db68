/* SPDX-License-Identifier: Apache-2.0
 * CTCLoss (ridge): logits [T,N,C], labels [N,S], how many labels each sample has [N] and, if not
 * all T, how many steps [N] -> minus the log probability of the labels [N], where the softmax of
 * the logits says the symbol of each step and all paths that spell the labels count: Graves et al.
 * 2006, "Connectionist Temporal Classification". A sample that no path spells, because it has too
 * few steps, has the loss infinity and no gradient.
 * blank: a class, the last one (-1) by default. */
#include "engine/graph/op_list.h"
#include "engine/ops/family/ctc_paths.h"
#include "engine/ops/family/gradient.h"

static const char *const attrs[] = {"blank", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    TRY(ctc_check(c, 0, err));
    struct shape losses = shape_of(c->in[CTC_LOGITS]->shape.dim[1]);
    infer_set(c, 0, c->in[CTC_LOGITS]->dtype, &losses);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    ctc_cost(c, 0, 1, cost);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct ctc_paths p;
    enum status status = ctc_paths_init(&p, call, 0, err);
    for (int64_t n = 0; status == STATUS_OK && n < p.c.samples; n++) {
        status = ctc_paths_sum(&p, call, 0, n, err);
        call->out[0]->f[n] = -p.total;
    }
    ctc_paths_release(&p);
    return status;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    int64_t blank = node_int(gradient_node(c), "blank", -1);
    bool lengths = gradient_node(c)->op_inputs > CTC_INPUT_LENGTHS;
    (void)err;
    c->dx[0] = graph_node(c->g, op_ctc_loss_gradient.name, NULL,
                          INPUTS(c->dy[0], gradient_in(c, CTC_LOGITS), gradient_in(c, CTC_LABELS),
                                 gradient_in(c, CTC_LABEL_LENGTHS),
                                 lengths ? gradient_in(c, CTC_INPUT_LENGTHS) : NONE),
                          ATTRS(attr_int("blank", blank)));
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "words", .inputs = "f32[25,7,37]{-3:3} i64[7,9]{0:36} i64[7]{1:10}"},
    {.name = "repeats", .inputs = "f32[24,9,3]{-2:2} i32[9,8]{0:2} i32[9]{0:9}"},
    {.name = "blank first",
     .inputs = "f32[18,5,4]{-2:2} i64[5,4]{1:4} i64[5]=0,1,2,3,4",
     .attrs = "blank=0"},
    {.name = "lengths", .inputs = "f32[30,5,6]{-2:2} i64[5,4]{0:5} i64[5]{1:5} i64[5]{9:31}"},
    {.name = "one step", .inputs = "f32[1,4,11] i64[4,1]{0:10} i64[4]=0,1,1,0"},
    {.name = "exact", .inputs = "f32[5,2,4]{-2:2} i64[2,4]=1,1,2,0,0,1,2,1 i64[2]=4,4"},
    {.name = "long", .inputs = "f32[300,2,90]{-4:4} i32[2,80]{0:89} i32[2]=80,41"},
    {.name = "peaked", .inputs = "f32[40,3,12]{-40:40} i64[3,10]{0:11} i64[3]=10,3,0"},
    {.name = "impossible",
     .inputs = "f32[3,3,4] i64[3,3]=1,1,2,0,2,1,0,0,0 i64[3]=3,3,3 i64[3]=3,3,0"},
    {.name = "no label", .inputs = "f32[6,2,5] i64[2,0] i64[2]=0"},
};

REGISTER(op, ctc_loss) = {
    .name = "CTCLoss",
    .domain = "ridge",
    .inputs_min = CTC_INPUT_LENGTHS,
    .inputs_max = CTC_INPUTS,
    .int_inputs = 1u << CTC_LABELS | 1u << CTC_LABEL_LENGTHS | 1u << CTC_INPUT_LENGTHS,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
