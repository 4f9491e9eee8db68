/* SPDX-License-Identifier: Apache-2.0
 *
 * What a reader wants to know of a workload: its page under docs/workloads/, and the numbers of its
 * graph, which are computed and so cannot drift from it. */
#ifndef HARNESS_CLI_WORKLOAD_PAGE_H
#define HARNESS_CLI_WORKLOAD_PAGE_H

#include <stdio.h>

#include "base/error.h"
#include "workloads/workload.h"

/* spec: the workload with its parameters, which the numbers are of. */
enum status workload_page_print(const struct workload *workload, const char *spec, FILE *stream,
                                struct error *err);

#endif
