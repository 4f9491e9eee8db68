/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a plan with two programs in turns, BASE and this one, HEAD: in each round every point once,
 * in an order that is shuffled anew, both programs in fresh processes, A B B A. Both become runs of
 * the database that name each other; sample k of a visit of one was taken beside sample k of the
 * same visit of the other. Everything is on disk after each visit. */
#ifndef HARNESS_TURNS_TURNS_H
#define HARNESS_TURNS_TURNS_H

#include "harness/model/model_options.h"
#include "harness/suite/plan.h"

struct turns_options {
    const char *program;            /* BASE */
    const char *const *environment; /* its own, over the caller's; NULL: nothing */
    const struct model_options *model;
    const char *db;
    const char *tag; /* of HEAD; BASE gets TAG.base */
    const char *command;
    bool quiet, redact;
};

struct turns_result {
    char uuid[2][37]; /* BASE, HEAD */
    int compared;     /* points of which there are pairs of samples */
    int failed;       /* points in which a program failed */
    int left_out;     /* skipped, or failed before the first pair */
    bool interrupted, changed;
    char note[512];
    char why_left_out[512]; /* the first such point, and its reason */
};

enum status turns_run(const struct plan *plan, const struct turns_options *options,
                      struct turns_result *result, struct error *err);

#endif
