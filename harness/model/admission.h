/* SPDX-License-Identifier: Apache-2.0
 *
 * harness/model: one model as a command line names it: the options with which it is compiled,
 * whether it fits into memory, and its verification against the float64 reference.
 *
 * Whether a graph may be compiled: what it needs (engine/compile/need.h) is compared with what is
 * free (harness/watch/free_memory.h), so that a point that is too large is skipped with its
 * figures instead of taking the whole run with it. */
#ifndef HARNESS_MODEL_ADMISSION_H
#define HARNESS_MODEL_ADMISSION_H

#include <stdbool.h>

#include "engine/compile/need.h"
#include "engine/run/exe.h"
#include "harness/watch/free_memory.h"

/* What must remain free on top of the need: a share of it for what the estimate does not see
 * (tables, buffers of libraries), and a fixed part for the program's own pages. */
#define ADMISSION_MARGIN_SHARE 0.05
#define ADMISSION_MARGIN_BYTES 32e6

/* What graph_need says and, in what the reference takes, a second executable where verification may
 * have to follow roundings (roundings.h). */
enum status admission_need(const struct graph *graph, const struct exe_options *options,
                           struct memory_need *need, struct error *err);
/* The peak, without margin; verify: the reference runs beside the executable. */
double admission_bytes(const struct memory_need *need, bool verify);

/* UNSUPPORTED with "needs 31 GB of memory, 12 GB are free ..." when it does not fit. */
enum status admission_judge(const struct memory_need *need, bool verify, int threads,
                            const struct free_memory *available, struct error *err);
/* The same, of this process and now. */
enum status admission_check(const struct graph *graph, const struct exe_options *options,
                            bool verify, struct error *err);

#endif
