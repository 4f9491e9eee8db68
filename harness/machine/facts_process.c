/* SPDX-License-Identifier: Apache-2.0
 *
 * This process: where it may run, what limits it, which environment variables matter, which
 * libraries are loaded; and where its output goes.
 *
 * Which libraries are loaded depends on --providers, so only those that every program has are part
 * of the hash; the versions of the others are in the tuner's key and in the hash of the build. */
#define _GNU_SOURCE
#include "base/registry.h"
#include "harness/machine/facts.h"

#include <gnu/libc-version.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/system/hash.h"
#include "harness/machine/procfs.h"

#define STATUS_ "/proc/self/status"

static const struct fact_source sources[] = {
    {"process", "cpus_allowed", STATUS_, FACT_KEY, "Cpus_allowed_list", NULL, FACT_TUNING, false},
    {"process", "memory_nodes_allowed", STATUS_, FACT_KEY, "Mems_allowed_list", NULL, FACT_TUNING,
     false},
    {"process", "thp", STATUS_, FACT_KEY, "THP_enabled", NULL, FACT_TUNING, true},
    {"process", "oom_score_adj", "/proc/self/oom_score_adj", FACT_LINE, NULL, NULL, FACT_VOLATILE,
     true},
    {"process", "timer_slack", "/proc/self/timerslack_ns", FACT_LINE, NULL, "ns", FACT_TUNING,
     true},
    {"process", "personality", "/proc/self/personality", FACT_LINE, NULL, NULL, FACT_TUNING, true},
};

static void read_limits(struct facts *facts)
{
    static const struct {
        const char *key;
        int which;
        const char *unit;
    } limits[] = {{"limit_stack", RLIMIT_STACK, "B"},
                  {"limit_locked_memory", RLIMIT_MEMLOCK, "B"},
                  {"limit_address_space", RLIMIT_AS, "B"},
                  {"limit_open_files", RLIMIT_NOFILE, ""},
                  {"limit_cpu_time", RLIMIT_CPU, "s"}};
    struct fact fact = {.category = "process", .source = "getrlimit()", .class = FACT_TUNING};
    for (int k = 0; k < ARRAY_COUNT(limits); k++) {
        struct rlimit limit;
        fact.key = limits[k].key;
        fact.unit = limits[k].unit;
        if (getrlimit((__rlimit_resource_t)limits[k].which, &limit) != 0)
            continue;
        if (limit.rlim_cur == RLIM_INFINITY)
            facts_text(facts, fact, "unlimited");
        else
            facts_text(facts, fact, "%llu", (unsigned long long)limit.rlim_cur);
    }
}

static void read_priority(struct facts *facts)
{
    struct fact fact = {
        .category = "process", .key = "nice", .source = "getpriority()", .class = FACT_TUNING};
    facts_number(facts, fact, getpriority(PRIO_PROCESS, 0));
    static const char *const policies[] = {[SCHED_OTHER] = "other",
                                           [SCHED_FIFO] = "fifo",
                                           [SCHED_RR] = "rr",
                                           [SCHED_BATCH] = "batch",
                                           [SCHED_IDLE] = "idle"};
    int policy = sched_getscheduler(0);
    fact.key = "policy";
    fact.source = "sched_getscheduler()";
    if (policy >= 0 && policy < ARRAY_COUNT(policies) && policies[policy])
        facts_text(facts, fact, "%s", policies[policy]);
    fact.key = "user";
    fact.source = "geteuid()";
    fact.class = FACT_VOLATILE;
    facts_text(facts, fact, "%s", geteuid() == 0 ? "root" : "not root");
}

/* ---- variables ---- */

/* Beginnings of names. Those that only say where files are do not change speed. */
static const struct {
    const char *prefix;
    enum fact_class class;
} variables[] = {
    {"OMP_", FACT_TUNING},           {"GOMP_", FACT_TUNING},
    {"KMP_", FACT_TUNING},           {"MKL_", FACT_TUNING},
    {"OPENBLAS_", FACT_TUNING},      {"GOTO_", FACT_TUNING},
    {"BLIS_", FACT_TUNING},          {"DNNL_", FACT_TUNING},
    {"ONEDNN_", FACT_TUNING},        {"MALLOC_", FACT_TUNING},
    {"GLIBC_TUNABLES", FACT_TUNING}, {"LD_PRELOAD", FACT_TUNING},
    {"LD_BIND_NOW", FACT_TUNING},    {"RIDGE_ISA", FACT_TUNING},
    {"RIDGE_", FACT_VOLATILE},       {"LD_LIBRARY_PATH", FACT_VOLATILE},
    {"CUDA_HOME", FACT_VOLATILE},    {"CUDA_", FACT_TUNING},
    {"NVIDIA_", FACT_TUNING},        {"NCCL_", FACT_TUNING},
    {"HWLOC_", FACT_TUNING},         {"PAPI_", FACT_VOLATILE},
    {"TBB_", FACT_TUNING},           {"UCX_", FACT_TUNING},
    {"OMPI_", FACT_VOLATILE},        {"SLURM_", FACT_VOLATILE},
    {"KUBERNETES_", FACT_VOLATILE},
};

