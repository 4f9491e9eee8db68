/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/transform.h"

#include "base/numbers/integers.h"

enum status dft_lines_of(const struct op_args *args, struct dft_lines *lines, struct error *err)
{
    const struct shape *x = args_in(args, 0);
    struct int_list length, axis;
    TRY(args_ints(args, 1, NULL, &length, err));
    TRY(args_ints(args, 2, "axis", &axis, err));
    bool onesided = node_int(args->node, "onesided", 0) != 0;
    *lines = (struct dft_lines){.inverse = node_int(args->node, "inverse", 0) != 0};
    lines->axis = shape_axis(x, axis.count > 0 ? axis.at[0] : -2);
    char text[96];
    if (x->rank < 2 || lines->axis < 0 || lines->axis == x->rank - 1 ||
        (x->dim[x->rank - 1] != 1 && x->dim[x->rank - 1] != 2))
        return FAIL(err, STATUS_FAILED, "DFT: axis %lld of %s, whose last dimension must be 1 or 2",
                    axis.count > 0 ? (long long)axis.at[0] : -2ll, shape_text(x, text));
    lines->mirrored = lines->inverse && onesided;
    lines->in = axis_at(x, lines->axis);
    lines->parts_in = x->dim[x->rank - 1];
    lines->parts_out = lines->mirrored ? 1 : 2;
    lines->in.inner /= lines->parts_in;
    lines->length = length.count > 0  ? length.at[0]
                    : lines->mirrored ? 2 * (lines->in.size - 1)
                                      : lines->in.size;
    if (lines->length < 1 || lines->length > INT32_MAX)
        return FAIL(err, STATUS_FAILED, "DFT: length %lld", (long long)lines->length);
    bool half = onesided && !lines->inverse;
    lines->outputs = half ? lines->length / 2 + 1 : lines->length;
    lines->given = smaller(lines->in.size, lines->mirrored ? lines->length / 2 + 1 : lines->length);
    return STATUS_OK;
}

enum status stft_frames_of(const struct op_args *args, struct stft_frames *frames,
                           struct error *err)
{
    const struct shape *x = args_in(args, STFT_SIGNAL), *window = args_in(args, STFT_WINDOW);
    struct int_list step, length;
    char text[96];
    TRY(args_ints(args, STFT_STEP, NULL, &step, err));
    TRY(args_ints(args, STFT_LENGTH, NULL, &length, err));
    bool real = x->rank == 2 || (x->rank == 3 && x->dim[2] == 1);
    if (!real && (x->rank != 3 || x->dim[2] != 2))
        return FAIL(err, STATUS_FAILED, "STFT: signal %s is not [batch, samples, 1 or 2]",
                    shape_text(x, text));
    *frames = (struct stft_frames){.batch = x->dim[0], .samples = x->dim[1], .parts = real ? 1 : 2};
    frames->step = step.count > 0 ? step.at[0] : 0;
    frames->length = length.count > 0 ? length.at[0] : window ? shape_count(window) : 0;
    if (frames->step < 1 || frames->length < 1 || frames->length > frames->samples ||
        (window && shape_count(window) != frames->length))
        return FAIL(err, STATUS_FAILED,
                    "STFT: frames of %lld samples every %lld of %lld, window of %lld",
                    (long long)frames->length, (long long)frames->step, (long long)frames->samples,
                    window ? (long long)shape_count(window) : 0ll);
    bool onesided = real && node_int(args->node, "onesided", 1) != 0;
    frames->frames = (frames->samples - frames->length) / frames->step + 1;
    frames->outputs = onesided ? frames->length / 2 + 1 : frames->length;
    return STATUS_OK;
}
