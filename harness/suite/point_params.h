/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists in the name of a point: sorted, and of parameters those other than defaults, so that the
 * same measurement has one name however it was typed; and what the workload states always. */
#ifndef HARNESS_SUITE_POINT_PARAMS_H
#define HARNESS_SUITE_POINT_PARAMS_H

#include <stdbool.h>

#include "base/arena.h"
#include "workloads/workload.h"

/* "b,a,b" as "a,b", of at most 16 words. NULL: no memory. */
const char *point_words(struct arena *arena, const char *list);

/* "image=160" and "classes=10" as "classes=10,image=160"; sorts the words. NULL: no memory. */
const char *point_params_join(struct arena *arena, const char **words, int count);

/* Whether the workload (NULL: a file) states this parameter always. */
bool point_states(const struct workload *w, const char *name);
/* Of what workload_open takes: of "ncf:users=40,items=30,embedding=onehot" it is
 * "items=30,users=40"; of a parameter that is given twice, the last. NULL: no memory. */
const char *point_params(struct arena *arena, const char *spec);
/* Whether both are the same workload with the same parameters, or the same file. */
bool point_same_model(const char *spec, const char *other);

#endif
