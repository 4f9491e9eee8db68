/* SPDX-License-Identifier: Apache-2.0
 *
 * `ridge scale --hosts FILE`: ranks on other hosts, each of them this very command, started by the
 * launcher of an MPI, which knows how to reach them. The file has a host a line, and if wanted how
 * many ranks it takes, in either MPI's form: "HOST", "HOST:2", "HOST slots=2"; # begins a comment.
 */
#ifndef HARNESS_BENCH_SCALE_LAUNCH_H
#define HARNESS_BENCH_SCALE_LAUNCH_H

#include "collective/backend.h"
#include "harness/scale/scale.h"

/* The one of that name, or the first that is here with its launcher. */
enum status scale_launch_backend(const char *name, const struct backend **out, struct error *err);

/* One number of ranks. `out` is released by scale_result_release, also after a failure. They have
 * all ended when it returns, also after Ctrl-C. */
enum status scale_launch(const struct backend *backend, const char *hosts, int ranks,
                         struct scale_result *out, struct error *err);

#endif
