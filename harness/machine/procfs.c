/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/machine/procfs.h"

#include <errno.h>
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

/* A file of this process's control group; the top's when a container hides where it is. */
static enum fact_status cgroup_line(const char *root, const char *name, char *text, size_t size)
{
    char group[PATH_SIZE], path[PATH_SIZE + 128];
    procfs_cgroup(root, group, sizeof(group));
    snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", group, name);
    enum fact_status status = procfs_line(root, path, text, size);
    if (status == FACT_OK)
        return status;
    snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", name);
    return procfs_line(root, path, text, size);
}

double procfs_cpu_quota(const char *root)
{
    char text[64], *end = NULL;
    if (cgroup_line(root, "cpu.max", text, sizeof(text)) != FACT_OK)
        return -1;
    double quota = strtod(text, &end);
    double period = end == text ? 0 : strtod(end, NULL);
    return period > 0 ? quota / period : -1;
}
