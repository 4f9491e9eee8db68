/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/watch/free_memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/machine/procfs.h"

enum { PATH_SIZE = 1024 };
static const double no_limit = 0x1p62; /* what version 1 says when there is none */

/* The number after a key in a file or, without a key, at its beginning; NAN: there is none. */
static double number_in(const char *root, const char *path, const char *key)
{
    char text[128], *end;
    enum fact_status status = key ? procfs_key(root, path, key, text, sizeof(text))
                                  : procfs_line(root, path, text, sizeof(text));
    double number = status == FACT_OK ? strtod(text, &end) : NAN;
    return status == FACT_OK && end != text ? number : NAN;
}

static void note(struct free_memory *available, double bytes, const char *where, bool is_address)
{
    if (isnan(bytes) || bytes >= available->bytes)
        return;
    available->bytes = fmax(bytes, 0);
    available->is_address = is_address;
    snprintf(available->where, sizeof(available->where), "%s", where);
}

/* ---- control groups ---- */

/* Names of files and keys differ between the versions. */
struct version {
    const char *folder, *limits[2], *used, *reclaimable[3];
};

static const struct version versions[] = {
    {"/sys/fs/cgroup",
     {"memory.max", "memory.high"},
     "memory.current",
     {"inactive_file", "active_file", "slab_reclaimable"}},
    {"/sys/fs/cgroup/memory",
     {"memory.limit_in_bytes"},
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
};

static double group_number(const char *root, const char *folder, const char *file, const char *key)
{
    char path[PATH_SIZE + 64];
    snprintf(path, sizeof(path), "%s/%s", folder, file);
    return number_in(root, path, key);
}

static void note_group(struct free_memory *available, const char *root,
                       const struct version *version, const char *folder)
{
    double limit = INFINITY, used = group_number(root, folder, version->used, NULL), cached = 0;
    for (int k = 0; k < 2 && version->limits[k]; k++)
        limit = fmin(limit, group_number(root, folder, version->limits[k], NULL)); /* NAN: none */
    for (int k = 0; k < 3 && version->reclaimable[k]; k++)
        cached += fmax(0, group_number(root, folder, "memory.stat", version->reclaimable[k]));
    if (limit >= no_limit)
        return;
    char where[96];
    snprintf(where, sizeof(where), "in this control group of %.3g GB", limit * 1e-9);
    note(available, limit - (isnan(used) ? 0 : fmax(0, used - cached)), where, false);
}

/* The path of this process's group in the hierarchy that has the memory controller: "" at its top,
 * or where a container hides it. */
static void memory_group(const char *root, bool version_1, char *path, size_t size)
{
    char *text, *line, *rest = NULL;
    struct arena arena = {0};
    enum fact_status status;
    size_t length;
    path[0] = 0;
    text = procfs_text(root, "/proc/self/cgroup", &arena, &length, &status);
    for (line = text ? strtok_r(text, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        if (!group)
            continue;
        bool unified = group == names + 1;
        bool memory = !unified && strstr(names, "memory") && strstr(names, "memory") < group;
        if (version_1 ? memory : unified && strncmp(line, "0:", 2) == 0)
            snprintf(path, size, "%s", strcmp(group + 1, "/") == 0 ? "" : group + 1);
    }
    arena_release(&arena);
}

/* Each group from the process's own to the top may be the one that is full. */
static void note_groups(struct free_memory *available, const char *root)
{
    for (int k = 0; k < 2; k++) {
        char group[PATH_SIZE / 2], folder[PATH_SIZE];
        memory_group(root, k == 1, group, sizeof(group));
        for (;;) {
            snprintf(folder, sizeof(folder), "%s%s", versions[k].folder, group);
            note_group(available, root, &versions[k], folder);
            char *slash = strrchr(group, '/');
            if (!slash)
                break;
            *slash = 0;
        }
    }
}

/* ---- all of it ---- */

struct free_memory free_memory_find(const char *root)
{
    static const char limits[] = "/proc/self/limits", status[] = "/proc/self/status";
    struct free_memory available = {.bytes = INFINITY, .where = ""};
    note(&available, number_in(root, "/proc/meminfo", "MemAvailable") * 1024, "on this machine",
         false);
    note_groups(&available, root);
    note(&available,
         number_in(root, limits, "Max address space") - number_in(root, status, "VmSize") * 1024,
         "of the address space that `ulimit -v` grants", true);
    note(&available,
         number_in(root, limits, "Max data size") - number_in(root, status, "VmData") * 1024,
         "of the data size that `ulimit -d` grants", true);
    return available;
}
