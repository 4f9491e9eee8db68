/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge doctor: what this machine and this build can do, what is missing, and what to type to have
 * it. */
#include <protobuf-c/protobuf-c.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/build_info.h"
#include "base/json.h"
#include "engine/kernel.h"
#include "engine/plugin.h"
#include "harness/command.h"
#include "harness/host.h"
#include "harness/model_options.h"

struct doctor_options {
    bool json;
    const char *require;
};

static const struct option options[] = {
    {"require", 'r', OPTION_TEXT, offsetof(struct doctor_options, require), "LIST",
     "plug-ins and instruction sets that must be there: onednn,avx512"},
    {"json", 0, OPTION_FLAG, offsetof(struct doctor_options, json), NULL, "machine-readable"},
    {.name = NULL},
};

enum { ADVICE_MAX = 16, ADVICE_BYTES = 400 };

/* What could be better, in the order of the report. */
struct advice {
    char text[ADVICE_MAX][ADVICE_BYTES];
    int count;
};

struct report {
    struct host host;
    enum isa isa;
    char cache[1024];
    bool cache_exists;
    struct advice advice;
    struct advice missing; /* required, but absent */
};

__attribute__((format(printf, 2, 3))) static void advise(struct advice *advice, const char *format,
                                                         ...)
{
    if (advice->count == ADVICE_MAX)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(advice->text[advice->count++], ADVICE_BYTES, format, args);
    va_end(args);
}

/* ---- checks ---- */

