/* SPDX-License-Identifier: Apache-2.0
 *
 * What is to be said beside a result, valid or not: sentences that stand with the numbers that they
 * are about (RECORD_NOTE in results/record.h). */
#ifndef HARNESS_MEASURE_NOTES_H
#define HARNESS_MEASURE_NOTES_H

#include "results/record.h"

/* The sentence of the record's first metric from *next on that has one; *next then is after it.
 * NULL: there is none. Start with *next = 0. */
const char *record_next_note(const struct record *record, int *next);

#endif
