/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/limits.h"

#include <stdio.h>

/* The first error of a graph is the one that is reported. */
static bool hold(struct graph *g, bool good, const char *name, int64_t value, const char *must,
                 int64_t limit)
{
    if (good || g->failed)
        return !g->failed;
    FAIL(&g->err, STATUS_FAILED, "%s is %lld; it %s %lld", name, (long long)value, must,
         (long long)limit);
    g->failed = true;
    return false;
}

bool at_most(struct graph *g, const char *name, int64_t value, int64_t limit)
{
    return hold(g, value <= limit, name, value, "can be at most", limit);
}

bool at_least(struct graph *g, const char *name, int64_t value, int64_t least)
{
    return hold(g, value >= least, name, value, "must be at least", least);
}

bool multiple_of(struct graph *g, const char *name, int64_t value, int64_t of)
{
    return hold(g, value % of == 0, name, value, "must be a multiple of", of);
}

bool divides(struct graph *g, const char *name, int64_t value, const char *what, int64_t of)
{
    char must[64];
    snprintf(must, sizeof(must), "must divide the %s, which is", what);
    return hold(g, of % value == 0, name, value, must, of);
}

bool unset_beside(struct graph *g, const struct workload_config *config, const char *by,
                  const char *const *names)
{
    for (; *names && !g->failed; names++)
        if (config_given(config, *names)) {
            FAIL(&g->err, STATUS_FAILED, "%s=%s has no effect with %s=%s", *names,
                 config_text(config, *names), by, config_text(config, by));
            g->failed = true;
        }
    return !g->failed;
}
