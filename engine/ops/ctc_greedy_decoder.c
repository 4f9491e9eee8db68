/* SPDX-License-Identifier: Apache-2.0
 * CTCGreedyDecoder (ridge): scores [T, N, C] -> labels [N, T] and how many of them are real [N].
 * The best class of every step (the first of equal ones); repeats are merged, then blanks dropped;
 * -1 fills the rest. Graves et al. 2006, section 3.2: best path decoding.
 * blank: a class, the last one (-1) by default; merge_repeated: 1 by default. */
#include "engine/graph/op.h"

static const char *const attrs[] = {"blank", "merge_repeated", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape;
    char text[96];
    if (x->rank != 3 || x->dim[2] < 1)
        return FAIL(err, STATUS_FAILED, "CTCGreedyDecoder takes [T,N,C], not %s",
                    shape_text(x, text));
    int64_t blank = node_int(c->node, "blank", -1);
    if (blank < -1 || blank >= x->dim[2])
        return FAIL(err, STATUS_FAILED, "CTCGreedyDecoder: blank %lld of %lld classes",
                    (long long)blank, (long long)x->dim[2]);
    struct shape labels = shape_of(x->dim[1], x->dim[0]), lengths = shape_of(x->dim[1]);
    infer_set(c, 0, DTYPE_I64, &labels);
    infer_set(c, 1, DTYPE_I64, &lengths);
    return STATUS_OK;
}

static int64_t best(const double *x, int64_t classes)
{
    int64_t at = 0;
    for (int64_t k = 1; k < classes; k++)
        at = x[k] > x[at] ? k : at;
    return at;
}

/* The word of image i; returns its length. labels: T of them, or NULL. */
static int64_t decode(const struct ref_call *call, int64_t i, int64_t *labels)
{
    const struct ref_tensor *x = call->in[0];
    int64_t n = x->shape.dim[1], classes = x->shape.dim[2], count = 0, before = -1;
    int64_t blank = node_int(call->node, "blank", -1);
    bool merge = node_int(call->node, "merge_repeated", 1) != 0;
    blank = blank < 0 ? classes - 1 : blank;
    for (int64_t t = 0; t < x->shape.dim[0]; t++) {
        int64_t now = best(x->f + (t * n + i) * classes, classes);
        bool kept = now != blank && !(merge && now == before);
        if (kept && labels)
            labels[count] = now;
        count += kept;
        before = now;
    }
    return count;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *labels = call->out[0];
    const struct ref_tensor *lengths = call->out_count > 1 ? call->out[1] : NULL;
    int64_t steps = call->in[0]->shape.dim[0], n = call->in[0]->shape.dim[1];
    (void)err;
    for (int64_t i = 0; i < n; i++) {
        int64_t *word = labels ? labels->i + i * steps : NULL;
        int64_t count = decode(call, i, word);
        if (lengths)
            lengths->i[i] = count;
        for (int64_t k = count; word && k < steps; k++)
            word[k] = -1;
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "words", .inputs = "f32[25,7,37]", .outputs = 2},
    {.name = "few_classes", .inputs = "f32[40,9,3]", .outputs = 2},
    {.name = "blank_first", .inputs = "f32[30,5,4]", .attrs = "blank=0", .outputs = 2},
    {.name = "repeats_kept", .inputs = "f32[30,5,4]", .attrs = "merge_repeated=0", .outputs = 2},
    {.name = "ties", .inputs = "f32[4,1,3]=1,1,0,0,2,2,0,2,2,3,3,3", .outputs = 2},
    {.name = "labels_only", .inputs = "f32[12,3,20]"},
};

REGISTER(op, ctc_greedy_decoder) = {
    .name = "CTCGreedyDecoder",
    .domain = "ridge",
    .inputs_min = 1,
    .outputs_max = 2,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .no_gradient = "its result is an index",
    OP_CASES(cases),
};
