/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/machine/procfs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 1 << 20, PATH_SIZE = 1024 };

static FILE *open_file(const char *root, const char *path, enum fact_status *status)
{
    char whole[2 * PATH_SIZE];
    snprintf(whole, sizeof(whole), "%s%s", root, path);
    FILE *file = fopen(whole, "re");
    *status = file ? FACT_OK : errno == EACCES || errno == EPERM ? FACT_DENIED : FACT_ABSENT;
    return file;
}

/* Cuts blanks off both ends, in place. */
static void trim(char *text)
{
    size_t skip = strspn(text, " \t\n"), length = strlen(text + skip);
    memmove(text, text + skip, length + 1);
    while (length && strchr(" \t\r\n", text[length - 1]))
        text[--length] = '\0';
}

enum fact_status procfs_line(const char *root, const char *path, char *text, size_t size)
{
    enum fact_status status;
    text[0] = '\0';
    FILE *file = open_file(root, path, &status);
    if (!file)
        return status;
    errno = 0;
    if (!fgets(text, (int)size, file)) {
        text[0] = '\0'; /* some files open and refuse to be read */
        status = errno == EACCES || errno == EPERM ? FACT_DENIED : FACT_ABSENT;
    }
    fclose(file);
    trim(text);
    return status;
}

char *procfs_text(const char *root, const char *path, struct arena *arena, size_t *size,
                  enum fact_status *status)
{
    FILE *file = open_file(root, path, status);
    if (!file)
        return NULL;
    char *buffer = malloc(TEXT_MAX + 1), *text = NULL;
    if (buffer) {
        errno = 0;
        *size = fread(buffer, 1, TEXT_MAX, file);
        buffer[*size] = '\0';
        if (*size == 0 && errno)
            *status = FACT_DENIED;
        text = arena_copy(arena, buffer, *size + 1);
    }
    free(buffer);
    fclose(file);
    if (!text && *status == FACT_OK)
        *status = FACT_ABSENT;
    return *status == FACT_OK ? text : NULL;
}

/* The value after `key` in a line, or NULL when the line is about something else. */
static char *value_of(char *line, const char *key)
{
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0 || !strchr(": \t=", line[length]) || !line[length])
        return NULL;
    char *value = line + length;
    return value + strspn(value, ": \t=");
}

enum fact_status procfs_key(const char *root, const char *path, const char *key, char *value,
                            size_t size)
{
    enum fact_status status;
    char line[8192];
    value[0] = '\0';
    FILE *file = open_file(root, path, &status);
    if (!file)
        return status;
    status = FACT_ABSENT;
    while (status != FACT_OK && fgets(line, sizeof(line), file)) {
        char *found = value_of(line, key);
        if (!found)
            continue;
        trim(found);
        snprintf(value, size, "%s", found);
        status = FACT_OK;
    }
    fclose(file);
    return status;
}

enum fact_status procfs_choice(const char *root, const char *path, char *text, size_t size)
{
    char line[256];
    enum fact_status status = procfs_line(root, path, line, sizeof(line));
    char *open = strchr(line, '[');
    snprintf(text, size, "%.*s", open ? (int)strcspn(open + 1, "]") : 0, open ? open + 1 : "");
    return status == FACT_OK && !open ? FACT_ABSENT : status;
}

void procfs_cgroup(const char *root, char *path, size_t size)
{
    char line[PATH_SIZE];
    path[0] = '\0';
    enum fact_status status;
    FILE *file = open_file(root, "/proc/self/cgroup", &status);
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "0::/", 4) == 0) {
            trim(line);
            snprintf(path, size, "%s", line[4] ? line + 3 : "");
        }
    if (file)
        fclose(file);
}

/* The same in version 1's hierarchy of CPU time: "4:cpu,cpuacct:/a/b". */
static void cpu_group(const char *root, char *path, size_t size)
{
    char line[PATH_SIZE];
    enum fact_status status;
    FILE *file = open_file(root, "/proc/self/cgroup", &status);
    path[0] = '\0';
    while (file && fgets(line, sizeof(line), file)) {
        char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL, *rest;
        if (!group)
            continue;
        *group++ = '\0';
        trim(group);
        for (char *name = strtok_r(names + 1, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
            if (strcmp(name, "cpu") == 0)
                snprintf(path, size, "%s", strcmp(group, "/") == 0 ? "" : group);
    }
    if (file)
        fclose(file);
}

/* The number that a file begins with; what follows it in *rest. 0: there is none. */
static double number_in(const char *root, const char *folder, const char *name, char *text,
                        size_t size, const char **rest)
{
    char path[2 * PATH_SIZE], *end;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    procfs_line(root, path, text, size);
    double number = strtod(text, &end);
    *rest = end;
    return number;
}

/* What one group grants by itself; INFINITY: it has no limit. */
static double quota_of(const char *root, const char *folder)
{
    char text[64];
    const char *rest;
    double quota = number_in(root, folder, "cpu.max", text, sizeof(text), &rest);
    double period = quota > 0 ? strtod(rest, NULL) : 0;
    if (!text[0]) { /* version 1 */
        quota = number_in(root, folder, "cpu.cfs_quota_us", text, sizeof(text), &rest);
        period = number_in(root, folder, "cpu.cfs_period_us", text, sizeof(text), &rest);
    }
    return quota > 0 && period > 0 ? quota / period : INFINITY;
}

/* Each group from the process's own to the top may be the one that grants least; a container hides
 * where in the hierarchy its top is. */
static double least_quota(const char *root, const char *mount, const char *group)
{
    char folder[2 * PATH_SIZE];
    snprintf(folder, sizeof(folder), "%s%s", mount, group);
    double least = quota_of(root, folder);
    while (strlen(folder) > strlen(mount)) {
        *strrchr(folder, '/') = '\0';
        least = fmin(least, quota_of(root, folder));
    }
    return least;
}

double procfs_cpu_quota(const char *root)
{
    char group[PATH_SIZE];
    procfs_cgroup(root, group, sizeof(group));
    double quota = least_quota(root, "/sys/fs/cgroup", group);
    cpu_group(root, group, sizeof(group));
    quota = fmin(quota, least_quota(root, "/sys/fs/cgroup/cpu", group));
    return isinf(quota) ? -1 : quota;
}
