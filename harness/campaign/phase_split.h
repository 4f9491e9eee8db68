/* SPDX-License-Identifier: Apache-2.0
 *
 * What the phases of a training step come to: forward, backward, communication, update.
 */
#ifndef HARNESS_CAMPAIGN_PHASE_SPLIT_H
#define HARNESS_CAMPAIGN_PHASE_SPLIT_H

#include "engine/run/exe.h"
#include "harness/campaign/record.h"

struct phase_sums {
    double time_s[PHASE_COUNT], flops[PHASE_COUNT], bytes[PHASE_COUNT];
    int steps[PHASE_COUNT];
    double state_bytes;      /* what outlives a step: weights, moments, counters */
    double gradient_bytes;   /* what the update phase reads of the others */
    double activation_bytes; /* what the forward phase computes and the backward phase reads */
};

/* Of all steps; step_ns NULL: times are NAN. */
void phase_split(const struct exe *exe, const double *step_ns, struct phase_sums *out);
/* The rows of it, by their sources. Of a graph of one phase there are none. */
void phase_rows(const struct phase_sums *sums, struct counts *times, struct counts *work);

#endif
