/* SPDX-License-Identifier: Apache-2.0
 *
 * How a network is trained: optimiser, what its learning rate does over time, what weights decay,
 * where gradients are clipped. Recipes are data, and each names where it was published. */
#ifndef ENGINE_TRAIN_RECIPE_H
#define ENGINE_TRAIN_RECIPE_H

#include "engine/graph/graph.h"

enum { RECIPE_ATTRS = 8 };

/* The learning rate of step 0, 1, ... of `steps`. */
enum schedule_kind {
    SCHEDULE_CONSTANT,
    SCHEDULE_STEP,        /* from step `from` on times factor every `every` steps */
    SCHEDULE_MULTISTEP,   /* times factor at each of at[] */
    SCHEDULE_TABLE,       /* times scale[k] before at[k], and times the last one from then on */
    SCHEDULE_POLYNOMIAL,  /* from rate to end by (1 - progress) ^ power */
    SCHEDULE_COSINE,      /* from rate to end by half a cosine */
    SCHEDULE_EXPONENTIAL, /* times factor every `every` steps, smoothly */
};

enum { SCHEDULE_POINTS = 8 };

/* Steps are counted from the beginning of the training; progress and the exponential decay begin
 * when the rate has risen to its top, unless over_warm_up says otherwise. Exponential with a
 * warm-up is our reading of PAISoar's smooth_exponential_decay, whose formula was not published. */
struct schedule {
    enum schedule_kind kind;
    double rate, end;
    double factor, power;
    int64_t every, from;               /* steps */
    int64_t at[SCHEDULE_POINTS];       /* steps, ascending; 0 ends */
    double scale[SCHEDULE_POINTS + 1]; /* one more than at[] has */
    int64_t
        warm_up; /* steps over which the rate rises linearly to `rate`, from `start` at step 0 */
    double start;
    bool over_warm_up; /* it decays from step 0 on, and the warm-up merely hides that: BERT's */
    int64_t steps;     /* of the whole training */
};

double schedule_rate(const struct schedule *schedule, int64_t step);

/* Weights that are trained otherwise than the rest. */
struct recipe_group {
    const char *weights;             /* their names begin with it; NULL ends a list of groups */
    bool frozen;                     /* they stay as they are */
    const char *optimiser;           /* NULL: the recipe's, with its attributes */
    struct attr attrs[RECIPE_ATTRS]; /* of this optimiser */
    double decay;                    /* in place of the recipe's */
    double rate;                     /* times what the schedule says; 0: as it says */
};

struct recipe {
    const char *optimiser;           /* struct update_rule, .name */
    struct attr attrs[RECIPE_ATTRS]; /* its parameters; name NULL ends */
    double decay;                    /* of weights of two dimensions and more: attribute `decay` */
    bool decay_all;                  /* of biases and the scales of normalisations as well */
    const struct recipe_group *groups; /* the first one that a weight belongs to; NULL: none */
    double clip_norm;                  /* the joint norm of all gradients is at most this; 0: any */
    double clip_each;                  /* the norm of each gradient is, before that; 0: any */
    struct schedule schedule;
    const char *source; /* the paper or code that says so */
};

#endif
