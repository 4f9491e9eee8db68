/* SPDX-License-Identifier: Apache-2.0
 * Unique: the different slices along an axis (without one: elements), sorted or in the order of
 * their first appearance; where each first stands, which one each slice is, how often each occurs.
 * Outputs 0, 1 and 3 are padded with zeros; output 4 says how many slices are different. */
#include <stdlib.h>

#include "engine/ops/compute/sort.h"
#include "engine/ops/lib/axis.h"
#include "engine/ops/lib/move.h"

static const char *const attrs[] = {"axis", "sorted", NULL};

enum { Y, INDICES, INVERSE, COUNTS, COUNT, OUTPUTS };

static enum status find(const struct op_args *args, struct axis *axis, int *place,
                        struct error *err)
{
    const struct shape *x = args_in(args, 0);
    *axis = (struct axis){.outer = 1, .size = shape_count(x), .inner = 1};
    *place = -1;
    if (!node_attr(args->node, "axis"))
        return STATUS_OK;
    TRY(args_axis(args, x, 0, place, err));
    *axis = axis_at(x, *place);
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct axis axis;
    int place;
    TRY(find(&args, &axis, &place, err));
    struct shape line = shape_of(axis.size), scalar = shape_scalar();
    infer_set(c, Y, c->in[0]->dtype, place < 0 ? &line : &c->in[0]->shape);
    infer_set(c, INDICES, DTYPE_I64, &line);
    infer_set(c, INVERSE, DTYPE_I64, &line);
    infer_set(c, COUNTS, DTYPE_I64, &line);
    infer_set(c, COUNT, DTYPE_I64, &scalar);
    return STATUS_OK;
}

static int count_axis(const struct infer *c, int output)
{
    struct op_args args = args_of_infer(c);
    struct axis axis;
    int place;
    if (output == INDICES || output == COUNTS)
        return 0;
    if (output != Y || find(&args, &axis, &place, NULL) != STATUS_OK)
        return -1;
    return place < 0 ? 0 : place;
}

struct slices {
    const struct ref_tensor *x;
    struct axis axis;
};

/* Slices as [outer, inner] vectors in lexicographic order: negative, zero or positive. */
static int compare(const struct slices *s, int64_t a, int64_t b)
{
    for (int64_t n = 0; n < s->axis.outer * s->axis.inner; n++) {
        int64_t base = n / s->axis.inner * s->axis.size * s->axis.inner + n % s->axis.inner;
        double left = ref_get(s->x, base + a * s->axis.inner);
        double right = ref_get(s->x, base + b * s->axis.inner);
        if (left != right)
            return left < right ? -1 : 1;
    }
    return 0;
}

static bool slice_before(const void *context, int64_t a, int64_t b)
{
    return compare(context, a, b) < 0;
}

static bool number_before(const void *context, int64_t a, int64_t b)
{
    const int64_t *number = context;
    return number[a] < number[b];
}

/* Working memory: five lines of axis.size. */
struct work {
    int64_t *order, *scratch;
    int64_t *first; /* of different slice u: where it first stands */
    int64_t *times; /* of different slice u: how often */
    int64_t *which; /* of slice k: its u */
    int64_t different;
};

/* Numbers the different slices in ascending order. */
static void number_slices(const struct slices *s, struct work *w)
{
    for (int64_t k = 0; k < s->axis.size; k++)
        w->order[k] = k;
    sort_indices(w->order, s->axis.size, w->scratch, slice_before, s);
    for (int64_t k = 0; k < s->axis.size; k++) {
        int64_t at = w->order[k];
        if (k == 0 || compare(s, w->order[k - 1], at) != 0) {
            w->first[w->different] = at; /* the sort is stable: the lowest of equal ones */
            w->times[w->different++] = 0;
        }
        w->which[at] = w->different - 1;
        w->times[w->different - 1]++;
    }
}

static int64_t *wanted(const struct ref_call *call, int output)
{
    return output < call->out_count && call->out[output] ? call->out[output]->i : NULL;
}

/* Writes different slice u, which stands at position `to` of the result. */
static void emit(const struct ref_call *call, const struct slices *s, const struct work *w,
                 int64_t u, int64_t to)
{
    const struct axis *axis = &s->axis;
    for (int64_t n = 0; call->out[Y] && n < axis->outer * axis->inner; n++) {
        int64_t base = n / axis->inner * axis->size * axis->inner + n % axis->inner;
        ref_copy(call->out[Y], base + to * axis->inner, s->x, base + w->first[u] * axis->inner);
    }
    if (wanted(call, INDICES))
        wanted(call, INDICES)[to] = w->first[u];
    if (wanted(call, COUNTS))
        wanted(call, COUNTS)[to] = w->times[u];
    w->scratch[u] = to;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct op_args args = args_of_ref(call);
    struct slices s = {.x = call->in[0]};
    int place;
    TRY(find(&args, &s.axis, &place, err));
    int64_t size = s.axis.size;
    int64_t *memory = malloc((size_t)(size + 1) * 5 * sizeof(*memory));
    if (!memory)
        return FAIL_NO_MEMORY(err);
    struct work w = {.order = memory,
                     .scratch = memory + size,
                     .first = memory + 2 * size,
                     .times = memory + 3 * size,
                     .which = memory + 4 * size};
    number_slices(&s, &w);
    for (int64_t u = 0; u < w.different; u++)
        w.order[u] = u;
    if (node_int(call->node, "sorted", 1) == 0)
        sort_indices(w.order, w.different, w.scratch, number_before, w.first);
    for (int64_t to = 0; to < w.different; to++)
        emit(call, &s, &w, w.order[to], to);
    for (int64_t k = 0; wanted(call, INVERSE) && k < size; k++)
        wanted(call, INVERSE)[k] = w.scratch[w.which[k]];
    if (wanted(call, COUNT))
        wanted(call, COUNT)[0] = w.different;
    free(memory);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "sorted", .inputs = "f32[6]=2,1,1,3,4,3", .outputs = OUTPUTS},
    {.name = "unsorted", .inputs = "i64[20]", .attrs = "sorted=0", .outputs = OUTPUTS},
    {.name = "flat", .inputs = "i32[4,5]{0:6}", .outputs = OUTPUTS},
    {.name = "rows", .inputs = "i32[12,2]{0:3}", .attrs = "axis=0", .outputs = OUTPUTS},
    {.name = "columns",
     .inputs = "f32[2,3,2]=0,1,0,1,2,1,0,1,0,1,2,1",
     .attrs = "axis=1",
     .outputs = OUTPUTS},
    {.name = "last", .inputs = "u8[2,9]{0:2}", .attrs = "axis=-1 sorted=0", .outputs = OUTPUTS},
};

REGISTER(op, unique) = {
    .name = "Unique",
    .inputs_min = 1,
    .outputs_max = OUTPUTS,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
    .no_gradient = "its result is an index",
    OP_CASES(cases),
    .count_output = COUNT,
    .count_axis = count_axis,
};
