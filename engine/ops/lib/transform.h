/* SPDX-License-Identifier: Apache-2.0
 *
 * What DFT and STFT transform: which lines, how long, and what of the result is kept. Shared by the
 * operators and their kernels.
 */
#ifndef ENGINE_OPS_LIB_TRANSFORM_H
#define ENGINE_OPS_LIB_TRANSFORM_H

#include "engine/ops/lib/axis.h"
#include "engine/ops/lib/op_args.h"

struct dft_lines {
    struct axis in; /* lines of the signal; inner excludes the complex dimension */
    int axis;
    int64_t length;              /* of the transform */
    int64_t given;               /* elements of a line that are read; the rest is 0 or mirrored */
    int64_t outputs;             /* along the axis */
    int64_t parts_in, parts_out; /* 1: real, 2: complex */
    bool inverse;
    bool mirrored; /* the lines are the first half of a real signal's frequencies */
};

enum status dft_lines_of(const struct op_args *args, struct dft_lines *lines, struct error *err);

enum { STFT_SIGNAL, STFT_STEP, STFT_WINDOW, STFT_LENGTH };

struct stft_frames {
    int64_t batch, samples, parts; /* parts 1: real, 2: complex */
    int64_t step, length, frames, outputs;
};

enum status stft_frames_of(const struct op_args *args, struct stft_frames *frames,
                           struct error *err);

#endif
