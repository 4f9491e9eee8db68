/* SPDX-License-Identifier: Apache-2.0
 *
 * Simulated ranks: smpirun with plugins/collective/simulated/ranks.so (collective/simulate/), on a
 * network written out from a few numbers. */
#ifndef HARNESS_BENCH_SMPI_H
#define HARNESS_BENCH_SMPI_H

#include "harness/bench/platform.h"

enum { SMPI_ARGUMENTS = 12 };

/* Between smpi_open and smpi_close: a folder with what smpirun reads. */
struct smpi {
    struct platform platform;
    int ranks;
    char folder[256], network[288], hosts[288], input[288];
    char program[4096 + 64];
};

/* OK, or UNSUPPORTED with what is missing. */
enum status smpi_ready(struct error *err);
/* `platform`: the file. UNSUPPORTED where this build has no simulator. */
enum status smpi_open(const char *platform, int ranks, struct smpi *smpi, struct error *err);
/* What the ranks print, at most size - 1 bytes; their arguments end with NULL. They read `input`,
 * which the caller has written. */
enum status smpi_run(const struct smpi *smpi, const char *const *arguments, char *text, size_t size,
                     struct error *err);
void smpi_close(const struct smpi *smpi);

#endif
