/* SPDX-License-Identifier: Apache-2.0
 * TensorScatter: a cache of keys or values with the update in the place of a run of positions along
 * `axis`, which begins for each element of axis 0 where write_indices says, else at 0. mode
 * "linear": the run lies inside; "circular": what comes after the last position goes on at the
 * first. Where the cache is a state, it is changed in place. */
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/family/op_index.h"
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"axis", "mode", NULL};

enum { PAST, UPDATE, INDICES };

static bool has_indices(const struct node *node)
{
    return node->op_inputs > INDICES && node->inputs[INDICES] != NONE;
}

static bool is_circular(const struct node *node)
{
    return strcmp(node_string(node, "mode", "linear"), "circular") == 0;
}

static enum status check_shapes(const struct infer *c, int axis, struct error *err)
{
    const struct shape *past = &c->in[PAST]->shape, *update = &c->in[UPDATE]->shape;
    char text[96], text_past[96];
    bool fits = past->rank == update->rank;
    for (int k = 0; fits && k < past->rank; k++)
        fits = k == axis ? update->dim[k] <= past->dim[k] : update->dim[k] == past->dim[k];
    if (!fits)
        return FAIL(err, STATUS_FAILED,
                    "TensorScatter: update %s is no part of the cache %s along axis %d",
                    shape_text(update, text), shape_text(past, text_past), axis);
    struct shape samples = shape_of(past->dim[0]);
    if (infer_has(c, INDICES) && !shape_equal(&c->in[INDICES]->shape, &samples))
        return FAIL(err, STATUS_FAILED,
                    "TensorScatter: write_indices %s are not one for each of %lld along axis 0",
                    shape_text(&c->in[INDICES]->shape, text), (long long)past->dim[0]);
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    const char *mode = node_string(c->node, "mode", "linear");
    int axis;
    TRY(args_axis(&args, &c->in[PAST]->shape, -2, &axis, err));
    if (axis == 0)
        return FAIL(err, STATUS_FAILED,
                    "TensorScatter: axis 0 is the batch, no sequence to write along");
    if (strcmp(mode, "linear") != 0 && !is_circular(c->node))
        return FAIL(err, STATUS_FAILED, "TensorScatter: mode \"%s\" is not linear or circular",
                    mode);
    if (c->in[PAST]->dtype != c->in[UPDATE]->dtype)
        return FAIL(err, STATUS_FAILED, "TensorScatter: the update is %s, the cache %s",
                    dtype_name(c->in[UPDATE]->dtype), dtype_name(c->in[PAST]->dtype));
    TRY(check_shapes(c, axis, err));
    return infer_same(c, err);
}

/* ---- reference ---- */

/* Where the run of a sample begins; circular: as it is given, the caller goes round. */
static enum status run_start(const struct ref_call *call, int64_t sample, int64_t count,
                             int64_t size, int64_t *start, struct error *err)
{
    bool given = call->in_count > INDICES && call->in[INDICES];
    *start = given ? call->in[INDICES]->i[sample] : 0;
    if (is_circular(call->node)) {
        *start = size ? *start % size : 0;
        *start += *start < 0 ? size : 0;
    } else if (*start < 0 || *start > size - count) {
        return FAIL(err, STATUS_FAILED,
                    "index %lld of TensorScatter (sample %lld): %lld positions from there on are "
                    "not within the cache's %lld",
                    (long long)*start, (long long)sample, (long long)count, (long long)size);
    }
    return STATUS_OK;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *past = call->in[PAST], *update = call->in[UPDATE];
    struct op_args args = args_of_ref(call);
    int axis;
    TRY(args_axis(&args, &past->shape, -2, &axis, err));
    int64_t lines = shape_span(&past->shape, 1, axis), samples = past->shape.dim[0];
    int64_t size = past->shape.dim[axis], count = update->shape.dim[axis];
    int64_t inner = shape_span(&past->shape, axis + 1, past->shape.rank);
    ref_copy_all(call->out[0], past);
    for (int64_t line = 0; line < samples * lines; line++) {
        int64_t start;
        TRY(run_start(call, line / lines, count, size, &start, err));
        for (int64_t k = 0; k < count; k++)
            for (int64_t e = 0; e < inner; e++)
                ref_copy(call->out[0], (line * size + (start + k) % size) * inner + e, update,
                         (line * count + k) * inner + e);
    }
    return STATUS_OK;
}

/* ---- gradient ---- */

/* The position that each element of the update goes to. */
static int places_of(const struct gradient_call *c, int axis, const struct shape *past,
                     const struct shape *update)
{
    struct graph *g = c->g;
    struct shape samples = *update, steps = *update;
    for (int k = 0; k < update->rank; k++) {
        samples.dim[k] = k == 0 ? update->dim[0] : 1;
        steps.dim[k] = k == axis ? update->dim[axis] : 1;
    }
    int64_t zero = 0, one = 1;
    bool circular = is_circular(gradient_node(c));
    int from = make_cast(g, gradient_in(c, INDICES), DTYPE_I64);
    int step =
        graph_node(g, op_range.name, NULL,
                   INPUTS(graph_const_i64(g, -1, &zero), graph_const_i64(g, -1, &update->dim[axis]),
                          graph_const_i64(g, -1, &one)),
                   NO_ATTRS);
    int at = make_add(g, make_reshaped(g, from, &samples), make_reshaped(g, step, &steps));
    if (circular)
        at = make_binary(g, &op_mod, at, graph_const_i64(g, -1, &past->dim[axis]));
    return make_expanded(g, at, update);
}

