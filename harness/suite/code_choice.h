/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of a command line that make a point of other code than usual: what they measure is no
 * history of what is measured without them. They stand in the point's canonical text, where they
 * are given, and in the command that measures it again. */
#ifndef HARNESS_SUITE_CODE_CHOICE_H
#define HARNESS_SUITE_CODE_CHOICE_H

#include <stdbool.h>

#include "base/arena.h"

/* Zeroed: the usual. */
struct code_choice {
    const char *isa;  /* other than the best that this CPU has; NULL: that */
    double max_error; /* of a kernel; 0: any */
    bool no_tune, no_fuse;
    bool no_capture; /* only devices have something to capture */
};

/* " isa=scalar tuning=none": to be appended to a canonical text; "" for the usual. NULL: no memory.
 */
const char *code_choice_canonical(struct arena *arena, const struct code_choice *choice,
                                  const char *device);
/* " --isa scalar --no-tune": to be appended to a command line. */
const char *code_choice_options(struct arena *arena, const struct code_choice *choice,
                                const char *device);

#endif
