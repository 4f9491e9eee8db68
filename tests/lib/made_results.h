/* SPDX-License-Identifier: Apache-2.0
 *
 * Results that nobody measured, for tests of the store and of what reads it. Numbers are chosen so
 * that what follows from them can be said in the test: see made_results.c. */
#ifndef TESTS_LIB_MADE_RESULTS_H
#define TESTS_LIB_MADE_RESULTS_H

#include "results/store.h"

enum { MADE_OPS = 4, MADE_OPS_MAX = 64 };

/* Storage of one record; text and arrays belong to it. */
struct made_record {
    struct record record;
    char key[17], canonical[128], reproduce[64];
    struct op_record ops[MADE_OPS_MAX];
    struct metric_record metrics[16 + 4 * MADE_OPS_MAX];
    struct sample_record *samples;
};

/* uuid: any text of 36 characters. Started at second `when` of the year 2026. */
struct run_head made_head(const char *uuid, int when);
/* Point number `sequence` of a plan. time_s is the median of its samples. */
enum status made_record(struct made_record *made, int sequence, double time_s, int64_t samples,
                        int ops);
void made_release(struct made_record *made);
/* Peak 100 GFLOP/s, DRAM 10 GB/s, L3 50 GB/s of 4 MiB, for f32 on 2 threads of cpu. */
const struct ceiling_record *made_ceilings(int *count);

/* An empty folder for one test; freed and removed by made_folder_remove. */
char *made_folder(void);
void made_folder_remove(char *folder);

#endif
