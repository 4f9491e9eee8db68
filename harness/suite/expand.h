/* SPDX-License-Identifier: Apache-2.0
 *
 * harness/suite: what to measure. A suite file or a command line becomes a suite (suite.h), and a
 * suite becomes a plan (plan.h): a flat list of points, each with a stable id, or with the reason
 * why it is skipped. Nothing is compiled or run here.
 *
 * Inside of harness/suite/plan.c: one entry of a suite becomes points. */
#ifndef HARNESS_SUITE_EXPAND_H
#define HARNESS_SUITE_EXPAND_H

#include "harness/suite/plan.h"
#include "harness/suite/suite.h"

struct planner {
    struct plan *plan;
    struct error *err;
    struct suite usual; /* only its arena, axes (the default of every key) and cpus */
    struct suite_axis override[KEY_COUNT];
    struct code_choice code;
    bool overridden; /* points that were different may have become the same */
    struct suite *suites;
    int suite_count;
    size_t capacity; /* of plan->points */
    int first;       /* point of the entry that is being expanded */
};

/* Appends the points of an entry to the plan. */
enum status expand_entry(struct planner *planner, const struct suite *suite,
                         const struct suite_entry *entry);
/* Name or path. */
const char *entry_name(const struct suite_entry *entry);
/* The value of a key that concerns the plan as a whole. */
const struct suite_value *planner_value(const struct planner *planner, enum suite_key_id id);

#endif
