/* SPDX-License-Identifier: Apache-2.0
 *
 * A made-up suite on a restless machine: three things that the machine does (handing over work,
 * reading memory, computing) change between a fast and a slow level that last for minutes; every
 * point depends on one of them, more or less; runs come to each point in several rounds. Samples
 * are correlated and have outliers. */
#ifndef TESTS_LIB_RESTLESS_H
#define TESTS_LIB_RESTLESS_H

#include <stdint.h>

#include "results/compare.h"

enum { RESTLESS_POINTS = 34, RESTLESS_ROUNDS = 5, RESTLESS_SAMPLES = 20, RESTLESS_RUNS = 64 };

struct restless_world {
    int rounds;        /* <= RESTLESS_ROUNDS */
    double round_s;    /* from one round to the next */
    double apart_s;    /* from one run's end to the start of the next */
    double slow_share; /* of the time */
    double dwell_s;    /* mean length of a stay in the slow level */
    double strength;   /* 1: up to 2.1 times as long; 0: a machine with one level */
    double process;    /* sd between processes */
    double visit;      /* sd between visits of a process */
    double sample;     /* sd of a sample */
    bool no_levels;    /* nothing is measured beside the visits */
    int few;           /* samples of every fourth point, which scatter by ...; 0: as the others */
    double few_sample; /* ... this sd */
};

struct restless_run {
    double times[RESTLESS_POINTS][RESTLESS_ROUNDS][RESTLESS_SAMPLES];
    double slow[RESTLESS_POINTS][RESTLESS_ROUNDS][LEVEL_COUNT];
    double median[RESTLESS_POINTS][RESTLESS_ROUNDS];
};

struct restless {
    struct restless_world world;
    uint64_t draw;
    double now;      /* s */
    double since[3]; /* when each level was last looked at */
    bool is_slow[3];
};

int restless_samples(const struct restless_world *world, int point);
void restless_start(struct restless *r, const struct restless_world *world, uint64_t seed);
/* Every third point, from `first` on, takes (1 + slower) times as long. */
void restless_run(struct restless *r, double slower, int first, struct restless_run *run);
/* Two programs in turns: fresh processes in every round. */
void restless_turns(struct restless *r, double slower, int first, struct restless_run run[2]);

#endif
