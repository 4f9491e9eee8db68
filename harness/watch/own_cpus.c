/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/watch/own_cpus.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool own_cpus(cpu_set_t *all)
{
    DIR *folder = opendir("/proc/self/task");
    CPU_ZERO(all);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        cpu_set_t one;
        long id = strtol(e->d_name, NULL, 10);
        if (id > 0 && sched_getaffinity((pid_t)id, sizeof(one), &one) == 0)
            CPU_OR(all, all, &one);
    }
    if (folder)
        closedir(folder);
    return CPU_COUNT(all) > 0;
}

/* "cpu3 user nice system idle iowait irq softirq steal ...", in ticks. False for another line or
 * another CPU. */
static bool add_line(const char *line, const cpu_set_t *cpus, struct cpu_seconds *sum)
{
    enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };
    long long ticks[FIELDS];
    char *at;
    if (strncmp(line, "cpu", 3) != 0 || line[3] < '0' || line[3] > '9')
        return false;
    long cpu = strtol(line + 3, &at, 10);
    if (cpu >= CPU_SETSIZE || !CPU_ISSET((size_t)cpu, cpus))
        return false;
    for (int k = 0; k < FIELDS; k++)
        ticks[k] = strtoll(at, &at, 10);
    double tick_s = 1 / (double)sysconf(_SC_CLK_TCK);
    sum->busy +=
        tick_s * (double)(ticks[USER] + ticks[NICE] + ticks[SYSTEM] + ticks[IRQ] + ticks[SOFTIRQ]);
    sum->stolen += tick_s * (double)ticks[STEAL];
    return true;
}

struct cpu_seconds cpu_seconds_of(const char *text, const cpu_set_t *cpus)
{
    struct cpu_seconds sum = {0, 0};
    bool found = false;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        found |= add_line(line, cpus, &sum);
    }
    return found ? sum : (struct cpu_seconds){NAN, NAN};
}
