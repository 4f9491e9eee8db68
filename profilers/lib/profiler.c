/* SPDX-License-Identifier: Apache-2.0 */
#include "profilers/lib/profiler.h"

#include <stdlib.h>
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

int profiler_cuda_index(const char *device)
{
    char *end;
    if (!device || strncmp(device, "cuda", 4) != 0)
        return -1;
    if (!device[4])
        return 0;
    long index = device[4] == ':' ? strtol(device + 5, &end, 10) : -1;
    return index >= 0 && index < 1024 && end != device + 5 && !*end ? (int)index : -1;
}
