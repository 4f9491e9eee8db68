/* SPDX-License-Identifier: Apache-2.0
 *
 * All facts of an environment, each with where it was read: `ridge doctor --facts`. */
#ifndef HARNESS_ENVIRONMENT_PRINT_H
#define HARNESS_ENVIRONMENT_PRINT_H

#include "harness/environment.h"

void environment_print(const struct environment *environment);
void environment_print_json(const struct environment *environment);

#endif
