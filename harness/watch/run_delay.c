/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/watch/run_delay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct thread_delay {
    long id;
    int fd; /* of its schedstat */
    int64_t run_ns, wait_ns;
    bool seen; /* in the latest reading of the folder */
};

static struct thread_delay *find(const struct run_delay *d, long id)
{
    for (int k = 0; k < d->count; k++)
        if (d->threads[k].id == id)
            return &d->threads[k];
    return NULL;
}

static bool make_room(struct run_delay *d)
{
    if (d->count < d->capacity)
        return true;
    int capacity = d->capacity ? 2 * d->capacity : 32;
    struct thread_delay *grown = realloc(d->threads, (size_t)capacity * sizeof(*grown));
    if (!grown)
        return false;
    d->threads = grown;
    d->capacity = capacity;
    return true;
}

static struct thread_delay *add(struct run_delay *d, long id)
{
    char path[48];
    snprintf(path, sizeof(path), "%ld/schedstat", id);
    int fd = openat(dirfd(d->folder), path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ESRCH))
        return NULL; /* it has ended already, or this kernel counts nothing */
    if (fd < 0 || !make_room(d)) {
        d->incomplete = true;
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    d->threads[d->count] = (struct thread_delay){.id = id, .fd = fd};
    return &d->threads[d->count++];
}

/* "time on a CPU, time waiting for one, times that it was given one"; the kernel writes three
 * zeros when it does not count. A thread that has ended cannot be read. */
static void read_thread(struct run_delay *d, struct thread_delay *t)
{
    char text[96], *at = text;
    ssize_t got = pread(t->fd, text, sizeof(text) - 1, 0);
    if (got <= 0)
        return;
    text[got] = '\0';
    int64_t run_ns = strtoll(at, &at, 10), wait_ns = strtoll(at, &at, 10);
    d->counts = d->counts || strtoll(at, &at, 10) > 0;
    d->run_ns += run_ns - t->run_ns;
    d->wait_ns += wait_ns - t->wait_ns;
    t->run_ns = run_ns;
    t->wait_ns = wait_ns;
}

static void forget_ended(struct run_delay *d)
{
    int kept = 0;
    for (int k = 0; k < d->count; k++) {
        if (d->threads[k].seen)
            d->threads[kept++] = d->threads[k];
        else
            close(d->threads[k].fd);
    }
    d->count = kept;
}

void run_delay_read(struct run_delay *d)
{
    if (!d->folder)
        return;
    for (int k = 0; k < d->count; k++)
        d->threads[k].seen = false;
    rewinddir(d->folder);
    for (struct dirent *e; (e = readdir(d->folder));) {
        long id = strtol(e->d_name, NULL, 10);
        struct thread_delay *t = id > 0 ? find(d, id) : NULL;
        t = t || id <= 0 ? t : add(d, id);
        if (!t)
            continue;
        t->seen = true;
        read_thread(d, t);
    }
    forget_ended(d);
}

void run_delay_open(struct run_delay *d, const char *root)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/proc/self/task", root);
    *d = (struct run_delay){.folder = opendir(path)};
    run_delay_read(d);
    d->run_ns = d->wait_ns = 0;
}

void run_delay_close(struct run_delay *d)
{
    for (int k = 0; k < d->count; k++)
        close(d->threads[k].fd);
    if (d->folder)
        closedir(d->folder);
    free(d->threads);
    *d = (struct run_delay){.folder = NULL};
}

const char *run_delay_unknown(const struct run_delay *d)
{
    return !d->folder      ? "/proc/self/task cannot be read"
           : !d->counts    ? "this kernel does not count it in /proc/self/task/*/schedstat"
           : d->incomplete ? "some of /proc/self/task/*/schedstat could not be read"
                           : "";
}
