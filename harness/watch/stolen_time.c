/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/watch/stolen_time.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/watch/cpu_seconds.h"
#include "results/record.h"

/* Of /proc/stat only the lines of CPUs are read, which stand first: at most so many bytes each. */
enum { LINE = 224 };

struct stolen_time {
    int fd;
    struct cpus cpus;
    size_t size;
    char text[];
};

struct stolen_time *stolen_time_open(const char *root)
{
    char path[1024];
    size_t size = (size_t)(1 + sysconf(_SC_NPROCESSORS_CONF)) * LINE;
    struct stolen_time *s = malloc(sizeof(*s) + size);
    if (!s)
        return NULL;
    snprintf(path, sizeof(path), "%s/proc/stat", root);
    s->size = size;
    s->fd = cpus_of_process(&s->cpus) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (s->fd >= 0)
        return s;
    free(s);
    return NULL;
}

int64_t stolen_time_ns(struct stolen_time *s)
{
    ssize_t got = s ? pread(s->fd, s->text, s->size - 1, 0) : -1;
    if (got <= 0)
        return RECORD_NONE;
    s->text[got] = '\0';
    double stolen_s = cpu_seconds_of(s->text, &s->cpus).stolen;
    return isnan(stolen_s) ? RECORD_NONE : (int64_t)(stolen_s * 1e9);
}

int stolen_time_cpus(const struct stolen_time *s)
{
    return s ? cpus_count(&s->cpus) : 0;
}

void stolen_time_close(struct stolen_time *s)
{
    if (s)
        close(s->fd);
    free(s);
}
