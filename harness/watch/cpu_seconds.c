/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/watch/cpu_seconds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "cpu3 user nice system idle iowait irq softirq steal ...", in ticks. False for another line or
 * another CPU. */
static bool add_line(const char *line, const struct cpus *cpus, struct cpu_seconds *sum)
{
    enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };
    long long ticks[FIELDS];
    char *at;
    if (strncmp(line, "cpu", 3) != 0 || line[3] < '0' || line[3] > '9')
        return false;
    long cpu = strtol(line + 3, &at, 10);
    if (cpu >= CPUS_MAX || !cpus_has(cpus, (int)cpu))
        return false;
    for (int k = 0; k < FIELDS; k++)
        ticks[k] = strtoll(at, &at, 10);
    double tick_s = 1 / (double)sysconf(_SC_CLK_TCK);
    sum->busy +=
        tick_s * (double)(ticks[USER] + ticks[NICE] + ticks[SYSTEM] + ticks[IRQ] + ticks[SOFTIRQ]);
    sum->stolen += tick_s * (double)ticks[STEAL];
    return true;
}

struct cpu_seconds cpu_seconds_of(const char *text, const struct cpus *cpus)
{
    struct cpu_seconds sum = {0, 0};
    bool found = false;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        found |= add_line(line, cpus, &sum);
    }
    return found ? sum : (struct cpu_seconds){NAN, NAN};
}
