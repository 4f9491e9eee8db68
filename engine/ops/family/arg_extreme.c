/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/arg_extreme.h"

#include "engine/ops/lib/axis.h"
#include "engine/ops/lib/op_args.h"

const char *const arg_attrs[] = {"axis", "keepdims", "select_last_index", NULL};

bool ref_less(const struct ref_tensor *x, int64_t a, int64_t b)
{
    if (x->f)
        return x->f[a] < x->f[b];
    if (dtype_is_unsigned(x->dtype))
        return (uint64_t)x->i[a] < (uint64_t)x->i[b];
    return x->i[a] < x->i[b];
}

enum status arg_infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    int axis;
    const struct shape *x = &c->in[0]->shape;
    TRY(args_axis(&args, x, 0, &axis, err));
    if (x->dim[axis] == 0)
        return FAIL(err, STATUS_FAILED, "axis %d has no elements", axis);
    bool keep = node_int(c->node, "keepdims", 1) != 0;
    struct shape y = {0};
    for (int k = 0; k < x->rank; k++)
        if (k != axis || keep)
            y.dim[y.rank++] = k == axis ? 1 : x->dim[k];
    infer_set(c, 0, DTYPE_I64, &y);
    return STATUS_OK;
}

/* One comparison per element. */
void arg_cost(const struct infer *c, struct cost *cost)
{
    if (dtype_is_float(c->in[0]->dtype))
        cost->elementwise += (double)shape_count(&c->in[0]->shape);
}

enum status arg_reference(const struct ref_call *call, bool largest, struct error *err)
{
    struct op_args args = args_of_ref(call);
    int which;
    const struct ref_tensor *x = call->in[0];
    TRY(args_axis(&args, &x->shape, 0, &which, err));
    struct axis axis = axis_at(&x->shape, which);
    bool last = node_int(call->node, "select_last_index", 0) != 0;
    for (int64_t line = 0; line < axis.outer * axis.inner; line++) {
        int64_t base = line / axis.inner * axis.size * axis.inner + line % axis.inner, best = 0;
        for (int64_t k = 1; k < axis.size; k++) {
            int64_t at = base + k * axis.inner, held = base + best * axis.inner;
            bool better = largest ? ref_less(x, held, at) : ref_less(x, at, held);
            bool worse = largest ? ref_less(x, at, held) : ref_less(x, held, at);
            if (better || (last && !worse))
                best = k;
        }
        call->out[0]->i[line] = best;
    }
    return STATUS_OK;
}
