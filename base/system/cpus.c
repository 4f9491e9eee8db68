/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/system/cpus.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORD = 64, WORDS = CPUS_MAX / WORD };

bool cpus_has(const struct cpus *cpus, int cpu)
{
    return cpu >= 0 && cpu < CPUS_MAX && (cpus->bits[cpu / WORD] >> cpu % WORD & 1);
}

void cpus_add(struct cpus *cpus, int cpu)
{
    if (cpu >= 0 && cpu < CPUS_MAX)
        cpus->bits[cpu / WORD] |= UINT64_C(1) << cpu % WORD;
}

int cpus_count(const struct cpus *cpus)
{
    int count = 0;
    for (int k = 0; k < WORDS; k++)
        count += __builtin_popcountll(cpus->bits[k]);
    return count;
}

int cpus_at(const struct cpus *cpus, int index)
{
    int count = cpus_count(cpus), before = count ? index % count : 0;
    for (int cpu = 0; cpu < CPUS_MAX; cpu++)
        if (cpus_has(cpus, cpu) && before-- == 0)
            return cpu;
    return 0;
}

/* 0: the calling thread. */
static bool read_mask(pid_t thread, struct cpus *cpus)
{
    *cpus = (struct cpus){0};
    return sched_getaffinity(thread, sizeof(cpus->bits), (cpu_set_t *)cpus->bits) == 0;
}

bool cpus_of_thread(struct cpus *cpus)
{
    return read_mask(0, cpus);
}

bool cpus_of_process(struct cpus *cpus)
{
    struct cpus one;
    DIR *threads = opendir("/proc/self/task");
    *cpus = (struct cpus){0};
    for (struct dirent *e; threads && (e = readdir(threads));) {
        long id = strtol(e->d_name, NULL, 10);
        if (id <= 0 || !read_mask((pid_t)id, &one))
            continue;
        for (int k = 0; k < WORDS; k++)
            cpus->bits[k] |= one.bits[k];
    }
    if (threads)
        closedir(threads);
    return cpus_count(cpus) > 0 || cpus_of_thread(cpus);
}

int cpus_allowed(void)
{
    struct cpus cpus;
    int count = cpus_of_thread(&cpus) ? cpus_count(&cpus) : 0;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? count : online > 0 ? (int)online : 1;
}

void cpus_bind(pthread_t thread, const struct cpus *cpus)
{
    pthread_setaffinity_np(thread, sizeof(cpus->bits), (const cpu_set_t *)cpus->bits);
}

void cpus_bind_to(pthread_t thread, int cpu)
{
    struct cpus one = {0};
    cpus_add(&one, cpu);
    cpus_bind(thread, &one);
}
