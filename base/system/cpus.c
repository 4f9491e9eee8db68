/* SPDX-License-Identifier: Apache-2.0
 *
 * A cpu_set_t has room for 1024 CPUs, and on a machine that may have more the kernel refuses to
 * fill it (EINVAL): so the set grows until the kernel takes it. */
#define _GNU_SOURCE
#include "base/system/cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

enum { ROOM_MOST = 1 << 20 };

/* 0: the kernel does not say, or (*too_small) not in so little room. */
static int count_in(int room, bool *too_small)
{
    cpu_set_t *mask = CPU_ALLOC((size_t)room);
    size_t size = CPU_ALLOC_SIZE((size_t)room);
    int count = 0;
    *too_small = false;
    if (!mask)
        return 0;
    if (sched_getaffinity(0, size, mask) == 0)
        count = CPU_COUNT_S(size, mask);
    else
        *too_small = errno == EINVAL;
    CPU_FREE(mask);
    return count;
}

int cpus_allowed(void)
{
    bool too_small = true;
    int count = 0;
    for (int room = CPU_SETSIZE; too_small && room <= ROOM_MOST; room *= 2)
        count = count_in(room, &too_small);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? count : online > 0 ? (int)online : 1;
}
