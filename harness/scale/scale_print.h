/* SPDX-License-Identifier: Apache-2.0
 *
 * What ridge scale prints. */
#ifndef HARNESS_SCALE_SCALE_PRINT_H
#define HARNESS_SCALE_SCALE_PRINT_H

#include "harness/scale/scale.h"
#include "harness/suite/code_choice.h"

/* Points of one workload, by number of ranks as they were asked for. */
struct scaling {
    const char *workload;
    bool strong;
    uint64_t seed;
    const char *data;                /* format of what is read; NULL: samples are made up */
    const char *data_path, *letters; /* as they were typed; NULL: they were not */
    int reader_threads;              /* of each rank; 0 as 1 */
    double read_limit;               /* bytes/s of each rank; 0: none */
    const char *backend, *algorithm; /* algorithm NULL: by size */
    const char *library;             /* version of the backend's; "" or NULL: not known */
    const char *tables;              /* "whole", "rows" or "split" */
    const char *moments;             /* "whole" or "split" */
    bool quick_tune;                 /* kernels were not fully tuned */
    struct code_choice code;         /* other than the usual */
    const char *providers;           /* of kernels, as they were typed; "" or NULL: all */
    bool recompute;                  /* activations, in so many segments; 0: as save most */
    int64_t segments;
    bool sync_norms;       /* statistics of batch normalisations are those of all ranks */
    bool no_overlap;       /* gradients move only while a step waits for them */
    const char *optimiser; /* in place of the published one; NULL: that */
    const char *wire;      /* "f16" or "bf16"; NULL: gradients cross as they are */
    int lanes;             /* of each exchange; 0: as usual */
    int64_t unit_bytes;    /* 0: as usual */
    const char *hosts;     /* the file of them, by whose ranks it was measured; NULL: of here */
    const char *network;   /* of simulated points, in a word; else NULL */
    const char *platform;  /* the file of that network */
    double step_s;         /* that a simulated rank computes; 0: as ranks in ... */
    const char *step_db;   /* ... this database did */
    int cpus;              /* of all ranks together; 0: not known */
    const struct scale_result *points;
    int count;
};

/* Sums over the units and means over the ranks of a point, per step. */
struct scale_sums {
    double communication_s, exposed_s, input_s, computing_s;
    double hidden_s; /* of the communication, no step stood still: by each rank's own clock. With
                        the exposed time it is at least the communication, and more where steps
                        waited for units that had not started yet */
    double bytes_sent, messages; /* of the busiest rank */
    double state_bytes;          /* of the rank that has most; this and input_s NAN: simulated */
};
struct scale_sums scale_sums_of(const struct scale_result *result);

void scaling_print_table(const struct scaling *s);
void scaling_print_json(const struct scaling *s);

#endif
