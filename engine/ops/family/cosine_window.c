/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/cosine_window.h"

#include <math.h>

#include "engine/ops/lib/op_args.h"

const char *const cosine_window_attrs[] = {"output_datatype", "periodic", NULL};

enum status cosine_window_infer(const struct infer *c, struct error *err)
{
    int64_t size, code = node_int(c->node, "output_datatype", 1);
    int count;
    TRY(infer_ints(c, 0, &size, 1, &count, err));
    enum dtype type = dtype_from_onnx(code);
    if (!dtype_is_float(type))
        return UNSUPPORTED(err, "%s: output_datatype %lld", c->node->op->name, (long long)code);
    if (count != 1 || size < 0 || size > INT32_MAX)
        return FAIL(err, STATUS_FAILED, "%s: size must be one number from 0 to %d, not %d, %lld",
                    c->node->op->name, INT32_MAX, count, (long long)size);
    struct shape y = shape_of(size);
    infer_set(c, 0, type, &y);
    return STATUS_OK;
}

void cosine_window_cost(const struct infer *c, struct cost *cost)
{
    cost->elementwise = cost->transcendentals = (double)shape_count(&c->out[0]->shape);
}

void cosine_window_reference(const struct ref_call *call, double a0, double a1, double a2)
{
    static const double turn = 6.28318530717958647692;
    const struct ref_tensor *y = call->out[0];
    bool periodic = node_int(call->node, "periodic", 1) != 0;
    double period = (double)(periodic || y->count < 2 ? y->count : y->count - 1);
    for (int64_t n = 0; n < y->count; n++) {
        double angle = turn * (double)n / period;
        y->f[n] = a0 - a1 * cos(angle) + a2 * cos(2 * angle);
    }
}
