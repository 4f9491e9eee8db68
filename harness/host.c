/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/host.h"

#include <gnu/libc-version.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* First line of a file without its newline; empty when there is none. */
static void read_line(const char *path, char *text, size_t size)
{
    text[0] = '\0';
    FILE *file = fopen(path, "r");
    if (!file)
        return;
    if (!fgets(text, (int)size, file))
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    fclose(file);
}

/* The value of the first line "key : value" of a file; false when there is none. */
static bool read_key(const char *path, const char *key, char *value, size_t size)
{
    char line[4096];
    bool found = false;
    FILE *file = fopen(path, "r");
    while (file && !found && fgets(line, sizeof(line), file)) {
        size_t length = strlen(key);
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, length) != 0)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(value, size, "%s", colon);
        found = true;
    }
    if (file)
        fclose(file);
    return found;
}

static int64_t read_kilobytes(const char *key)
{
    char text[64];
    if (!read_key("/proc/meminfo", key, text, sizeof(text)))
        return -1;
    return strtoll(text, NULL, 10) * 1024;
}

/* "always [madvise] never": the word in brackets. */
static void read_choice(const char *path, char *text, size_t size)
{
    char line[128];
    read_line(path, line, sizeof(line));
    char *open = strchr(line, '[');
    snprintf(text, size, "%.*s", open ? (int)strcspn(open + 1, "]") : 0, open ? open + 1 : "");
}

/* Size of CPU 0's data or unified cache of a level; -1 when the kernel does not say. */
static int64_t cache_bytes(int level)
{
    for (int index = 0; index < 8; index++) {
        char path[128], text[32];
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/type", index);
        read_line(path, text, sizeof(text));
        if (strcmp(text, "Data") != 0 && strcmp(text, "Unified") != 0)
            continue;
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/level", index);
        read_line(path, text, sizeof(text));
        if (strtol(text, NULL, 10) != level)
            continue;
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
        read_line(path, text, sizeof(text));
        char *unit = NULL;
        int64_t size = strtoll(text, &unit, 10);
        return unit == text ? -1 : size * (*unit == 'M' ? 1 << 20 : *unit == 'K' ? 1 << 10 : 1);
    }
    return -1;
}

/* Control groups version 2: "max 100000" or "150000 100000" (microseconds per period). */
static double cpu_quota(void)
{
    char text[64], *end = NULL;
    read_line("/sys/fs/cgroup/cpu.max", text, sizeof(text));
    double quota = strtod(text, &end);
    double period = end == text ? 0 : strtod(end, NULL);
    return period > 0 ? quota / period : -1;
}

static int numa_nodes(void)
{
    int count = 0;
    for (int node = 0; node < 1024; node++) {
        char path[64];
        snprintf(path, sizeof(path), "/sys/devices/system/node/node%d", node);
        if (access(path, F_OK) != 0)
            break;
        count++;
    }
    return count ? count : -1;
}

void host_probe(struct host *host)
{
    char flags[4096] = "";
    cpu_set_t mask;
    struct utsname name;
    *host = (struct host){.numa_nodes = numa_nodes()};
    if (!read_key("/proc/cpuinfo", "model name", host->cpu, sizeof(host->cpu)))
        read_key("/proc/cpuinfo", "CPU part", host->cpu, sizeof(host->cpu)); /* Arm */
    read_key("/proc/cpuinfo", "flags", flags, sizeof(flags));
    host->hypervisor = strstr(flags, " hypervisor") != NULL;
    if (uname(&name) == 0)
        snprintf(host->system, sizeof(host->system), "%.30s %.60s %.30s", name.sysname,
                 name.release, name.machine);
    read_choice("/sys/kernel/mm/transparent_hugepage/enabled", host->huge_pages,
                sizeof(host->huge_pages));
    read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", host->governor,
              sizeof(host->governor));
    snprintf(host->libc, sizeof(host->libc), "glibc %s", gnu_get_libc_version());
    host->cpus_online = (int)sysconf(_SC_NPROCESSORS_ONLN);
    host->cpus_allowed = sched_getaffinity(0, sizeof(mask), &mask) ? -1 : CPU_COUNT(&mask);
    host->cpu_quota = cpu_quota();
    host->l1d_bytes = cache_bytes(1);
    host->l2_bytes = cache_bytes(2);
    host->l3_bytes = cache_bytes(3);
    host->memory_bytes = read_kilobytes("MemTotal");
    host->memory_available_bytes = read_kilobytes("MemAvailable");
}
