/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading data sets that lie in memory, for tests of their formats. */
#ifndef TESTS_LIB_DATA_CASE_H
#define TESTS_LIB_DATA_CASE_H

#include "workloads/data/data.h"

/* A classifier's inputs and nothing else. */
struct graph *data_case_images(int64_t batch, int64_t side, int64_t classes);
/* The training graph of a workload. */
struct graph *data_case_graph(const char *spec, int64_t batch);

struct data_case {
    struct graph *graph; /* owned */
    struct data_set set;
    struct batch batch;
};

/* Opens files in memory by the format of that name, or a folder by what is recognised (texts NULL:
 * name is "PATH" or "FORMAT:PATH"), for the graph, which is taken over in any case. */
enum status data_case_open(struct data_case *c, const char *name, const struct data_text *texts,
                           int count, struct graph *graph, struct error *err);
/* Reads the batch that begins with sample `first` of a part. */
enum status data_case_read(struct data_case *c, bool held_out, int64_t first, struct error *err);
void data_case_close(struct data_case *c);

/* Opens the files and, where that succeeds, reads a batch of each part: for fuzzing. */
void data_case_try(const char *name, const struct data_text *texts, int count, struct graph *graph);

#endif
