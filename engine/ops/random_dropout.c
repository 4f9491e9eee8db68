/* SPDX-License-Identifier: Apache-2.0
 * RandomDropout (ridge): x with each element set to 0 with probability `ratio`, the others divided
 * by 1 - ratio (Srivastava et al. 2014). The mask is a function of the attribute `seed`, of input
 * 1, the number of the step, and of the element's row-major index, numbered by the attributes
 * `first`, `run` and `every` (engine/ops/lib/dropout.h), by counters (base/numbers/random.h): every
 * kernel makes the same one, and the gradient makes it again. `axis` is that of the samples, which
 * ranks share. */
#include "base/numbers/random.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/dropout.h"

static const char *const attrs[] = {"ratio", "seed", "first", "run", "every", "axis", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    double ratio = node_float(c->node, "ratio", 0.5);
    int64_t axis = node_int(c->node, "axis", 0), run = node_int(c->node, "run", 0);
    char text[96];
    if (shape_count(&c->in[1]->shape) != 1)
        return FAIL(err, STATUS_FAILED, "RandomDropout: the step has shape %s, it is one number",
                    shape_text(&c->in[1]->shape, text));
    if (!(ratio >= 0 && ratio < 1))
        return FAIL(err, STATUS_FAILED, "RandomDropout: ratio %g is not in [0, 1)", ratio);
    if (axis < 0 || (axis > 0 && axis >= c->in[0]->shape.rank) || run < 0)
        return FAIL(err, STATUS_FAILED,
                    "RandomDropout: axis %lld or run %lld makes no sense for %s", (long long)axis,
                    (long long)run, shape_text(&c->in[0]->shape, text));
    return infer_same(c, err);
}

static void cost(const struct infer *c, struct cost *cost)
{
    cost->elementwise = (double)shape_count(&c->in[0]->shape);
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *x = call->in[0];
    uint32_t least = dropout_least(call->node);
    uint64_t seed = dropout_seed(call->node, call->in[1]->i[0]);
    double factor = dropout_factor(call->node);
    struct dropout_runs runs = dropout_runs(call->node);
    (void)err;
    for (int64_t k = 0; k < x->count; k++) {
        uint32_t word[4];
        uint64_t at = dropout_number(&runs, k);
        random_words(seed, at / 4, word);
        call->out[0]->f[k] = word[at % 4] >= least ? x->f[k] * factor : 0;
    }
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    const struct node *node = gradient_node(c);
    (void)err;
    c->dx[0] = graph_node(c->g, op_random_dropout.name, NULL, INPUTS(c->dy[0], gradient_in(c, 1)),
                          node->attr_count, node->attrs);
    return STATUS_OK;
}

/* Along the axis of the samples. */
static bool draw_as_rank(struct graph *g, struct node *node, int ranks, int rank)
{
    const struct shape *shape = &g->values[node->outputs[0]].shape;
    int64_t run = 1;
    for (int k = (int)node_int(node, "axis", 0); k < shape->rank; k++)
        run *= shape->dim[k];
    return graph_set_attr(g, node, attr_int("first", rank * run)) &&
           graph_set_attr(g, node, attr_int("run", run)) &&
           graph_set_attr(g, node, attr_int("every", ranks * run));
}

static const struct op_case cases[] = {
    {.name = "half", .inputs = "f32[2,5,3,7] i64[]=3"},
    {.name = "tenth", .inputs = "f32[70001] i64[]=1000000", .attrs = "ratio=0.1 seed=12345"},
    {.name = "step_at_run_time", .inputs = "f32[67] i64[1]", .attrs = "ratio=0.25 seed=7"},
    {.name = "part", .inputs = "f32[40003] i64[]=5", .attrs = "ratio=0.25 seed=7 first=4097"},
    {.name = "part_of_whole_words", .inputs = "f32[67] i64[]=5", .attrs = "seed=7 first=1024"},
    {.name = "runs",
     .inputs = "f32[9,40,35] i64[]=5",
     .attrs = "ratio=0.25 seed=7 first=1400 run=1400 every=4200 axis=1"},
    {.name = "short_runs", .inputs = "f32[700,3] i64[]=5", .attrs = "first=6 run=3 every=9 axis=1"},
    {.name = "nothing", .inputs = "f32[67] i64[]=0", .attrs = "ratio=0.0"},
};

REGISTER(op, random_dropout) = {
    .name = "RandomDropout",
    .domain = "ridge",
    .inputs_min = 2,
    .int_inputs = 1u << 1,
    .attrs = attrs,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .gradient = gradient,
    .draw_as_rank = draw_as_rank,
    OP_CASES(cases),
};
