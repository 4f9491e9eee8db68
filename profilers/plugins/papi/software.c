/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "profilers/plugins/papi/software.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    int event;
    bool in_user_mode; /* happens there too: may be counted without the kernel's part */
} events[] = {
    {"perf::TASK-CLOCK", PERF_COUNT_SW_TASK_CLOCK, true},
    {"perf::PAGE-FAULTS", PERF_COUNT_SW_PAGE_FAULTS, true},
    {"perf::CONTEXT-SWITCHES", PERF_COUNT_SW_CONTEXT_SWITCHES, false},
    {"perf::CPU-MIGRATIONS", PERF_COUNT_SW_CPU_MIGRATIONS, false},
};

enum { EVENTS = sizeof(events) / sizeof(events[0]) };

int software_event(const char *name)
{
    for (int k = 0; k < EVENTS; k++)
        if (strcmp(events[k].name, name) == 0)
            return k;
    return -1;
}

static int open_file(int event, int tid, bool user_only)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof(attr),
                                   .config = (uint64_t)events[event].event,
                                   .disabled = 1,
                                   .exclude_kernel = user_only,
                                   .exclude_hv = 1};
    long file = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return file < 0 ? -errno : (int)file;
}

int software_open(int event, int tid)
{
    int file = open_file(event, tid, false);
    if ((file == -EACCES || file == -EPERM) && events[event].in_user_mode)
        file = open_file(event, tid, true);
    return file;
}

void software_start(int file)
{
    ioctl(file, PERF_EVENT_IOC_RESET, 0);
    ioctl(file, PERF_EVENT_IOC_ENABLE, 0);
}

double software_stop(int file)
{
    uint64_t value = 0;
    ioctl(file, PERF_EVENT_IOC_DISABLE, 0);
    return read(file, &value, sizeof(value)) == sizeof(value) ? (double)value : 0;
}

void software_close(int file)
{
    close(file);
}

void software_explain(const char *name, int code, char *reason, size_t size)
{
    bool denied = code == -EACCES || code == -EPERM;
    snprintf(reason, size, "%s: perf_event_open says %s%s", name, strerror(-code),
             denied ? "; sudo sysctl kernel.perf_event_paranoid=1, and allow the call in the "
                      "container"
                    : "");
}
