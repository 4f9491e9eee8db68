/* SPDX-License-Identifier: Apache-2.0
 * HardNegatives (ridge): which losses count, where nearly all targets are background. Losses [N,P]
 * and classes [N,P] become flags [N,P]: set where the class is positive, and where it is 0 and the
 * loss is among the largest of its row, `ratio` (3) of them for each positive one and `least` (0)
 * at any rate; of equal losses the first. Negative classes never count. Liu et al., "SSD", ECCV
 * 2016, section 2.2. */
#include <stdlib.h>

#include "engine/graph/op.h"
#include "engine/ops/compute/sort.h"

static const char *const attrs[] = {"ratio", "least", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *losses = &c->in[0]->shape, *classes = &c->in[1]->shape;
    double ratio = node_float(c->node, "ratio", 3);
    char text[2][96];
    if (losses->rank != 2 || !shape_equal(losses, classes))
        return FAIL(err, STATUS_FAILED,
                    "HardNegatives takes losses and classes [N,P], not %s and %s",
                    shape_text(losses, text[0]), shape_text(classes, text[1]));
    if (!(ratio >= 0) || node_int(c->node, "least", 0) < 0)
        return FAIL(err, STATUS_FAILED, "HardNegatives: %g per positive one, %lld at least", ratio,
                    (long long)node_int(c->node, "least", 0));
    infer_set(c, 0, DTYPE_BOOL, losses);
    return STATUS_OK;
}

static bool larger(const void *context, int64_t a, int64_t b)
{
    const double *losses = context;
    return losses[a] > losses[b];
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    int64_t rows = call->in[0]->shape.dim[0], count = call->in[0]->shape.dim[1];
    double ratio = node_float(call->node, "ratio", 3);
    int64_t least = node_int(call->node, "least", 0);
    int64_t *order = calloc(2 * (size_t)count + 1, sizeof(*order));
    if (!order)
        return FAIL_NO_MEMORY(err);
    for (int64_t n = 0; n < rows; n++) {
        const double *losses = call->in[0]->f + n * count;
        const int64_t *classes = call->in[1]->i + n * count;
        int64_t *flags = call->out[0]->i + n * count, positives = 0, negatives = 0;
        for (int64_t p = 0; p < count; p++) {
            flags[p] = classes[p] > 0;
            positives += classes[p] > 0;
            if (classes[p] == 0)
                order[negatives++] = p;
        }
        sort_indices(order, negatives, order + count, larger, losses);
        int64_t kept = (int64_t)(ratio * (double)positives);
        kept = kept < least ? least : kept;
        for (int64_t k = 0; k < kept && k < negatives; k++)
            flags[order[k]] = 1;
    }
    free(order);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "random", .inputs = "f32[7,500]{0:5} i64[7,500]{-3:2}"},
    {.name = "few", .inputs = "f32[3,9000]{0:5} i32[3,9000]{-40:2}"},
    {.name = "ties",
     .inputs = "f32[2,9]=2,1,1,1,1,0,3,1,1,5,5,5,5,5,5,5,5,5 "
               "i64[2,9]=0,0,0,0,0,1,-1,0,0,0,0,2,0,0,0,0,0,0"},
    {.name = "no positive", .inputs = "f32[2,40]{0:5} i64[2,40]=0"},
    {.name = "least", .inputs = "f32[2,40]{-5:5} i64[2,40]=0", .attrs = "least=7"},
    {.name = "one in two", .inputs = "f32[4,61]{0:1} i64[4,61]{0:2}", .attrs = "ratio=0.5"},
    {.name = "all", .inputs = "f32[2,6]{0:1} i64[2,6]=0,0,1,1,0,1,1,1,1,1,1,0"},
};

REGISTER(op, hard_negatives) = {
    .name = "HardNegatives",
    .domain = "ridge",
    .inputs_min = 2,
    .int_inputs = 1u << 1,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .no_gradient = "its result is a choice",
    OP_CASES(cases),
};
