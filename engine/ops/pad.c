/* SPDX-License-Identifier: Apache-2.0
 * Pad: more elements before and after each axis, or fewer where a pad is negative. Attributes
 * before opset 11, then inputs; axes (opset 18) name the padded axes. Elements are cut off first;
 * what is left is then padded: with a constant, its border (edge), its mirror image (reflect), or
 * itself (wrap, opset 19). */
#include <string.h>

#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/move.h"
#include "engine/ops/lib/pad.h"

static const char *const attrs[] = {"mode", "pads", "value", "paddings", NULL};
static const struct attr_input attr_inputs[] = {
    {"pads", 1, 11}, {"paddings", 1, 11}, {"value", 2, 11}, {NULL, 0, 0}};

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct pad_span spans[RANK_MAX] = {{0}};
    struct shape y = c->in[0]->shape;
    enum pad_mode mode;
    TRY(pad_mode_of(c->node, &mode, err));
    TRY(pad_spans_of(&args, spans, err));
    for (int k = 0; k < y.rank; k++) {
        y.dim[k] = spans[k].total;
        if (mode != PAD_CONSTANT && spans[k].size == 0 && spans[k].total)
            return FAIL(err, STATUS_FAILED, "axis %d is empty: mode \"%s\" has nothing to repeat",
                        k, node_string(c->node, "mode", ""));
    }
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

/* What mode "constant" keeps of the input; the rest of the output is the constant. */
static enum status move(const struct op_args *args, int part, struct move *m, struct error *err)
{
    (void)part;
    struct pad_span spans[RANK_MAX] = {{0}};
    if (strcmp(node_string(args->node, "mode", "constant"), "constant") != 0)
        return UNSUPPORTED(err, "only mode constant is a plain copy");
    TRY(pad_spans_of(args, spans, err));
    move_over(m, args_in(args, 0));
    for (int k = 0; k < m->loop_count; k++) {
        m->loops[k].extent = spans[k].size;
        m->in_start[k] = spans[k].first;
        m->out_start[k] = spans[k].begin;
    }
    return STATUS_OK;
}

