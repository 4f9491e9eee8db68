/* SPDX-License-Identifier: Apache-2.0
 *
 * All facts of an environment, each with where it was read: `ridge doctor --facts`. */
#ifndef HARNESS_MACHINE_ENVIRONMENT_PRINT_H
#define HARNESS_MACHINE_ENVIRONMENT_PRINT_H

#include "harness/machine/environment.h"

void environment_print(const struct environment *environment);
void environment_print_json(const struct environment *environment);

#endif
