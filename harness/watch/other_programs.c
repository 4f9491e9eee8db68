/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/watch/other_programs.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness/machine/procfs.h"
#include "harness/watch/cpu_seconds.h"

enum { PROGRAMS_MAX = 4096, TEXT_MAX = 256 << 10, NAME_SIZE = 32 };

struct program_time {
    long pid;
    long long born; /* by then the number may belong to another process */
    double cpu_s;
    char name[NAME_SIZE];
};

static double tick_s(void)
{
    return 1 / (double)sysconf(_SC_CLK_TCK);
}

/* The whole of a small file; its length, 0 when there is none. */
static size_t read_file(const char *root, const char *path, char *text, size_t size)
{
    char whole[1024];
    snprintf(whole, sizeof(whole), "%s%s", root, path);
    int fd = open(whole, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    for (ssize_t got = 1; fd >= 0 && got > 0 && length + 1 < size; length += (size_t)got)
        got = read(fd, text + length, size - 1 - length), got = got > 0 ? got : 0;
    if (fd >= 0)
        close(fd);
    text[length] = '\0';
    return length;
}

/* ---- processes ---- */

/* A process may call itself anything. */
static void copy_name(char *to, const char *from, size_t length)
{
    size_t kept = length < NAME_SIZE - 1 ? length : NAME_SIZE - 1;
    for (size_t k = 0; k < kept; k++)
        to[k] = (char)(from[k] >= ' ' && from[k] <= '~' ? from[k] : '?');
    to[kept] = '\0';
}

/* "pid (command) state ppid ...": utime and stime are the 14th and 15th, starttime the 22nd. The
 * command may hold blanks and parentheses. */
static bool parse_stat(const char *text, struct program_time *out)
{
    enum { UTIME = 14, STARTTIME = 22 };
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (!open || !close || close < open)
        return false;
    copy_name(out->name, open + 1, (size_t)(close - open - 1));
    const char *at = close + 1;
    long long number[STARTTIME + 1] = {0};
    at += strspn(at, " ");
    at += strcspn(at, " "); /* state */
    for (int k = 4; k <= STARTTIME; k++) {
        char *end;
        number[k] = strtoll(at, &end, 10);
        if (end == at)
            return false;
        at = end;
    }
    out->born = number[STARTTIME];
    out->cpu_s = (double)(number[UTIME] + number[UTIME + 1]) * tick_s();
    return true;
}

/* Of /proc, without this process; -1: none left. */
static long next_pid(DIR *proc)
{
    for (struct dirent *e; (e = readdir(proc));) {
        long pid = strtol(e->d_name, NULL, 10);
        if (pid > 0 && pid != (long)getpid())
            return pid;
    }
    return -1;
}

static bool read_program(const char *root, long pid, struct program_time *out)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    *out = (struct program_time){.pid = pid};
    return read_file(root, path, text, sizeof(text)) > 0 && parse_stat(text, out);
}

static DIR *open_proc(const char *root)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/proc", root);
    return opendir(path);
}

static void list_programs(struct other_programs *p)
{
    DIR *proc = open_proc(p->root);
    p->list = proc ? malloc(PROGRAMS_MAX * sizeof(*p->list)) : NULL;
    p->count = 0;
    for (long pid; p->list && p->count < PROGRAMS_MAX && (pid = next_pid(proc)) > 0;)
        p->count += read_program(p->root, pid, &p->list[p->count]);
    if (proc)
        closedir(proc);
}

/* What it had at the first moment. One that is not in the list began since, unless the list is
 * full: then that is not known, and nothing is said of it. */
static double had_before(const struct other_programs *p, const struct program_time *now)
{
    for (int k = 0; k < p->count; k++)
        if (p->list[k].pid == now->pid && p->list[k].born == now->born)
            return p->list[k].cpu_s;
    return p->count < PROGRAMS_MAX ? 0 : now->cpu_s;
}

static void find_busiest(const struct other_programs *p, struct others *out)
{
    struct program_time now;
    DIR *proc = open_proc(p->root);
    int looked_at = 0;
    for (long pid; p->list && proc && looked_at < PROGRAMS_MAX && (pid = next_pid(proc)) > 0;) {
        looked_at++;
        double used = read_program(p->root, pid, &now) ? now.cpu_s - had_before(p, &now) : 0;
        if (used <= out->busiest_s)
            continue;
        out->busiest_s = used;
        memcpy(out->busiest, now.name, sizeof(out->busiest));
    }
    if (proc)
        closedir(proc);
}