static void fill(const struct ref_call *call)
{
    const struct ref_tensor *y = call->out[0];
    const struct ref_tensor *given = call->in_count > 2 ? call->in[2] : NULL;
    double value = node_float(call->node, "value", 0);
    for (int64_t k = 0; k < y->count; k++) {
        if (given && given->count)
            ref_copy(y, k, given, 0);
        else
            ref_set(y, k, value);
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct op_args args = args_of_ref(call);
    struct pad_span spans[RANK_MAX] = {{0}};
    const struct ref_tensor *x = call->in[0], *y = call->out[0];
    enum pad_mode mode;
    TRY(pad_mode_of(call->node, &mode, err));
    if (mode == PAD_CONSTANT) {
        fill(call);
        return reference_move(call, err);
    }
    TRY(pad_spans_of(&args, spans, err));
    for (int64_t k = 0; k < y->count; k++) {
        int64_t rest = k, from = 0, stride = 1;
        for (int d = x->shape.rank - 1; d >= 0; d--) {
            const struct pad_span *span = &spans[d];
            int64_t total = span->total > 0 ? span->total : 1;
            int64_t at = rest % total - span->begin;
            from += (span->first + pad_source(mode, at, span->size)) * stride;
            stride *= x->shape.dim[d];
            rest /= total;
        }
        ref_copy(y, k, x, from);
    }
    return STATUS_OK;
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    struct gradient_inputs inputs;
    struct op_args args = gradient_args(c, &inputs);
    struct pad_span spans[RANK_MAX] = {{0}};
    TRY(pad_spans_of(&args, spans, err));
    int64_t first[RANK_MAX] = {0}, begin[RANK_MAX] = {0}, after[RANK_MAX] = {0};
    struct shape x = gradient_shape(g, gradient_in(c, 0)), kept = x;
    if (strcmp(node_string(gradient_node(c), "mode", "constant"), "constant") != 0)
        return UNSUPPORTED(err, "the gradient of Pad in mode \"%s\"",
                           node_string(gradient_node(c), "mode", "constant"));
    for (int k = 0; k < x.rank; k++) {
        first[k] = spans[k].first;
        begin[k] = spans[k].begin;
        kept.dim[k] = spans[k].size;
        after[k] = x.dim[k] - spans[k].first - spans[k].size;
    }
    int constant = gradient_in(c, 2), inside = make_slice(g, c->dy[0], begin, &kept);
    if (c->wanted[0])
        c->dx[0] = make_padded(g, inside, first, after);
    if (constant != NONE && c->wanted[2])
        c->dx[2] =
            make_sub(g, make_sum_to(g, c->dy[0], constant), make_sum_to(g, inside, constant));
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "constant", .inputs = "f32[2,3,4] i64[6]=0,1,2,1,0,3 f32[]=1.5"},
    {.name = "attribute", .inputs = "f32[1,2,5,6]", .attrs = "pads=[0,0,1,1,0,0,1,1] value=-0.5"},
    {.name = "image", .inputs = "f32[2,16,7,7] i64[8]=0,0,1,2,0,0,2,1"},
    {.name = "cut", .inputs = "f32[6,8] i64[4]=-1,2,-2,-3"},
    {.name = "integers", .inputs = "i64[2,3] i64[4]=1,0,0,2 i64[]=7"},
    {.name = "axes", .inputs = "f32[2,3,4] i64[2]=1,2 f32[]=0 i64[1]=-2"},
    {.name = "edge", .inputs = "f32[2,3,4] i64[6]=1,2,0,0,1,5", .attrs = "mode=\"edge\""},
    {.name = "reflect",
     .inputs = "f32[1,2,4,5] i64[8]=0,0,3,2,0,0,1,4",
     .attrs = "mode=\"reflect\""},
    {.name = "reflect_cut", .inputs = "f32[7] i64[2]=-2,3", .attrs = "mode=\"reflect\""},
    {.name = "wrap", .inputs = "f32[3,4] i64[4]=1,5,0,2", .attrs = "mode=\"wrap\""},
    /* Lines longer than a vector, runs of channels, several tiles, other types. */
    {.name = "reflect_image",
     .inputs = "f32[2,20,33,70] i64[8]=0,0,3,3,0,0,3,4",
     .attrs = "mode=\"reflect\""},
    {.name = "edge_channels",
     .inputs = "f32[1,5,3,9] i64[8]=0,2,0,1,0,3,0,0",
     .attrs = "mode=\"edge\""},
    {.name = "reflect_outer_alone",
     .inputs = "f32[4,3,5] i64[6]=3,0,0,2,0,0",
     .attrs = "mode=\"reflect\""},
    {.name = "wrap_cut", .inputs = "f32[2,3,18] i64[6]=1,0,-3,0,2,9", .attrs = "mode=\"wrap\""},
    {.name = "edge_cut_to_one", .inputs = "f32[3,6] i64[4]=-1,-2,-1,3", .attrs = "mode=\"edge\""},
    {.name = "reflect_one", .inputs = "f32[2,1] i64[4]=0,2,0,1", .attrs = "mode=\"reflect\""},
    {.name = "wrap_integers", .inputs = "i64[2,5] i64[4]=0,1,1,3", .attrs = "mode=\"wrap\""},
    {.name = "edge_bytes", .inputs = "u8[3,7] i64[4]=1,2,0,5", .attrs = "mode=\"edge\""},
    {.name = "reflect_nothing", .inputs = "f32[0,4] i64[4]=0,1,0,1", .attrs = "mode=\"reflect\""},
};

REGISTER(op, pad) = {
    .name = "Pad",
    .inputs_min = 1,
    .inputs_max = 4,
    .attrs = attrs,
    .const_inputs = 1u << 1 | 1u << 3,
    .layout = LAYOUT_RULE_AXIS,
    .attr_inputs = attr_inputs,
    .infer = infer,
    .move = move,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
