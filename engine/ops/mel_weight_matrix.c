/* SPDX-License-Identifier: Apache-2.0
 * MelWeightMatrix [dft_length / 2 + 1, num_mel_bins]: triangles that take spectrum bins to mel
 * bands between two edge frequencies. Inputs: number of bands, DFT length, sample rate, edges. */
#include <math.h>

#include "engine/ops/lib/op_args.h"

enum { BANDS, LENGTH, RATE, LOW, HIGH };

static const char *const attrs[] = {"output_datatype", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    int64_t bands, length, code = node_int(c->node, "output_datatype", 1);
    int count_b, count_l;
    TRY(infer_ints(c, BANDS, &bands, 1, &count_b, err));
    TRY(infer_ints(c, LENGTH, &length, 1, &count_l, err));
    enum dtype type = dtype_from_onnx(code);
    if (!dtype_is_float(type))
        return UNSUPPORTED(err, "MelWeightMatrix: output_datatype %lld", (long long)code);
    if (count_b != 1 || count_l != 1 || bands < 1 || length < 1)
        return FAIL(err, STATUS_FAILED, "MelWeightMatrix: the first two inputs must be positive");
    struct shape y = shape_of(length / 2 + 1, bands);
    infer_set(c, 0, type, &y);
    return STATUS_OK;
}

/* Spectrum bin of band edge `edge`: equal steps in mel = 2595 log10(1 + hertz / 700). */
static int64_t bin_of_edge(const struct ref_call *call, int64_t edge)
{
    double low = 2595 * log10(1 + ref_get(call->in[LOW], 0) / 700);
    double high = 2595 * log10(1 + ref_get(call->in[HIGH], 0) / 700);
    double step = (high - low) / (ref_get(call->in[BANDS], 0) + 2);
    double hertz = 700 * (pow(10, ((double)edge * step + low) / 2595) - 1);
    return (int64_t)floor((ref_get(call->in[LENGTH], 0) + 1) * hertz / ref_get(call->in[RATE], 0));
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *y = call->out[0];
    int64_t bins = y->shape.dim[0], bands = y->shape.dim[1];
    double low_hertz = ref_get(call->in[LOW], 0), high_hertz = ref_get(call->in[HIGH], 0);
    if (!(ref_get(call->in[RATE], 0) > 0 && low_hertz >= 0 && high_hertz >= 0 && high_hertz < 1e9))
        return FAIL(err, STATUS_FAILED, "MelWeightMatrix: sample rate %g, edges %g and %g hertz",
                    ref_get(call->in[RATE], 0), low_hertz, high_hertz);
    for (int64_t band = 0; band < bands; band++) {
        int64_t low = bin_of_edge(call, band), centre = bin_of_edge(call, band + 1);
        int64_t high = bin_of_edge(call, band + 2);
        if (low < 0 || centre >= bins || high > bins)
            return FAIL(err, STATUS_FAILED, "MelWeightMatrix: band %lld ends at bin %lld of %lld",
                        (long long)band, (long long)high, (long long)bins);
        if (low == centre)
            y->f[centre * bands + band] = 1;
        for (int64_t k = low; low < centre && k <= centre; k++)
            y->f[k * bands + band] = (double)(k - low) / (double)(centre - low);
        for (int64_t k = centre; k < high; k++)
            y->f[k * bands + band] = (double)(high - k) / (double)(high - centre);
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "eight_bands", .inputs = "i64[]=8 i64[]=16 i64[]=8192 f32[]=0 f32[]=4096"},
    {.name = "speech", .inputs = "i64[]=40 i64[]=400 i64[]=16000 f32[]=20 f32[]=7600"},
    {.name = "f64",
     .inputs = "i64[]=10 i64[]=64 i64[]=16000 f32[]=100 f32[]=6000",
     .attrs = "output_datatype=11"},
};

REGISTER(op, mel_weight_matrix) = {
    .name = "MelWeightMatrix",
    .inputs_min = 5,
    .attrs = attrs,
    .const_inputs = 1u << BANDS | 1u << LENGTH,
    .infer = infer,
    .reference = reference,
    .no_gradient = "it is made of counts",
    OP_CASES(cases),
};
