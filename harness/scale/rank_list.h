/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers of ranks from the command line. */
#ifndef HARNESS_SCALE_RANK_LIST_H
#define HARNESS_SCALE_RANK_LIST_H

#include "base/error.h"

enum { RANK_LIST_MAX = 32 };

/* "1,2,4", each number once, in the order in which it comes first. ranks: room for RANK_LIST_MAX;
 * option: whose value it is. */
enum status rank_list_read(const char *list, const char *option, int *ranks, int *count,
                           struct error *err);

/* The ideal is what one rank does, so one is always among them: the first where it was not named.
 * ranks: room for RANK_LIST_MAX + 1. */
enum status rank_list_with_one(const char *list, const char *option, int *ranks, int *count,
                               struct error *err);

#endif
