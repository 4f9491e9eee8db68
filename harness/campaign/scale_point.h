/* SPDX-License-Identifier: Apache-2.0
 *
 * A point of a suite whose ranks learn together (struct point, .ranks): one training, whose record
 * is that of `ridge scale --db`. */
#ifndef HARNESS_CAMPAIGN_SCALE_POINT_H
#define HARNESS_CAMPAIGN_SCALE_POINT_H

#include "harness/campaign/point_run.h"

/* In the place of point_visit. */
enum status scale_point_visit(const struct point_job *job, struct point_state *state,
                              struct error *err);

#endif