/* ---- all of them together ---- */

static double busy_of_cpus(const char *root, int *count)
{
    struct cpus cpus;
    char *text = malloc(TEXT_MAX);
    bool readable =
        cpus_of_process(&cpus) && text && read_file(root, "/proc/stat", text, TEXT_MAX) > 0;
    double busy_s = readable ? cpu_seconds_of(text, &cpus).busy : NAN;
    *count = cpus_count(&cpus);
    free(text);
    return busy_s;
}

static double own_time(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0
               ? (double)t.tv_sec + (double)t.tv_nsec * 1e-9
               : NAN;
}

/* ---- quotas ---- */

/* The number after a key in a cpu.stat; 0 when there is none. */
static double throttled(const char *root, const char *folder, bool *known)
{
    static const struct {
        const char *key;
        double unit_s;
    } keys[] = {{"throttled_usec ", 1e-6}, {"throttled_time ", 1e-9}}; /* versions 2 and 1 */
    char path[768], text[2048];
    snprintf(path, sizeof(path), "%s/cpu.stat", folder);
    for (int k = 0; k < 2 && read_file(root, path, text, sizeof(text)) > 0; k++) {
        const char *found = strstr(text, keys[k].key);
        if (!found)
            continue;
        *known = true;
        return strtod(found + strlen(keys[k].key), NULL) * keys[k].unit_s;
    }
    return 0;
}

/* Any group above may have a quota too. */
static double throttled_with_parents(const char *root, const char *mount, const char *group,
                                     bool *known)
{
    char folder[640];
    double sum = 0;
    size_t top = strlen(mount);
    snprintf(folder, sizeof(folder), "%s%s", mount, strcmp(group, "/") == 0 ? "" : group);
    for (;;) {
        sum += throttled(root, folder, known);
        char *slash = strlen(folder) > top ? strrchr(folder + top, '/') : NULL;
        if (!slash)
            return sum;
        *slash = '\0';
    }
}

/* Whether a line of /proc/self/cgroup, "4:cpu,cpuacct:/a/b", names the CPU's controller; or version
 * 2, "0::/a/b". */
static bool has_cpu(const char *line)
{
    const char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
    if (!group)
        return false;
    if (group == names + 1)
        return true;
    for (const char *at = names + 1; at < group; at += strcspn(at, ",:") + 1)
        if (strncmp(at, "cpu", 3) == 0 && (at[3] == ',' || at[3] == ':'))
            return true;
    return false;
}

static double quota_time(const char *root)
{
    char text[4096], *rest = text;
    bool known = false;
    double sum = 0;
    read_file(root, "/proc/self/cgroup", text, sizeof(text));
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (!has_cpu(line))
            continue;
        const char *group = strchr(strchr(line, ':') + 1, ':') + 1;
        bool first = strstr(line, "::") != NULL;
        sum += throttled_with_parents(root, first ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu", group,
                                      &known);
    }
    return known ? sum : NAN;
}

/* ---- both moments ---- */

void other_programs_begin(struct other_programs *p, const char *root)
{
    *p = (struct other_programs){.root = root};
    list_programs(p);
    p->quota_s = quota_time(root);
    int cpus;
    p->busy_s = busy_of_cpus(root, &cpus);
    p->own_s = own_time();
}

void other_programs_end(struct other_programs *p, struct others *out)
{
    *out = (struct others){.busiest = ""};
    double own_s = own_time() - p->own_s, busy_s = busy_of_cpus(p->root, &out->cpus) - p->busy_s;
    double quota_s = quota_time(p->root) - p->quota_s;
    out->all_s = fmax(0, busy_s - own_s);
    /* A /proc/stat that does not know our own work (containers may have one of their own) says
     * nothing about others' work either. Its ticks are not exact. */
    if (isnan(busy_s) || busy_s < 0.8 * own_s - 4 * tick_s())
        out->all_s = NAN;
    out->quota_s = quota_s > 0 ? quota_s : 0;
    find_busiest(p, out);
    other_programs_drop(p);
}

void other_programs_drop(struct other_programs *p)
{
    free(p->list);
    p->list = NULL;
}
