/* SPDX-License-Identifier: Apache-2.0
 *
 * Small arithmetic in counter groups: numbers, names of counters, + - * / and parentheses:
 * "(read + write) * 64". */
#ifndef PROFILERS_LIB_FORMULA_H
#define PROFILERS_LIB_FORMULA_H

#include <stdbool.h>

#include "base/error.h"

struct formula_value {
    const char *name;
    double value; /* NAN makes every result NAN that uses it */
};

/* Fails with the column and what was wrong. Dividing by zero gives NAN. */
enum status formula_evaluate(const char *text, const struct formula_value *values, int count,
                             double *result, struct error *err);
/* Whether a formula uses a name. */
bool formula_uses(const char *text, const char *name);

#endif