/* The update's gradient is read where it was written, and what it replaced has none. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    (void)err;
    const struct node *node = gradient_node(c);
    struct shape past = gradient_shape(g, gradient_in(c, PAST));
    struct shape update = gradient_shape(g, gradient_in(c, UPDATE));
    int axis = shape_axis(&past, node_int(node, "axis", -2));
    bool given = has_indices(node);
    struct attr same[] = {attr_int("axis", axis),
                          attr_string("mode", is_circular(node) ? "circular" : "linear")};
    int64_t start[RANK_MAX] = {0};
    if (c->wanted[UPDATE])
        c->dx[UPDATE] = given ? graph_node(g, op_gather_elements.name, NULL,
                                           INPUTS(c->dy[0], places_of(c, axis, &past, &update)),
                                           ATTRS(attr_int("axis", axis)))
                              : make_slice(g, c->dy[0], start, &update);
    if (c->wanted[PAST]) {
        int zeros = make_zeros(g, g->values[c->dy[0]].dtype, &update);
        c->dx[PAST] = graph_node(g, op_tensor_scatter.name, NULL,
                                 INPUTS(c->dy[0], zeros, given ? gradient_in(c, INDICES) : NONE),
                                 ARRAY_COUNT(same), same);
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "linear", .inputs = "f32[2,3,9,8] f32[2,3,4,8] i64[2]=5,1"},
    {.name = "circular",
     .inputs = "f32[3,2,5,8] f32[3,2,3,8] i64[3]=4,9,2",
     .attrs = "mode=\"circular\""},
    {.name = "circular_negative",
     .inputs = "f32[3,2,5,7] f32[3,2,3,7] i64[3]=-1,-12,-5",
     .attrs = "mode=\"circular\""},
    {.name = "from_the_start", .inputs = "f32[2,3,9,5] f32[2,3,4,5]"},
    {.name = "circular_from_the_start",
     .inputs = "f32[2,9,5] f32[2,4,5]",
     .attrs = "mode=\"circular\""},
    {.name = "one_position", .inputs = "f32[2,4,129,64] f32[2,4,1,64] i64[2]=128,0"},
    {.name = "all", .inputs = "f32[2,3,4] f32[2,3,4] i64[2]=0,0"},
    {.name = "all_round",
     .inputs = "f32[2,7,4] f32[2,7,4] i64[2]=3,6",
     .attrs = "mode=\"circular\""},
    {.name = "axis_1", .inputs = "f32[2,9,3,4] f32[2,2,3,4] i64[2]=7,3", .attrs = "axis=1"},
    {.name = "last_axis",
     .inputs = "f32[2,3,9] f32[2,3,4] i64[2]=8,3",
     .attrs = "axis=-1 mode=\"circular\""},
    {.name = "rank_2", .inputs = "f32[3,9] f32[3,2] i64[3]=7,0,4", .attrs = "axis=1"},
    {.name = "rank_5",
     .inputs = "f32[2,2,3,5,3] f32[2,2,3,2,3] i64[2]=4,1",
     .attrs = "mode=\"circular\""},
    {.name = "bytes", .inputs = "u8[2,9,5] u8[2,3,5] i64[2]=6,0"},
    {.name = "truths", .inputs = "bool[2,9,3] bool[2,1,3] i64[2]=8,2"},
    {.name = "integers", .inputs = "i32[2,9,5] i32[2,3,5] i32[2]=1,6"},
    {.name = "wide", .inputs = "i64[2,9,3] i64[2,3,3] i64[2]=8,6", .attrs = "mode=\"circular\""},
    {.name = "long", .inputs = "f32[1,2,700,128] f32[1,2,300,128] i64[1]=399"},
    {.name = "long_round",
     .inputs = "f32[2,700,67] f32[2,555,67] i64[2]=690,200",
     .attrs = "mode=\"circular\""},
    {.name = "nothing", .inputs = "f32[2,9,5] f32[2,0,5] i64[2]=9,0"},
    {.name = "empty", .inputs = "f32[2,9,0] f32[2,3,0] i64[2]=6,0"},
};

REGISTER(op, tensor_scatter) = {
    .name = "TensorScatter",
    .narrow = NARROW_MOVE,
    .reads = READS_REPLACED_PART,
    .in_place = 1u << 0,
    .inputs_min = 2,
    .inputs_max = 3,
    .int_inputs = 1u << INDICES,
    .attrs = attrs,
    .since = 24,
    .infer = infer,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
