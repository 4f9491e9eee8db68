/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge run --interleave A B MODEL...: two programs take turns, sample by sample, so that a change
 * of the machine's speed meets both alike. */
#ifndef HARNESS_TURNS_RUN_INTERLEAVED_H
#define HARNESS_TURNS_RUN_INTERLEAVED_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/model/model_options.h"
#include "harness/suite/plan.h"

struct interleaved_options {
    int64_t repeats;                   /* fresh pairs of processes per model; 0: the default */
    const struct plan_overrides *plan; /* batch, threads, providers, samples, seconds; no others */
    const struct model_options *model; /* how both compile it; its batch and threads do not count */
    bool json;
};

/* words: A, B, models. An exit code. */
int run_interleaved(char *const *words, int word_count, const struct interleaved_options *options);

#endif
