/* SPDX-License-Identifier: Apache-2.0
 *
 * Table I of the paper "AI Matrix: A Deep Learning Benchmark for Alibaba Data Centers": inference
 * on one V100, FP32 without tensor cores, FLOPs and DRAM-to-L2 reads as counted by the profiler.
 * Beside each row: which configuration it must have been, what that costs by the convention of
 * docs/method.md, and what explains the difference.
 */
#ifndef HARNESS_SUITE_TABLE1_H
#define HARNESS_SUITE_TABLE1_H

#include <stdint.h>

/* The paper's peak of the V100. */
#define TABLE1_PEAK_FLOPS 14e12

struct table1_row {
    const char *title;
    const char *spec; /* as `ridge run` takes it; the workload may not be built yet */
    int64_t batch;
    double flops, dram_read_bytes, time_s; /* time NAN: the paper has none */
    double analytic_flops;                 /* of the configuration below, computed for this batch */
    const char *configuration, *explanation;
};

int table1_count(void);
const struct table1_row *table1_at(int index);

#endif
