/* SPDX-License-Identifier: Apache-2.0
 *
 * The placement of this machine's CPUs while a visit was measured. A hypervisor moves virtual
 * CPUs: onto one core, whose units they then share, or onto chips that are far from each other. It
 * lasts for seconds or minutes, and nothing reports it, but two levels beside a visit
 * (harness/roofs/levels.h) show it: threads on one core multiply and add at half the rate, threads
 * on distant chips take three times as long to hand work over. Compared are visits of one run,
 * with equal threads and precision. On a machine of its own all visits are alike.
 */
#ifndef RESULTS_PLACEMENT_H
#define RESULTS_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "results/record.h"

/* What levels are in a run most of the time; NAN: not known. */
struct placement {
    double hand_over_s, multiply_add;
};

/* What a visit, or a reading, has. */
struct placement placement_of(const struct visit_record *visit);
/* The faster of the placements that a good part of the readings shows. Too few readings: unknown.
 * Fails only without memory. */
enum status placement_usual(const struct placement *readings, int count, struct placement *out,
                            struct error *err);
/* True when the reading is of another placement than the usual; text then says how. */
bool placement_differs(const struct placement *reading, const struct placement *usual, char *text,
                       size_t size);

#endif
