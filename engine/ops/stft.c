/* SPDX-License-Identifier: Apache-2.0
 * STFT of signals [B, L, 1 or 2]: frames of frame_length samples every frame_step samples, times a
 * window, transformed. Output [B, frames, frequencies, 2]. */
#include <stdlib.h>

#include "engine/ops/compute/dft.h"
#include "engine/ops/lib/transform.h"

static const char *const attrs[] = {"onesided", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct stft_frames frames;
    TRY(stft_frames_of(&args, &frames, err));
    struct shape y = shape_of(frames.batch, frames.frames, frames.outputs, 2);
    infer_set(c, 0, c->in[STFT_SIGNAL]->dtype, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    struct op_args args = args_of_infer(c);
    struct stft_frames p;
    if (stft_frames_of(&args, &p, NULL) != STATUS_OK)
        return;
    double windowing = infer_has(c, STFT_WINDOW) ? (double)(p.length * p.parts) : 0;
    cost->elementwise = (double)(p.batch * p.frames) * (dft_flops(p.length) + windowing);
}

static void transform(const struct ref_call *call, const struct stft_frames *p,
                      const struct dft *dft, double *line)
{
    const struct ref_tensor *window = call->in_count > STFT_WINDOW ? call->in[STFT_WINDOW] : NULL;
    for (int64_t f = 0; f < p->batch * p->frames; f++) {
        int64_t start = f / p->frames * p->samples + f % p->frames * p->step;
        for (int64_t k = 0; k < p->length; k++) {
            const double *at = call->in[STFT_SIGNAL]->f + (start + k) * p->parts;
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
    struct stft_frames frames;
    struct dft dft;
    TRY(stft_frames_of(&args, &frames, err));
    TRY(dft_init(&dft, frames.length, false, err));
    double *line = malloc((size_t)frames.length * 2 * sizeof(*line));
    if (line)
        transform(call, &frames, &dft, line);
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
    {.name = "step_1", .inputs = "f32[2,48,1] i64[]=1 f32[31]"},
    {.name = "many_frames", .inputs = "f32[3,700] i64[]=10 f32[100]"},
    {.name = "prime_frames", .inputs = "f32[2,300,1] i64[]=9 f32[67]"},
    {.name = "frames_of_1", .inputs = "f32[2,40,1] i64[]=1 f32[1]"},
    {.name = "complex_frames_of_48",
     .inputs = "f32[2,333,2] i64[]=7 f32[48]",
     .attrs = "onesided=0"},
    {.name = "complex", .inputs = "f32[2,33,2] i64[]=5 f32[11]", .attrs = "onesided=0"},
};

REGISTER(op, stft) = {
    .name = "STFT",
    .inputs_min = 2,
    .inputs_max = 4,
    .attrs = attrs,
    .const_inputs = 1u << STFT_STEP | 1u << STFT_LENGTH,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
};
