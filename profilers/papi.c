/* SPDX-License-Identifier: Apache-2.0
 *
 * Hardware counters by the groups of profilers/groups, through libpapi. The library is opened when
 * it is needed, behind plugins/profilers/papi.so (profilers/papi/): in a folder of its own because
 * plugins/ holds kernels, all of which are opened at every start. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/embedded.h"
#include "profilers/lib/counting.h"

enum { PATH_SIZE = 4096, GROUPS_MAX = 64, CPUINFO_SIZE = 16384 };

static const double idle_s = 0.1; /* long enough for refresh and daemons to average out */

/* Why the build left the plug-in out: ABSENT(name, reason) each. */
static const struct left_out {
    const char *name, *reason;
} left_out[] = {
#if __has_include("absent_plugins.inc")
#define ABSENT(name, reason) {name, reason},
#include "absent_plugins.inc"
#undef ABSENT
#endif
    {"", ""},
};

struct session {
    struct arena arena;
    struct counting *counting;
};

/* ---- the plug-in ---- */

static void *open_in(const char *folder, size_t length, char *path)
{
    snprintf(path, PATH_SIZE, "%.*s/profilers/papi.so", (int)length, folder);
    return access(path, F_OK) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* Where engine/plugin.c looks for kernels. *path: the last that was tried. */
static void *open_plugin(char *path)
{
    char program[PATH_SIZE - 64];
    const char *named = getenv("RIDGE_PLUGIN_PATH");
    void *library = NULL;
    for (const char *at = named ? named : ""; *at && !library;) {
        size_t length = strcspn(at, ":");
        library = open_in(at, length, path);
        at += length + (at[length] == ':');
    }
    ssize_t size = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (library || size <= 0)
        return library;
    program[size] = '\0';
    char *slash = strrchr(program, '/');
    static const char *const folders[] = {"/plugins", "/build/release/plugins"};
    for (int k = 0; slash && k < ARRAY_COUNT(folders) && !library; k++) {
        char folder[PATH_SIZE - 32];
        snprintf(folder, sizeof(folder), "%.*s%s", (int)(slash - program), program, folders[k]);
        library = open_in(folder, strlen(folder), path);
    }
    return library;
}

static const char *why_left_out(void)
{
    for (int k = 0; k < ARRAY_COUNT(left_out); k++)
        if (strcmp(left_out[k].name, "papi") == 0)
            return left_out[k].reason;
    return "plugins/profilers/papi.so is not beside the program: make";
}

/* Never closed: libraries that have a state per process do not survive that. */
static const struct counters_backend *find_backend(char *reason, size_t size)
{
    char path[PATH_SIZE] = "";
    ridge_counters_entry *entry;
    void *library = open_plugin(path);
    if (!library) {
        const char *why = path[0] && access(path, F_OK) == 0 ? dlerror() : NULL;
        snprintf(reason, size, "%s%s", why ? why : why_left_out(),
                 why && strstr(why, "libpapi") ? ": apt-get install libpapi-dev, then make" : "");
        return NULL;
    }
    void *symbol = dlsym(library, "ridge_counters");
    if (!symbol) {
        snprintf(reason, size, "%.400s is no plug-in of this ridge: make", path);
        return NULL;
    }
    memcpy(&entry, &symbol, sizeof(entry)); /* POSIX's way round ISO C's rule on casts */
    const struct counters_backend *backend = entry(reason, size);
    if (backend && backend->abi != COUNTERS_ABI) {
        snprintf(reason, size, "%.400s was built for another ridge: make", path);
        return NULL;
    }
    return backend;
}

/* ---- groups ---- */

static enum status read_groups(struct arena *arena, struct group **groups, int *count,
                               struct error *err)
{
    const struct embedded *file = NULL;
    *count = 0;
    *groups = arena_array(arena, GROUPS_MAX, sizeof(**groups));
    if (!*groups)
        return FAIL_NO_MEMORY(err);
    while ((file = embedded_next("profilers/groups/", file)) && *count < GROUPS_MAX)
        TRY(group_read(file->path, file->text, file->size, arena, &(*groups)[(*count)++], err));
    return STATUS_OK;
}

static void identify_cpu(struct cpu_identity *cpu)
{
    char text[CPUINFO_SIZE];
    FILE *file = fopen("/proc/cpuinfo", "re");
    size_t size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    text[size] = '\0';
    if (file)
        fclose(file);
    cpu_identity_parse(text, cpu);
}

/* ---- the profiler ---- */

static bool papi_available(char *reason, size_t size)
{
    snprintf(reason, size, "%s", "");
    return find_backend(reason, size) != NULL;
}

static enum status open_counting(struct session *s, struct error *err)
{
    char reason[400] = "";
    struct group *groups;
    struct counting_setup setup = {.idle_s = idle_s};
    setup.backend = find_backend(reason, sizeof(reason));
    if (!setup.backend)
        return UNSUPPORTED(err, "%s", reason);
    TRY(read_groups(&s->arena, &groups, &setup.group_count, err));
    setup.groups = groups;
    identify_cpu(&setup.cpu);
    return counting_open(&setup, &s->counting, err);
}

static enum status papi_open(const struct profiler_model *model, int threads, void **session,
                             struct error *err)
{
    (void)model;
    (void)threads; /* every thread that the process has is counted */
    struct session *s = calloc(1, sizeof(*s));
    if (!s)
        return FAIL_NO_MEMORY(err);
    enum status status = open_counting(s, err);
    if (status != STATUS_OK) {
        arena_release(&s->arena);
        free(s);
        return status;
    }
    *session = s;
    return STATUS_OK;
}

static int papi_passes(const void *session)
{
    const struct session *s = session;
    return counting_passes(s->counting);
}

static enum status papi_begin(void *session, int pass, struct error *err)
{
    struct session *s = session;
    return counting_begin(s->counting, pass, err);
}

static enum status papi_end(void *session, int pass, int64_t executions, struct error *err)
{
    struct session *s = session;
    return counting_end(s->counting, pass, executions, err);
}

static int papi_read(void *session, struct profiler_metric *metrics)
{
    struct session *s = session;
    return counting_read(s->counting, metrics);
}

static void papi_close(void *session)
{
    struct session *s = session;
    counting_close(s->counting);
    arena_release(&s->arena);
    free(s);
}

REGISTER(profiler, papi) = {
    .name = "papi",
    .summary = "hardware and kernel counters by libpapi: profilers/groups",
    .available = papi_available,
    .open = papi_open,
    .passes = papi_passes,
    .begin = papi_begin,
    .end = papi_end,
    .read = papi_read,
    .close = papi_close,
};
