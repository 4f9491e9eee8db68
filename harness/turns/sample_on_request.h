/* SPDX-License-Identifier: Apache-2.0
 *
 * One sample per line of standard input: lets another program take turns with this one.
 *
 * An empty line asks for one execution, from the launch until it is done, by the host's clock. A
 * number N asks for N that follow each other, on a GPU by its clock (exe_time_runs). The answer is
 * the time of one execution in ms. What fails on a device ends the program: no time is reported. */
#ifndef HARNESS_TURNS_SAMPLE_ON_REQUEST_H
#define HARNESS_TURNS_SAMPLE_ON_REQUEST_H

#include "harness/model/model_options.h"
#include "harness/suite/plan.h"

/* Prints "ready", then a line per line; ends with the input. An exit code. */
int sample_on_request(const struct point *point, const struct model_options *model);

#endif
