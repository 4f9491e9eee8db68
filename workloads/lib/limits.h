/* SPDX-License-Identifier: Apache-2.0
 * Limits of parameters beyond those of their type. Each function returns true, or says in the
 * graph's error which parameter must be what. */
#ifndef WORKLOADS_LIB_LIMITS_H
#define WORKLOADS_LIB_LIMITS_H

#include "engine/graph/graph.h"
#include "workloads/workload.h"

bool at_most(struct graph *g, const char *name, int64_t value, int64_t limit);
bool at_least(struct graph *g, const char *name, int64_t value, int64_t least);
bool multiple_of(struct graph *g, const char *name, int64_t value, int64_t of);
/* Of two parameters: `value` parts of `of`. */
bool divides(struct graph *g, const char *name, int64_t value, const char *what, int64_t of);

/* Whether none of `names` (NULL ends) was set by the user: the value that the parameter `by` has
 * leaves them without effect. */
bool unset_beside(struct graph *g, const struct workload_config *config, const char *by,
                  const char *const *names);

#endif
