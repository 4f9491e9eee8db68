/* SPDX-License-Identifier: Apache-2.0
 *
 * What a training came to, as a run of one point in the database: how long a step took with its
 * samples, how long it waited for them, and what held-out samples say. Its id is that of no point
 * of `ridge run`, whose steps have their batch in memory. One that failed is kept without times. */
#ifndef HARNESS_CAMPAIGN_TRAIN_RECORD_H
#define HARNESS_CAMPAIGN_TRAIN_RECORD_H

#include "harness/train/trainer.h"

struct train_facts {
    const struct train_job *job;
    struct trainer *trainer;
    const struct train_result *result;
    const char *command;         /* as it was typed */
    const char *optimiser;       /* in place of the published one; NULL: that */
    const char *sizes;           /* of images that grow, as they were typed; NULL: they do not */
    const char *started_utc;     /* base/text/utc.h */
    double wall_s;               /* compiling and judging included */
    double price;                /* dollars per hour; 0: not known */
    const struct error *failure; /* of the training; NULL: none */
};

enum status train_store(const char *db, const struct train_facts *facts, struct error *err);

#endif
