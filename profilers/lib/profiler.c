/* SPDX-License-Identifier: Apache-2.0 */
#include "profilers/lib/profiler.h"

#include <string.h>

#define X(name) extern const struct profiler profiler_##name;
#include "profiler_list.inc"
#undef X

static const struct profiler *const profilers[] = {
#define X(name) &profiler_##name,
#include "profiler_list.inc"
#undef X
};

int profiler_count(void)
{
    return ARRAY_COUNT(profilers);
}

const struct profiler *profiler_at(int index)
{
    return profilers[index];
}

const struct profiler *profiler_find(const char *name)
{
    for (int k = 0; k < profiler_count(); k++)
        if (strcmp(profilers[k]->name, name) == 0)
            return profilers[k];
    return NULL;
}
