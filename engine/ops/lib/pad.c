/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/pad.h"

#include <string.h>

enum status pad_mode_of(const struct node *node, enum pad_mode *mode, struct error *err)
{
    static const char *const names[] = {"constant", "edge", "reflect", "wrap"};
    const char *name = node_string(node, "mode", names[PAD_CONSTANT]);
    for (int k = 0; k < ARRAY_COUNT(names); k++)
        if (strcmp(name, names[k]) == 0) {
            *mode = (enum pad_mode)k;
            return STATUS_OK;
        }
    return UNSUPPORTED(err, "mode \"%s\" of Pad", name);
}

enum status pad_spans_of(const struct op_args *args, struct pad_span *spans, struct error *err)
{
    struct int_list pads, axes;
    const struct shape *x = args_in(args, 0);
    TRY(args_ints(args, 1, node_attr(args->node, "pads") ? "pads" : "paddings", &pads, err));
    TRY(args_ints(args, 3, NULL, &axes, err));
    int count = axes.count < 0 ? x->rank : axes.count;
    if (pads.count != 2 * count)
        return FAIL(err, STATUS_FAILED, "%d pads for %d axes", pads.count, count);
    for (int k = 0; k < x->rank; k++)
        spans[k] = (struct pad_span){.size = x->dim[k], .total = x->dim[k]};
    for (int k = 0; k < count; k++) {
        int axis = shape_axis(x, axes.count < 0 ? k : axes.at[k]);
        if (axis < 0)
            return FAIL(err, STATUS_FAILED, "axis %lld of Pad is outside rank %d",
                        (long long)axes.at[k], x->rank);
        int64_t before = pads.at[k], after = pads.at[count + k];
        struct pad_span *span = &spans[axis];
        span->first = before < 0 ? -before : 0;
        span->begin = before > 0 ? before : 0;
        span->size = x->dim[axis] - span->first + (after < 0 ? after : 0);
        span->total = span->begin + span->size + (after > 0 ? after : 0);
        if (span->size < 0)
            return FAIL(err, STATUS_FAILED, "pads %lld and %lld cut more than axis %d has",
                        (long long)before, (long long)after, axis);
    }
    return STATUS_OK;
}

static int64_t wrapped(int64_t at, int64_t period)
{
    return period < 1 ? 0 : (at % period + period) % period;
}

int64_t pad_source(enum pad_mode mode, int64_t at, int64_t size)
{
    if (mode == PAD_EDGE)
        return at < 0 ? 0 : at >= size ? size - 1 : at;
    if (mode == PAD_WRAP)
        return wrapped(at, size);
    if (size == 1)
        return 0;
    int64_t folded = wrapped(at, 2 * (size - 1));
    return folded < size ? folded : 2 * (size - 1) - folded;
}
