/* SPDX-License-Identifier: Apache-2.0
 *
 * One sample per line of standard input: lets another program take turns with this one. */
#ifndef HARNESS_SERVE_H
#define HARNESS_SERVE_H

#include "harness/model_options.h"

/* Prints "ready", then milliseconds per line; ends with the input. An exit code. */
int serve_samples(const char *spec, const struct model_options *model);

#endif
