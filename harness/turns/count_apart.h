/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting a point in a process of its own (harness/campaign/record.h, count_apart): this program
 * runs once more for this point alone with RIDGE_COUNT_FIRST=1, stores into a database of its own,
 * and what the profiler said is read from there. Kernels are those that the tuner's cache has, or
 * that are taken without tuning. */
#ifndef HARNESS_TURNS_COUNT_APART_H
#define HARNESS_TURNS_COUNT_APART_H

#include "harness/campaign/record.h"

count_apart count_in_own_process;

#endif
