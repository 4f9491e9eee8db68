/* SPDX-License-Identifier: Apache-2.0
 * Slice: every step-th element from start to before end, per axis; negative ones count from the
 * end or go backwards. Attributes before opset 10, then inputs 1 to 4. */
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"starts", "ends", "axes", NULL};
static const struct attr_input attr_inputs[] = {
    {"starts", 1, 10}, {"ends", 2, 10}, {"axes", 3, 10}, {NULL, 0, 0}};

struct range {
    int64_t start, step, count;
};

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

static struct range range_of(int64_t dim, int64_t start, int64_t end, int64_t step)
{
    step = clamp(step, -INT64_MAX, INT64_MAX);
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    start = clamp(start < 0 ? start + dim : start, step > 0 ? 0 : low + 1, high);
    end = clamp(end < 0 ? end + dim : end, low, high);
    int64_t way = step > 0 ? end - start : start - end;
    int64_t each = step > 0 ? step : -step;
    return (struct range){
        .start = start, .step = step, .count = dim > 0 && way > 0 ? (way - 1) / each + 1 : 0};
}

static enum status ranges_of(const struct op_args *args, struct range *ranges, struct error *err)
{
    struct int_list starts, ends, axes, steps;
    const struct shape *x = args_in(args, 0);
    TRY(args_ints(args, 1, "starts", &starts, err));
    TRY(args_ints(args, 2, "ends", &ends, err));
    TRY(args_ints(args, 3, "axes", &axes, err));
    TRY(args_ints(args, 4, NULL, &steps, err));
    int count = starts.count;
    if (count < 0 || ends.count != count || (axes.count >= 0 && axes.count != count) ||
        (steps.count >= 0 && steps.count != count) || count > x->rank)
        return FAIL(err, STATUS_FAILED, "Slice has %d starts, %d ends, %d axes, %d steps", count,
                    ends.count, axes.count, steps.count);
    for (int k = 0; k < x->rank; k++)
        ranges[k] = (struct range){.step = 1, .count = x->dim[k]};
    for (int k = 0; k < count; k++) {
        int axis = shape_axis(x, axes.count < 0 ? k : axes.at[k]);
        int64_t step = steps.count < 0 ? 1 : steps.at[k];
        if (axis < 0 || step == 0)
            return FAIL(err, STATUS_FAILED, "axis %lld or step %lld of Slice makes no sense",
                        (long long)(axes.count < 0 ? k : axes.at[k]), (long long)step);
        ranges[axis] = range_of(x->dim[axis], starts.at[k], ends.at[k], step);
    }
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct range ranges[RANK_MAX] = {{0}};
    struct shape y = c->in[0]->shape;
    TRY(ranges_of(&args, ranges, err));
    for (int k = 0; k < y.rank; k++)
        y.dim[k] = ranges[k].count;
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static enum status move(const struct op_args *args, int part, struct move *m, struct error *err)
{
    (void)part;
    struct range ranges[RANK_MAX] = {{0}};
    TRY(ranges_of(args, ranges, err));
    move_over(m, args_in(args, 0));
    for (int k = 0; k < m->loop_count; k++) {
        m->loops[k].extent = ranges[k].count;
        m->loops[k].in_step = ranges[k].count > 1 ? ranges[k].step : 1;
        m->in_start[k] = ranges[k].count ? ranges[k].start : 0;
    }
    return STATUS_OK;
}

static int make_reversed(struct graph *g, int x, int axis)
{
    int64_t start = -1, end = INT64_MIN, along = axis;
    return graph_node(g, op_slice.name, NULL,
                      INPUTS(x, graph_const_i64(g, 1, &start), graph_const_i64(g, 1, &end),
                             graph_const_i64(g, 1, &along), graph_const_i64(g, 1, &start)),
                      NO_ATTRS);
}

/* `each` - 1 zeros between neighbours: an axis of `each` elements more, all but its first zero. */
static int make_spread(struct graph *g, int x, int axis, int64_t each)
{
    struct shape from = gradient_shape(g, x), wide = from, flat = from;
    int64_t none[RANK_MAX] = {0}, more[RANK_MAX] = {0};
    wide.rank++;
    for (int k = axis + 1; k < wide.rank; k++)
        wide.dim[k] = k == axis + 1 ? 1 : from.dim[k - 1];
    more[axis + 1] = each - 1;
    flat.dim[axis] *= each;
    int spread = make_padded(g, make_reshaped(g, x, &wide), none, more);
    spread = make_reshaped(g, spread, &flat);
    flat.dim[axis] -= each - 1;
    return make_slice(g, spread, none, &flat);
}

static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    struct gradient_inputs inputs;
    struct op_args args = gradient_args(c, &inputs);
    struct range ranges[RANK_MAX] = {{0}};
    TRY(ranges_of(&args, ranges, err));
    struct shape whole = gradient_shape(g, gradient_in(c, 0));
    int64_t before[RANK_MAX], after[RANK_MAX];
    int dy = c->dy[0];
    for (int k = 0; k < whole.rank; k++) {
        struct range *r = &ranges[k];
        int64_t each = r->step > 0 ? r->step : -r->step, last = r->start + (r->count - 1) * r->step;
        if (r->count > 1 && r->step < 0) {
            dy = make_reversed(g, dy, k);
            r->start = last;
        }
        if (r->count > 1 && each > 1 && whole.rank == RANK_MAX)
            return UNSUPPORTED(err, "the gradient of a Slice with steps at rank %d", RANK_MAX);
        if (r->count > 1 && each > 1)
            dy = make_spread(g, dy, k, each);
        before[k] = r->count ? r->start : 0;
        after[k] = whole.dim[k] - before[k] - gradient_shape(g, dy).dim[k];
    }
    c->dx[0] = make_padded(g, dy, before, after);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "attribute", .inputs = "f32[4,6]", .attrs = "starts=[1,-3] ends=[3,100] axes=[0,1]"},
    {.name = "input", .inputs = "f32[5,6,7] i64[2]=1,0 i64[2]=4,-1 i64[2]=0,-1 i64[2]=1,2"},
    {.name = "backwards", .inputs = "f32[20,10] i64[2]=-1,8 i64[2]=-100,2 - i64[2]=-3,-2"},
    {.name = "reverse", .inputs = "f32[3,17] i32[1]=-1 i32[1]=-2147483648 i32[1]=1 i32[1]=-1"},
    {.name = "reverse_of_nothing", .inputs = "f32[0,3] i64[1]=-1 i64[1]=-9 i64[1]=0 i64[1]=-1"},
    {.name = "none", .inputs = "i64[5,2] i64[1]=4 i64[1]=2 i64[1]=0"},
    {.name = "channels", .inputs = "f32[2,40,3,3] i64[1]=8 i64[1]=40 i64[1]=1"},
    {.name = "columns", .inputs = "u8[9,33] i64[1]=1 i64[1]=33 i64[1]=1 i64[1]=4"},
    {.name = "five", .inputs = "f32[2,3,4,5,6] i64[3]=0,1,2 i64[3]=2,3,4 i64[3]=4,3,2"},
};

REGISTER(op, slice) = {
    .name = "Slice",
    .moves_in_passing = true,
    .reads = READS_WHAT_IT_WRITES,
    .inputs_min = 1,
    .inputs_max = 5,
    .attrs = attrs,
    .const_inputs = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,
    .layout = LAYOUT_RULE_AXIS,
    .attr_inputs = attr_inputs,
    .infer = infer,
    .move = move,
    .reference = reference_move,
    .gradient = gradient,
    OP_CASES(cases),
};
