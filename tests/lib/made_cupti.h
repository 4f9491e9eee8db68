/* SPDX-License-Identifier: Apache-2.0
 *
 * A struct cupti_backend that counts made numbers and fails as a test wants, without CUPTI. */
#ifndef TESTS_LIB_MADE_CUPTI_H
#define TESTS_LIB_MADE_CUPTI_H

#include "profilers/lib/cupti_backend.h"

enum { MADE_STEPS_MAX = 8 };

struct cupti {
    int passes;      /* that configs say */
    int needed;      /* that ranges take: -1: as they say */
    int open;        /* configs, ranges and samplers */
    int extra_range; /* in what is read */
    const char *bad_name;
    bool fail_open, fail_start, fail_push, fail_decode, zero;
    bool exact; /* of the test itself: the point is in f32 */
};

extern const struct cupti_backend made_backend;

/* A number of its own for every metric of a chip. */
double made_number(const char *name, int range);

#endif
