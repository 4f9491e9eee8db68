/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations between ranks in the database: a run whose points are backend, operation, algorithm,
 * place and size. */
#ifndef HARNESS_BENCH_BENCH_STORE_H
#define HARNESS_BENCH_BENCH_STORE_H

#include "harness/bench/bench.h"

/* command: the line that was typed; cpus: that the ranks share; 0: not known. */
enum status bench_store(const struct bench *bench, const struct bench_part *parts, int cpus,
                        const char *db, const char *command, struct error *err);

#endif