static void check_machine(struct report *r)
{
    const struct host *h = &r->host;
    if (h->cpu_quota > 0 && h->cpu_quota < h->cpus_allowed)
        advise(&r->advice,
               "the control group grants %.1f of %d CPUs: threads will be throttled; use --threads "
               "%d, or raise cpu.max",
               h->cpu_quota, h->cpus_allowed, h->cpu_quota < 1 ? 1 : (int)h->cpu_quota);
    if (h->governor[0] && strcmp(h->governor, "performance") != 0)
        advise(&r->advice,
               "the clock governor is \"%s\": timings will wander; sudo cpupower frequency-set -g "
               "performance",
               h->governor);
    if (strcmp(h->huge_pages, "never") == 0)
        advise(&r->advice, "huge pages are off, which costs large layers up to a tenth; echo "
                           "madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
    if (h->hypervisor)
        advise(&r->advice, "this is a virtual machine: other guests may disturb timings; compare "
                           "medians, and the FMA peak that `ridge run` prints beside them");
    if (h->memory_available_bytes >= 0 && h->memory_available_bytes < (int64_t)2 << 30)
        advise(&r->advice, "only %.1f GB of memory are free: bert_large needs 2",
               (double)h->memory_available_bytes * 1e-9);
}

static void check_build(struct report *r)
{
    if (strcmp(build_info.config, "release") != 0)
        advise(&r->advice, "this is a %s build, which is slow: make", build_info.config);
    if (r->isa != ISA_SCALAR && !strstr(build_info.isas, isa_name(r->isa)))
        advise(&r->advice,
               "native kernels were not compiled for %s, which this CPU has: make with "
               "a newer gcc",
               isa_name(r->isa));
    for (int k = 0; k < plugin_info_count(); k++) {
        const struct plugin_info *info = plugin_info_at(k);
        if (info->state != PLUGIN_LOADED)
            advise(&r->advice, "%s is not used: %s", info->name, info->reason);
    }
}

/* Whether a file of that path could be made: the nearest folder that exists may be written to. */
static bool is_creatable(const char *path)
{
    char folder[1100];
    struct stat status;
    snprintf(folder, sizeof(folder), "%s%s", path[0] == '/' ? "" : "./", path);
    char *slash = strrchr(folder, '/');
    while (slash && slash != folder) {
        *slash = '\0';
        if (stat(folder, &status) == 0)
            return S_ISDIR(status.st_mode) && access(folder, W_OK) == 0;
        slash = strrchr(folder, '/');
    }
    return access("/", W_OK) == 0;
}

static void check_cache(struct report *r)
{
    tuner_cache_path(r->cache, sizeof(r->cache));
    r->cache_exists = access(r->cache, F_OK) == 0;
    if (r->cache_exists ? access(r->cache, W_OK) != 0 : !is_creatable(r->cache))
        advise(&r->advice,
               "the tuner cannot write %s and tunes at every start: set RIDGE_CACHE=/some/file",
               r->cache);
}

static bool has(const struct report *r, const char *name)
{
    for (int k = 0; k < ISA_COUNT; k++)
        if (strcmp(name, isa_name((enum isa)k)) == 0)
            return k <= (int)r->isa;
    return plugin_version(name) != NULL;
}

static void check_required(struct report *r, const char *list)
{
    while (list && *list) {
        char name[64];
        size_t length = strcspn(list, ",");
        snprintf(name, sizeof(name), "%.*s", (int)length, list);
        if (!has(r, name))
            advise(&r->missing, "%s is required and not there", name);
        list += length + (list[length] == ',');
    }
}

/* ---- output ---- */

static void print_size(const char *title, int64_t bytes)
{
    if (bytes < 0)
        printf("  %-14s not known\n", title);
    else if (bytes >= (int64_t)1 << 30)
        printf("  %-14s %.1f GiB\n", title, (double)bytes / (1 << 30));
    else
        printf("  %-14s %.0f KiB\n", title, (double)bytes / 1024);
}

static void print_machine(const struct report *r)
{
    const struct host *h = &r->host;
    printf("machine\n");
    printf("  %-14s %s%s\n", "CPU", h->cpu[0] ? h->cpu : "not known",
           h->hypervisor ? " (virtual machine)" : "");
    printf("  %-14s %s\n", "kernels up to", isa_name(r->isa));
    printf("  %-14s %d of %d, %d memory node%s\n", "CPUs usable", h->cpus_allowed, h->cpus_online,
           h->numa_nodes, h->numa_nodes == 1 ? "" : "s");
    print_size("L1 data", h->l1d_bytes);
    print_size("L2", h->l2_bytes);
    print_size("L3", h->l3_bytes);
    print_size("memory", h->memory_bytes);
    print_size("of that free", h->memory_available_bytes);
    printf("  %-14s %s\n", "huge pages", h->huge_pages[0] ? h->huge_pages : "not known");
    printf("  %-14s %s\n", "governor", h->governor[0] ? h->governor : "not known");
    printf("  %-14s %s\n", "system", h->system);
}

static void print_text(const struct report *r)
{
    print_machine(r);
    printf("build\n  %-14s %s (%s, %s)\n  %-14s %s\n  %-14s %s, protobuf-c %s\n", "ridge",
           build_info.version, build_info.commit, build_info.config, "compiler",
           build_info.compiler, "libraries", r->host.libc, protobuf_c_version());
    printf("plug-ins\n");
    for (int k = 0; k < plugin_info_count(); k++) {
        const struct plugin_info *info = plugin_info_at(k);
        printf("  %-14s %s\n", info->name,
               info->state == PLUGIN_LOADED ? info->version : "absent, see below");
    }
    printf("tuner\n  %-14s %s%s\n", "cache", r->cache, !r->cache_exists ? " (not there yet)" : "");
    for (int k = 0; k < r->advice.count; k++)
        printf("%s  - %s\n", k ? "" : "advice\n", r->advice.text[k]);
    for (int k = 0; k < r->missing.count; k++)
        printf("%s  - %s\n", k ? "" : "missing\n", r->missing.text[k]);
    if (!r->missing.count)
        printf("All that is required is there.\n");
}

static void json_known(struct json *json, const char *key, int64_t value)
{
    if (value < 0)
        json_null(json, key);
    else
        json_int(json, key, value);
}

static void json_machine(struct json *json, const struct report *r)
{
    const struct host *h = &r->host;
    json_open(json, "machine", '{');
    json_text(json, "cpu", h->cpu[0] ? h->cpu : NULL);
    json_text(json, "isa", isa_name(r->isa));
    json_int(json, "cpus_online", h->cpus_online);
    json_known(json, "cpus_allowed", h->cpus_allowed);
    json_known(json, "numa_nodes", h->numa_nodes);
    if (h->cpu_quota > 0)
        json_number(json, "cpu_quota", h->cpu_quota);
    else
        json_null(json, "cpu_quota");
    json_known(json, "l1d_bytes", h->l1d_bytes);
    json_known(json, "l2_bytes", h->l2_bytes);
    json_known(json, "l3_bytes", h->l3_bytes);
    json_known(json, "memory_bytes", h->memory_bytes);
    json_known(json, "memory_available_bytes", h->memory_available_bytes);
    json_text(json, "huge_pages", h->huge_pages[0] ? h->huge_pages : NULL);
    json_text(json, "governor", h->governor[0] ? h->governor : NULL);
    json_text(json, "system", h->system);
    json_bool(json, "hypervisor", h->hypervisor);
    json_close(json);
}

static void json_advice(struct json *json, const char *key, const struct advice *advice)
{
    json_open(json, key, '[');
    for (int k = 0; k < advice->count; k++)
        json_text(json, NULL, advice->text[k]);
    json_close(json);
}

static void print_json(const struct report *r)
{
    struct json json;
    json_begin(&json, stdout);
    json_open(&json, NULL, '{');
    json_machine(&json, r);
    json_open(&json, "build", '{');
    json_text(&json, "version", build_info.version);
    json_text(&json, "commit", build_info.commit);
    json_text(&json, "config", build_info.config);
    json_text(&json, "compiler", build_info.compiler);
    json_text(&json, "flags", build_info.flags);
    json_text(&json, "libc", r->host.libc);
    json_text(&json, "protobuf_c", protobuf_c_version());
    json_close(&json);
    json_open(&json, "plugins", '[');
    for (int k = 0; k < plugin_info_count(); k++) {
        const struct plugin_info *info = plugin_info_at(k);
        json_open(&json, NULL, '{');
        json_text(&json, "name", info->name);
        json_bool(&json, "loaded", info->state == PLUGIN_LOADED);
        json_text(&json, "version", info->state == PLUGIN_LOADED ? info->version : NULL);
        json_text(&json, "reason", info->state == PLUGIN_LOADED ? NULL : info->reason);
        json_close(&json);
    }
    json_close(&json);
    json_text(&json, "tuner_cache", r->cache);
    json_advice(&json, "advice", &r->advice);
    json_advice(&json, "missing", &r->missing);
    json_close(&json);
}

static int doctor_main(int word_count, char **words, const void *values)
{
    const struct doctor_options *o = values;
    if (word_count) {
        fprintf(stderr, "ridge doctor: takes no word, got \"%s\"\n", words[0]);
        return EXIT_USAGE;
    }
    struct report r = {.isa = isa_detect()};
    host_probe(&r.host);
    plugins_load(NULL);
    check_machine(&r);
    check_build(&r);
    check_cache(&r);
    check_required(&r, o->require);
    if (o->json)
        print_json(&r);
    else
        print_text(&r);
    return r.missing.count ? EXIT_MISSING : EXIT_FINE;
}

REGISTER(command, doctor) = {
    .name = "doctor",
    .summary = "say what this machine and this build can do",
    .usage = "[--require LIST] [--json]",
    .help = "Exits with 5 when something that --require names is not there.",
    .options = options,
    .values_size = sizeof(struct doctor_options),
    .main = doctor_main,
};
