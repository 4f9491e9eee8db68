/* SPDX-License-Identifier: Apache-2.0
 * DFT of real ([..., 1]) or complex ([..., 2]) signals along an axis, which is the attribute
 * (opset 17; the importer writes its default, 1), input 2 (opset 20) or the last but one. onesided
 * keeps the first half of the frequencies; with inverse it takes that half and gives a real signal.
 */
#include "engine/ops/compute/dft.h"

#include <stdlib.h>
#include <string.h>

#include "engine/ops/lib/transform.h"

static const char *const attrs[] = {"axis", "inverse", "onesided", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct op_args args = args_of_infer(c);
    struct dft_lines lines;
    TRY(dft_lines_of(&args, &lines, err));
    struct shape y = c->in[0]->shape;
    y.dim[lines.axis] = lines.outputs;
    y.dim[y.rank - 1] = lines.parts_out;
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    struct op_args args = args_of_infer(c);
    struct dft_lines lines;
    if (dft_lines_of(&args, &lines, NULL) == STATUS_OK)
        cost->elementwise = (double)(lines.in.outer * lines.in.inner) * dft_flops(lines.length);
}

/* Line l as `length` complex numbers: cut off or filled with zeros, or with the mirror image. */
static void load_line(const struct dft_lines *p, const double *x, int64_t l, double *line)
{
    int64_t given = p->given, parts = p->parts_in;
    int64_t start = axis_line(&p->in, l);
    memset(line, 0, 2 * (size_t)p->length * sizeof(*line));
    for (int64_t k = 0; k < given; k++) {
        const double *at = x + (start + k * p->in.inner) * parts;
        line[2 * k] = at[0];
        line[2 * k + 1] = parts == 2 ? at[1] : 0;
    }
    if (!p->mirrored)
        return;
    line[1] = 0; /* frequency 0 and the middle one of a real signal are real */
    if (p->length % 2 == 0)
        line[p->length + 1] = 0;
    for (int64_t k = 1; k < (p->length + 1) / 2; k++) {
        line[2 * (p->length - k)] = line[2 * k];
        line[2 * (p->length - k) + 1] = -line[2 * k + 1];
    }
}

static void transform(const struct ref_call *call, const struct dft_lines *p, const struct dft *dft,
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
    struct dft_lines lines;
    struct dft dft;
    TRY(dft_lines_of(&args, &lines, err));
    TRY(dft_init(&dft, lines.length, lines.inverse, err));
    double *line = malloc((size_t)lines.length * 2 * sizeof(*line));
    if (line)
        transform(call, &lines, &dft, line);
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
    {.name = "length_1", .inputs = "f32[3,1,2]"},
    {.name = "length_2", .inputs = "f32[3,2,2]"},
    {.name = "length_3_inverse", .inputs = "f32[2,3,2]", .attrs = "inverse=1"},
    {.name = "every_radix", .inputs = "f32[1,2730,2]"},
    {.name = "middle_axis_of_many_lines", .inputs = "f32[2,24,37,2]", .attrs = "axis=1"},
    {.name = "middle_axis_of_real_lines",
     .inputs = "f32[2,12,37,1] i64[]=15",
     .attrs = "axis=1 onesided=1"},
    {.name = "first_axis", .inputs = "f32[45,33,2]", .attrs = "axis=0"},
    {.name = "beyond_a_leaf", .inputs = "f32[17,768,2]"},
    {.name = "powers_of_two", .inputs = "f32[3,2048,2]", .attrs = "inverse=1"},
    {.name = "prime_31", .inputs = "f32[2,62,2]"},
    {.name = "prime_37", .inputs = "f32[2,37,2]"},
    {.name = "prime_127_inverse", .inputs = "f32[18,127,2]", .attrs = "inverse=1"},
    {.name = "prime_509_onesided", .inputs = "f32[2,1018,1]", .attrs = "onesided=1"},
    {.name = "prime_41_inverse_onesided",
     .inputs = "f32[19,42,2] i64[]=82",
     .attrs = "inverse=1 onesided=1"},
    {.name = "inverse_onesided_odd",
     .inputs = "f32[2,11,2] i64[]=21",
     .attrs = "inverse=1 onesided=1"},
    {.name = "inverse_onesided_cut",
     .inputs = "f32[2,11,2] i64[]=10",
     .attrs = "inverse=1 onesided=1"},
    {.name = "inverse_onesided_padded",
     .inputs = "f32[2,5,2] i64[]=16",
     .attrs = "inverse=1 onesided=1"},
    {.name = "inverse_of_real", .inputs = "f32[2,9,1]", .attrs = "inverse=1"},
    {.name = "no_lines", .inputs = "f32[0,5,2]"},
    {.name = "lines_of_nothing", .inputs = "f32[2,0,2] i64[]=4"},
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
