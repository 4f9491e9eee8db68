/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run was started with that changes its results and that no id of a point says: the stopping
 * rule, what is verified and counted, the instruction set. It is kept with the run's facts, in the
 * category "run", so that going on with it under other settings can be refused. */
#ifndef HARNESS_CAMPAIGN_SETTINGS_H
#define HARNESS_CAMPAIGN_SETTINGS_H

#include "harness/campaign/campaign_state.h"

enum status settings_put(struct campaign *c, struct error *err);
/* Refuses to go on with the run where --tag, --order-seed, --rounds or one of the settings is
 * another one now, with its name and both values. A run that is older than the settings has none,
 * and fits. */
enum status settings_check(struct campaign *c, const struct run_found *found, struct error *err);

#endif
