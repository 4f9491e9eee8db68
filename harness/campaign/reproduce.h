/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HARNESS_CAMPAIGN_REPRODUCE_H
#define HARNESS_CAMPAIGN_REPRODUCE_H

#include "harness/suite/plan.h"

/* The command that measures this point alone, to be pasted into a shell; options at their defaults
 * are left out. NULL: no memory. */
const char *reproduce_command(const struct point *point, struct arena *arena);

#endif
