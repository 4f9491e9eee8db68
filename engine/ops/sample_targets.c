/* SPDX-License-Identifier: Apache-2.0
 * SampleTargets (ridge): which places of an image a detector learns from, where there are too many.
 * Classes [N,P] and the number of the step become places [N,count] and their classes [N,count]:
 * first at most `positives` (half of them) of a positive class, then of class 0, at most `ratio`
 * (0: any number) for each positive one; place 0 of class -1 fills the rest. Of too many those are
 * taken that draw the least lots, in this order: lots are a function of the attribute `seed`, of
 * the step, of the row's number, counted from the attribute `first` on, and of the place
 * (engine/ops/lib/sample.h). `batch` is how many rows one rank numbers; 0: N. Ren et al.,
 * "Faster R-CNN", NIPS 2015, section 3.1.3. */
#include "engine/ops/lib/sample.h"

#include <stdlib.h>

#include "engine/graph/op.h"
#include "engine/ops/compute/sort.h"

static const char *const attrs[] = {"count", "positives", "ratio", "seed", "first", "batch", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *classes = &c->in[SAMPLE_CLASSES]->shape;
    char text[2][96];
    if (classes->rank != 2 || shape_count(&c->in[SAMPLE_STEP]->shape) != 1)
        return FAIL(err, STATUS_FAILED, "SampleTargets takes classes [N,P] and a step, not %s, %s",
                    shape_text(classes, text[0]), shape_text(&c->in[SAMPLE_STEP]->shape, text[1]));
    struct sample s = sample_of(c->node, classes);
    if (s.count < 1 || s.positives < 0 || s.positives > s.count || !(s.ratio >= 0))
        return FAIL(err, STATUS_FAILED, "SampleTargets: %lld places, %lld positive, ratio %g",
                    (long long)s.count, (long long)s.positives, s.ratio);
    if (s.first < 0 || node_int(c->node, "batch", 0) < 0)
        return FAIL(err, STATUS_FAILED, "SampleTargets: row %lld of a batch of %lld",
                    (long long)s.first, (long long)node_int(c->node, "batch", 0));
    struct shape chosen = shape_of(s.rows, s.count);
    infer_set(c, 0, DTYPE_I64, &chosen);
    infer_set(c, 1, DTYPE_I64, &chosen);
    return STATUS_OK;
}

static bool draws_less(const void *context, int64_t a, int64_t b)
{
    const uint32_t *lot = context;
    return lot[a] < lot[b];
}

struct row {
    const int64_t *classes;
    uint32_t *lot;
    int64_t *order; /* [2 P] */
    int64_t places;
};

/* Writes the first `most` places of positive classes, or of class 0; how many these are. */
static int64_t choose(const struct row *row, bool positive, int64_t limit, int64_t *chosen)
{
    int64_t count = 0;
    for (int64_t p = 0; p < row->places; p++)
        if (positive ? row->classes[p] > 0 : row->classes[p] == 0)
            row->order[count++] = p;
    sort_indices(row->order, count, row->order + row->places, draws_less, row->lot);
    int64_t taken = count < limit ? count : limit;
    for (int64_t k = 0; k < taken; k++)
        chosen[k] = row->order[k];
    return taken;
}

static void sample_row(const struct sample *s, const struct row *row, int64_t *chosen,
                       int64_t *classes)
{
    int64_t positives = choose(row, true, s->positives, chosen);
    int64_t taken =
        positives + choose(row, false, sample_negatives(s, positives), chosen + positives);
    for (int64_t k = 0; k < s->count; k++) {
        classes[k] = k < taken ? row->classes[chosen[k]] : -1;
        chosen[k] = k < taken ? chosen[k] : 0;
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *classes = call->in[SAMPLE_CLASSES];
    struct sample s = sample_of(call->node, &classes->shape);
    uint64_t seed = dropout_seed(call->node, call->in[SAMPLE_STEP]->i[0]);
    struct row row = {.places = s.places};
    int64_t *chosen = calloc(2 * (size_t)s.count, sizeof(*chosen));
    row.lot = calloc((size_t)s.places + 1, sizeof(*row.lot));
    row.order = calloc(2 * (size_t)s.places + 1, sizeof(*row.order));
    bool enough = chosen && row.lot && row.order;
    for (int64_t n = 0; enough && n < s.rows; n++) {
        row.classes = classes->i + n * s.places;
        for (int64_t p = 0; p < s.places; p++)
            row.lot[p] = sample_lot(seed, (s.first + n) * s.places + p);
        sample_row(&s, &row, chosen, chosen + s.count);
        for (int out = 0; out < call->out_count; out++)
            for (int64_t k = 0; call->out[out] && k < s.count; k++)
                call->out[out]->i[n * s.count + k] = chosen[out * s.count + k];
    }
    free(chosen);
    free(row.lot);
    free(row.order);
    return enough ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static bool draw_as_rank(struct graph *g, struct node *node, int ranks, int rank)
{
    int64_t batch = node_int(node, "batch", 0), first = node_int(node, "first", 0);
    (void)ranks;
    if (batch == 0)
        batch = g->values[node->outputs[0]].shape.dim[0];
    return graph_set_attr(g, node, attr_int("first", first + rank * batch));
}

static const struct op_case cases[] = {
    {.name = "random", .inputs = "i64[5,1000]{-3:2} i64[]=3", .outputs = 2},
    {.name = "few",
     .inputs = "i64[3,4001]{-60:2} i64[1]",
     .attrs = "count=64 seed=9",
     .outputs = 2},
    {.name = "a third",
     .inputs = "i32[2,777]{-1:40} i64[]=100",
     .attrs = "count=200 positives=66 ratio=2.0 seed=12345",
     .outputs = 2},
    {.name = "not enough", .inputs = "i64[2,40]{-1:2} i64[]", .attrs = "count=50", .outputs = 2},
    {.name = "none positive", .inputs = "i64[1,70]=0 i64[]=1", .attrs = "count=16"},
    {.name = "part",
     .inputs = "i64[2,777]{-1:3} i64[]=5",
     .attrs = "count=64 seed=9 first=3 batch=2",
     .outputs = 2},
    {.name = "none at all",
     .inputs = "i64[2,7]=-1 i64[]=0",
     .attrs = "count=4 ratio=3.0",
     .outputs = 2},
};

REGISTER(op, sample_targets) = {
    .name = "SampleTargets",
    .domain = "ridge",
    .inputs_min = SAMPLE_INPUTS,
    .inputs_max = SAMPLE_INPUTS,
    .int_inputs = 1u << SAMPLE_CLASSES | 1u << SAMPLE_STEP,
    .outputs_max = 2,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .no_gradient = "its result is a choice",
    .draw_as_rank = draw_as_rank,
    OP_CASES(cases),
};