static void read_variable(struct facts *facts, const char *entry)
{
    char name[256];
    size_t length = strcspn(entry, "=");
    if (entry[length] != '=' || length >= sizeof(name))
        return;
    snprintf(name, sizeof(name), "%.*s", (int)length, entry);
    for (int k = 0; k < ARRAY_COUNT(variables); k++) {
        if (strncmp(name, variables[k].prefix, strlen(variables[k].prefix)) != 0)
            continue;
        facts_text(facts,
                   (struct fact){.category = "variable",
                                 .key = name,
                                 .class = variables[k].class,
                                 .source = "/proc/self/environ"},
                   "%s", entry + length + 1);
        return;
    }
}

/* As they were when the program began: plug-ins set some for their libraries. */
static void read_variables(struct facts *facts)
{
    size_t size = 0;
    enum fact_status status;
    char *text = procfs_text(facts->root, "/proc/self/environ", facts->arena, &size, &status);
    if (text)
        for (size_t at = 0; at < size; at += strlen(text + at) + 1)
            read_variable(facts, text + at);
}

/* ---- libraries ---- */

static bool is_everywhere(const char *name)
{
    static const char *const stems[] = {"libc.so", "libm.so", "ld-linux", "ld-musl"};
    for (int k = 0; k < ARRAY_COUNT(stems); k++)
        if (strncmp(name, stems[k], strlen(stems[k])) == 0)
            return true;
    return false;
}

static bool is_listed(const struct facts *facts, const char *path)
{
    for (int k = facts->count - 1; k >= 0 && strcmp(facts->items[k].category, "library") == 0; k--)
        if (strcmp(facts->items[k].source, path) == 0)
            return true;
    return false;
}

static void read_library(struct facts *facts, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char whole[PATH_MAX], hex[HASH64_TEXT] = "";
    uint64_t hash = 0;
    if (!strstr(name, ".so") || is_listed(facts, path))
        return;
    snprintf(whole, sizeof(whole), "%s%s", facts->root, path);
    enum status status = hash64_file(whole, &hash, NULL);
    if (status == STATUS_OK)
        hash64_hex(hash, hex);
    facts_add(facts, (struct fact){"library", name, hex, "", path,
                                   is_everywhere(name) ? FACT_IDENTITY : FACT_VOLATILE,
                                   status == STATUS_OK ? FACT_OK : FACT_ABSENT});
}

static void read_libraries(struct facts *facts)
{
    size_t size = 0;
    enum fact_status status;
    char *text = procfs_text(facts->root, "/proc/self/maps", facts->arena, &size, &status), *rest;
    if (!text)
        return;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *path = strchr(line, '/');
        if (path && strstr(line, " r-xp ") && !strstr(path, " (deleted)"))
            read_library(facts, path);
    }
    facts_text(facts,
               (struct fact){.category = "process",
                             .key = "libc",
                             .source = "gnu_get_libc_version()",
                             .class = FACT_IDENTITY},
               "glibc %s", gnu_get_libc_version());
}

void facts_process(struct facts *facts)
{
    facts_read(facts, sources, ARRAY_COUNT(sources));
    read_limits(facts);
    read_priority(facts);
    read_variables(facts);
    read_libraries(facts);
}

/* ---- storage ---- */

/* Line of /proc/self/mountinfo: id parent major:minor root place options [tags] - type device
 * super-options. */
static bool read_mount(struct facts *facts, char *line, const char *device_number)
{
    char *rest, *words[64];
    int count = 0, dash = 0;
    for (char *word = strtok_r(line, " ", &rest); word && count < 64;
         word = strtok_r(NULL, " ", &rest)) {
        dash = strcmp(word, "-") == 0 && !dash ? count : dash;
        words[count++] = word;
    }
    if (count < 6 || strcmp(words[2], device_number) != 0 || !dash || dash + 2 >= count)
        return false;
    /* Volatile: where results are written does not make it another machine. */
    struct fact fact = {
        .category = "storage", .source = "/proc/self/mountinfo", .class = FACT_VOLATILE};
    const struct {
        const char *key, *value;
    } parts[] = {{"file_system", words[dash + 1]},
                 {"device", words[dash + 2]},
                 {"mount_point", words[4]},
                 {"mount_options", words[5]}};
    for (int k = 0; k < ARRAY_COUNT(parts); k++) {
        fact.key = parts[k].key;
        facts_text(facts, fact, "%s", parts[k].value);
    }
    return true;
}

void facts_storage(struct facts *facts, const char *folder)
{
    struct stat info;
    size_t size = 0;
    enum fact_status status;
    char number[64], *rest;
    char *text = procfs_text(facts->root, "/proc/self/mountinfo", facts->arena, &size, &status);
    if (!text || stat(folder, &info) != 0)
        return;
    snprintf(number, sizeof(number), "%u:%u", major(info.st_dev), minor(info.st_dev));
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (read_mount(facts, line, number))
            return;
    facts_add(facts, (struct fact){"storage", "file_system", "", "", "/proc/self/mountinfo",
                                   FACT_VOLATILE, FACT_ABSENT});
}
