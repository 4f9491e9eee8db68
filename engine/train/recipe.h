/* SPDX-License-Identifier: Apache-2.0
 *
 * How a network is trained: optimiser, what its learning rate does over time, what weights decay,
 * where gradients are clipped. Recipes are data, and each names where it was published. */
#ifndef ENGINE_TRAIN_RECIPE_H
#define ENGINE_TRAIN_RECIPE_H

#include "engine/graph/graph.h"

enum { RECIPE_ATTRS = 8 };

/* rate(step) for step = 0, 1, ... of `steps`. */
enum schedule_kind {
    SCHEDULE_CONSTANT,
    SCHEDULE_STEP,        /* times factor every `every` steps */
    SCHEDULE_MULTISTEP,   /* times factor at each of at[] */
    SCHEDULE_POLYNOMIAL,  /* from rate to end by (1 - step / steps) ^ power */
    SCHEDULE_COSINE,      /* from rate to end by half a cosine */
    SCHEDULE_EXPONENTIAL, /* times factor every `every` steps, smoothly: PAISoar's */
};

enum { SCHEDULE_POINTS = 8 };

struct schedule {
    enum schedule_kind kind;
    double rate, end;
    double factor, power;
    int64_t every;               /* steps */
    int64_t at[SCHEDULE_POINTS]; /* steps, ascending; 0 ends */
    int64_t warm_up;             /* steps over which the rate rises linearly from start */
    double start;                /* of the warm-up */
    int64_t steps;               /* of the whole training */
};

double schedule_rate(const struct schedule *schedule, int64_t step);

struct recipe {
    const char *optimiser;           /* struct update_rule, .name */
    struct attr attrs[RECIPE_ATTRS]; /* its parameters; name NULL ends */
    double decay;                    /* of weights of two dimensions and more: attribute `decay` */
    bool decay_all;                  /* of biases and the scales of normalisations as well */
    double clip_norm;                /* the joint norm of all gradients is at most this; 0: any */
    struct schedule schedule;
    const char *source; /* the paper or code that says so */
};

#endif
