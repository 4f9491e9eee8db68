/* SPDX-License-Identifier: Apache-2.0
 * DFT of real ([..., 1]) or complex ([..., 2]) signals along an axis, which is the attribute
 * (opset 17; the importer writes its default, 1), input 2 (opset 20) or the last but one. onesided
 * keeps the first half of the frequencies; with inverse it takes that half and gives a real signal.
 */
#include "engine/ops/compute/dft.h"

#include <stdlib.h>
#include <string.h>

#include "engine/ops/lib/axis.h"
#include "engine/ops/lib/op_args.h"

static const char *const attrs[] = {"axis", "inverse", "onesided", NULL};

struct plan {
    struct axis in; /* lines of the signal; inner excludes the complex dimension */
    int axis;
    int64_t length;              /* of the transform */
    int64_t outputs;             /* along the axis */
    int64_t parts_in, parts_out; /* 1: real, 2: complex */
    bool inverse, onesided;
};

static enum status plan_of(const struct op_args *args, struct plan *plan, struct error *err)
{
    const struct shape *x = args_in(args, 0);
    struct int_list length, axis;
    TRY(args_ints(args, 1, NULL, &length, err));
    TRY(args_ints(args, 2, "axis", &axis, err));
    *plan = (struct plan){.inverse = node_int(args->node, "inverse", 0) != 0,
                          .onesided = node_int(args->node, "onesided", 0) != 0};
    plan->axis = shape_axis(x, axis.count > 0 ? axis.at[0] : -2);
    char text[96];
    if (x->rank < 2 || plan->axis < 0 || plan->axis == x->rank - 1 ||
        (x->dim[x->rank - 1] != 1 && x->dim[x->rank - 1] != 2))
        return FAIL(err, STATUS_FAILED, "DFT: axis %lld of %s, whose last dimension must be 1 or 2",
                    axis.count > 0 ? (long long)axis.at[0] : -2ll, shape_text(x, text));
    bool real_result = plan->inverse && plan->onesided;
    plan->in = axis_at(x, plan->axis);
    plan->parts_in = x->dim[x->rank - 1];
    plan->parts_out = real_result ? 1 : 2;
    plan->in.inner /= plan->parts_in;
    plan->length = length.count > 0 ? length.at[0]
                   : real_result    ? 2 * (plan->in.size - 1)
                                    : plan->in.size;
    if (plan->length < 1 || plan->length > INT32_MAX)
        return FAIL(err, STATUS_FAILED, "DFT: length %lld", (long long)plan->length);
    plan->outputs = plan->onesided && !plan->inverse ? plan->length / 2 + 1 : plan->length;
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct plan plan;
    TRY(plan_of(&args, &plan, err));
    struct shape y = c->in[0]->shape;
    y.dim[plan.axis] = plan.outputs;
    y.dim[y.rank - 1] = plan.parts_out;
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    struct op_args args = args_of_infer(c);
    struct plan plan;
    if (plan_of(&args, &plan, NULL) == STATUS_OK)
        cost->elementwise = (double)(plan.in.outer * plan.in.inner) * dft_flops(plan.length);
}

/* Line l as `length` complex numbers: cut off or filled with zeros, or with the mirror image. */
static void load_line(const struct plan *p, const double *x, int64_t l, double *line)
{
    int64_t given = p->in.size < p->length ? p->in.size : p->length, parts = p->parts_in;
    bool mirror = p->inverse && p->onesided;
    if (mirror && given > p->length / 2 + 1)
        given = p->length / 2 + 1;
    int64_t start = axis_line(&p->in, l);
    memset(line, 0, 2 * (size_t)p->length * sizeof(*line));
    for (int64_t k = 0; k < given; k++) {
        const double *at = x + (start + k * p->in.inner) * parts;
        line[2 * k] = at[0];
        line[2 * k + 1] = parts == 2 ? at[1] : 0;
    }
    if (!mirror)
        return;
    line[1] = 0; /* frequency 0 and the middle one of a real signal are real */
    if (p->length % 2 == 0)
        line[p->length + 1] = 0;
    for (int64_t k = 1; k < (p->length + 1) / 2; k++) {
        line[2 * (p->length - k)] = line[2 * k];
        line[2 * (p->length - k) + 1] = -line[2 * k + 1];
    }
}

static void transform(const struct ref_call *call, const struct plan *p, const struct dft *dft,
                      double *line)
{
    struct axis out = {p->in.outer, p->outputs, p->in.inner};
    double scale = p->inverse ? 1 / (double)p->length : 1;
    for (int64_t l = 0; l < p->in.outer * p->in.inner; l++) {
        load_line(p, call->in[0]->f, l, line);
        int64_t start = axis_line(&out, l);
        for (int64_t k = 0; k < p->outputs; k++) {
            double y[2];
            dft_bin(dft, line, k, y);
            for (int64_t part = 0; part < p->parts_out; part++)
                call->out[0]->f[(start + k * out.inner) * p->parts_out + part] = y[part] * scale;
        }
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct op_args args = args_of_ref(call);
    struct plan plan;
    struct dft dft;
    TRY(plan_of(&args, &plan, err));
    TRY(dft_init(&dft, plan.length, plan.inverse, err));
    double *line = malloc((size_t)plan.length * 2 * sizeof(*line));
    if (line)
        transform(call, &plan, &dft, line);
    free(line);
    dft_release(&dft);
    return line ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static const struct op_case cases[] = {
    {.name = "real", .inputs = "f32[2,20,1]"},
    {.name = "complex", .inputs = "f32[3,16,2]"},
    {.name = "onesided", .inputs = "f32[2,21,1]", .attrs = "onesided=1"},
    {.name = "inverse", .inputs = "f32[2,15,2]", .attrs = "inverse=1"},
    {.name = "inverse_onesided", .inputs = "f32[2,9,2]", .attrs = "inverse=1 onesided=1"},
    {.name = "padded", .inputs = "f32[2,10,1] i64[]=16"},
    {.name = "cut", .inputs = "f32[2,20,2] i64[]=12 i64[]=-2"},
    {.name = "axis_1_of_4", .inputs = "f32[2,8,5,2]", .attrs = "axis=1"},
};

REGISTER(op, dft) = {
    .name = "DFT",
    .inputs_min = 1,
    .inputs_max = 3,
    .attrs = attrs,
    .const_inputs = 1u << 1 | 1u << 2,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
};
