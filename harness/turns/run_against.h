/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge run ... --against PROGRAM: a plan measured in turns with another program, stored, judged
 * and printed as `ridge compare` does. */
#ifndef HARNESS_TURNS_RUN_AGAINST_H
#define HARNESS_TURNS_RUN_AGAINST_H

#include <stdbool.h>

#include "harness/model/model_options.h"
#include "harness/suite/plan.h"

struct against_options {
    const char *program; /* a path, a baseline or a command */
    const struct model_options *model;
    const char *tag, *command;
    bool json, quiet, redact;
};

/* An exit code, that of `ridge compare`; 4 as well when it was interrupted, 5 when there was
 * nothing to compare. */
int run_against(const struct plan *plan, const struct against_options *options);

#endif
