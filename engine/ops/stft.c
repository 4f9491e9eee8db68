/* SPDX-License-Identifier: Apache-2.0
 * STFT of signals [B, L, 1 or 2]: frames of frame_length samples every frame_step samples, times a
 * window, transformed. Output [B, frames, frequencies, 2]. */
#include <stdlib.h>

#include "engine/ops/compute/dft.h"
#include "engine/ops/lib/op_args.h"

enum { SIGNAL, STEP, WINDOW, LENGTH };

static const char *const attrs[] = {"onesided", NULL};

struct plan {
    int64_t batch, samples, parts; /* parts 1: real, 2: complex */
    int64_t step, length, frames, outputs;
};

static enum status plan_of(const struct op_args *args, struct plan *plan, struct error *err)
{
    const struct shape *x = args_in(args, SIGNAL), *window = args_in(args, WINDOW);
    struct int_list step, length;
    char text[96];
    TRY(args_ints(args, STEP, NULL, &step, err));
    TRY(args_ints(args, LENGTH, NULL, &length, err));
    bool real = x->rank == 2 || (x->rank == 3 && x->dim[2] == 1);
    if (!real && (x->rank != 3 || x->dim[2] != 2))
        return FAIL(err, STATUS_FAILED, "STFT: signal %s is not [batch, samples, 1 or 2]",
                    shape_text(x, text));
    *plan = (struct plan){.batch = x->dim[0], .samples = x->dim[1], .parts = real ? 1 : 2};
    plan->step = step.count > 0 ? step.at[0] : 0;
    plan->length = length.count > 0 ? length.at[0] : window ? shape_count(window) : 0;
    if (plan->step < 1 || plan->length < 1 || plan->length > plan->samples ||
        (window && shape_count(window) != plan->length))
        return FAIL(err, STATUS_FAILED,
                    "STFT: frames of %lld samples every %lld of %lld, window of %lld",
                    (long long)plan->length, (long long)plan->step, (long long)plan->samples,
                    window ? (long long)shape_count(window) : 0ll);
    bool onesided = real && node_int(args->node, "onesided", 1) != 0;
    plan->frames = (plan->samples - plan->length) / plan->step + 1;
    plan->outputs = onesided ? plan->length / 2 + 1 : plan->length;
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct plan plan;
    TRY(plan_of(&args, &plan, err));
    struct shape y = shape_of(plan.batch, plan.frames, plan.outputs, 2);
    infer_set(c, 0, c->in[SIGNAL]->dtype, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    struct op_args args = args_of_infer(c);
    struct plan p;
    if (plan_of(&args, &p, NULL) != STATUS_OK)
        return;
    double windowing = infer_has(c, WINDOW) ? (double)(p.length * p.parts) : 0;
    cost->elementwise = (double)(p.batch * p.frames) * (dft_flops(p.length) + windowing);
}

static void transform(const struct ref_call *call, const struct plan *p, const struct dft *dft,
                      double *line)
{
    const struct ref_tensor *window = call->in_count > WINDOW ? call->in[WINDOW] : NULL;
    for (int64_t f = 0; f < p->batch * p->frames; f++) {
        int64_t start = f / p->frames * p->samples + f % p->frames * p->step;
        for (int64_t k = 0; k < p->length; k++) {
            const double *at = call->in[SIGNAL]->f + (start + k) * p->parts;
            double weight = window ? window->f[k] : 1;
            line[2 * k] = weight * at[0];
            line[2 * k + 1] = p->parts == 2 ? weight * at[1] : 0;
        }
        for (int64_t k = 0; k < p->outputs; k++)
            dft_bin(dft, line, k, call->out[0]->f + (f * p->outputs + k) * 2);
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct op_args args = args_of_ref(call);
    struct plan plan;
    struct dft dft;
    TRY(plan_of(&args, &plan, err));
    TRY(dft_init(&dft, plan.length, false, err));
    double *line = malloc((size_t)plan.length * 2 * sizeof(*line));
    if (line)
        transform(call, &plan, &dft, line);
    free(line);
    dft_release(&dft);
    return line ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static const struct op_case cases[] = {
    {.name = "window", .inputs = "f32[2,64,1] i64[]=8 f32[16]"},
    {.name = "frame_length", .inputs = "f32[1,50,1] i64[]=7 - i64[]=20"},
    {.name = "all_frequencies",
     .inputs = "f32[1,40,1] i64[]=10 f32[16] i64[]=16",
     .attrs = "onesided=0"},
    {.name = "complex", .inputs = "f32[2,33,2] i64[]=5 f32[11]", .attrs = "onesided=0"},
};

REGISTER(op, stft) = {
    .name = "STFT",
    .inputs_min = 2,
    .inputs_max = 4,
    .attrs = attrs,
    .const_inputs = 1u << STEP | 1u << LENGTH,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
};
