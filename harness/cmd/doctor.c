/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge doctor: what this machine and this build can do, what is missing, and what to type to get
 * it. */
#include <math.h>
#include <protobuf-c/protobuf-c.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/build_info.h"
#include "base/system/cpus.h"
#include "base/text/json.h"
#include "base/text/table.h"
#include "collective/launcher.h"
#include "engine/graph/kernel.h"
#include "engine/run/plugin.h"
#include "harness/bench/smpi.h"
#include "harness/cli/command.h"
#include "harness/machine/accelerators.h"
#include "harness/machine/environment.h"
#include "harness/machine/environment_print.h"
#include "harness/model/model_options.h"
#include "harness/watch/free_memory.h"
#include "profilers/lib/cupti_session.h"
#include "profilers/lib/profiler.h"
#include "workloads/data/jpeg.h"

struct doctor_options {
    bool json, redact, facts;
    const char *require;
};

static const struct option options[] = {
    {"require", 'r', OPTION_TEXT, offsetof(struct doctor_options, require), "LIST",
     "plug-ins and instruction sets that must be available: onednn,avx512"},
    {"facts", 0, OPTION_FLAG, offsetof(struct doctor_options, facts), NULL,
     "every fact that is stored with results, and where it was read"},
    {"redact", 0, OPTION_FLAG, offsetof(struct doctor_options, redact), NULL,
     "without names, serial numbers and paths of this machine"},
    {"json", 0, OPTION_FLAG, offsetof(struct doctor_options, json), NULL, "machine-readable"},
    {.name = NULL},
};

enum { ADVICE_MAX = 24, ADVICE_BYTES = 400 };

/* What could be better, in the order of the report. */
struct advice {
    char text[ADVICE_MAX][ADVICE_BYTES];
    int count;
};

struct report {
    struct environment environment;
    int cpus_online, cpus_allowed;
    struct free_memory memory; /* as for the networks that ridge admits */
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

/* Value of a fact, "" when there is none. */
static const char *text_of(const struct report *r, const char *category, const char *key)
{
    const struct fact *fact = environment_find(&r->environment, category, key);
    return fact ? fact->value : "";
}

static double number_of(const struct report *r, const char *category, const char *key)
{
    return environment_number(&r->environment, category, key);
}

static const char *cpu_name(const struct report *r)
{
    return text_of(r, "cpu", "model_name");
}

static bool is_virtual(const struct report *r)
{
    return strcmp(text_of(r, "container", "virtual_machine"), "yes") == 0;
}

static void check_clock(struct report *r)
{
    const char *governor = text_of(r, "cpu_state", "governors");
    const char *source = text_of(r, "cpu_state", "clock_source");
    if (governor[0] && strcmp(governor, "performance") != 0)
        advise(&r->advice,
               "the clock governor is \"%s\": timings will wander; sudo cpupower frequency-set -g "
               "performance",
               governor);
    if (strcmp(source, "hpet") == 0 || strcmp(source, "acpi_pm") == 0)
        advise(&r->advice,
               "the clock source is %s, whose reading takes a microsecond: echo tsc | sudo tee "
               "/sys/devices/system/clocksource/clocksource0/current_clocksource",
               source);
    if (number_of(r, "kernel", "load") > 0.5 * r->cpus_allowed)
        advise(&r->advice,
               "other programs are running (load %.1f on %d CPUs): timings will be disturbed; end "
               "them or wait",
               number_of(r, "kernel", "load"), r->cpus_allowed);
}

static void check_memory(struct report *r)
{
    if (strcmp(text_of(r, "memory", "thp"), "never") == 0)
        advise(&r->advice, "huge pages are off, which costs large layers up to a tenth; echo "
                           "madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
    if (strcmp(text_of(r, "memory", "numa_balancing"), "1") == 0)
        advise(&r->advice, "the kernel moves pages between memory nodes while ridge measures: sudo "
                           "sysctl kernel.numa_balancing=0");
    if (r->memory.bytes < 2e9)
        advise(&r->advice, "only %.1f GB of memory are free %s: bert_large needs 2",
               r->memory.bytes * 1e-9, r->memory.where);
}

static void check_permissions(struct report *r)
{
    double paranoid = number_of(r, "permission", "perf_event_paranoid");
    bool capable = strcmp(text_of(r, "permission", "cap_perfmon"), "yes") == 0 ||
                   strcmp(text_of(r, "permission", "cap_sys_admin"), "yes") == 0;
    const struct fact *rapl = environment_find(&r->environment, "permission", "rapl");
    if (paranoid > 2 && !capable)
        advise(&r->advice,
               "the kernel forbids counters (kernel.perf_event_paranoid=%.0f): sudo "
               "sysctl kernel.perf_event_paranoid=1",
               paranoid);
    else if (paranoid > 0 && !capable)
        advise(&r->advice,
               "counters of the memory controllers are not allowed "
               "(kernel.perf_event_paranoid=%.0f): sudo sysctl kernel.perf_event_paranoid=0",
               paranoid);
    if (rapl && rapl->status == FACT_DENIED)
        advise(&r->advice, "the energy counters may be read by root only: sudo chmod -R a+r "
                           "/sys/class/powercap/intel-rapl*/energy_uj");
}

static void check_machine(struct report *r)
{
    double quota = number_of(r, "limit", "cpus_granted");
    if (quota < r->cpus_allowed)
        advise(&r->advice,
               "the control group grants %.1f of %d CPUs: threads will be throttled; use --threads "
               "%d, or raise cpu.max",
               quota, r->cpus_allowed, quota < 1 ? 1 : (int)quota);
    check_clock(r);
    check_memory(r);
    if (is_virtual(r))
        advise(&r->advice, "this is a virtual machine: other guests may disturb timings; compare "
                           "medians, and the FMA peak that `ridge run` prints beside them");
    check_permissions(r);
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
        bool below = profiler_find(info->name) || backend_find(info->name); /* said there */
        if (info->state != PLUGIN_LOADED && !below)
            advise(&r->advice, "%s is not used: %s", info->name, info->reason);
        const char *lacks =
            info->state == PLUGIN_LOADED ? strstr(info->version, " without ") : NULL;
        if (lacks)
            advise(&r->advice, "%s works%s: install it, or put its folder into LD_LIBRARY_PATH",
                   info->name, lacks);
    }
}

static void check_profilers(struct report *r)
{
    char reason[400];
    for (int k = 0; k < profiler_count(); k++)
        if (!profiler_at(k)->available(reason, sizeof(reason)))
            advise(&r->advice, "%s is not used: %s", profiler_at(k)->name, reason);
}

static bool backend_usable(const struct backend *backend, struct error *why)
{
    const struct backend *ready;
    struct launcher_command command;
    if (backend_ready(backend, &ready, why) != STATUS_OK)
        return false;
    if (backend->device && device_check(backend->device, why) != STATUS_OK)
        return error_context(why, "%s is not used", backend->name) == STATUS_OK;
    return !backend->launcher ||
           launcher_command_init(&command, backend, 1, NULL, why) == STATUS_OK;
}

static void check_backends(struct report *r)
{
    struct error why;
    for (int k = 0; k < backend_count(); k++)
        if (!backend_usable(backend_at(k), &why))
            advise(&r->advice, "%s", why.message);
    if (smpi_ready(&why) != STATUS_OK)
        advise(&r->advice, "no --simulate: %s", why.message);
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

static void check_devices(struct report *r)
{
    struct error why;
    for (int k = 0; accelerator_kind(k); k++)
        if (accelerator_count(accelerator_kind(k), &why) == 0)
            advise(&r->advice, "device %s is not used: %s", accelerator_kind(k), why.message);
}

static bool has(const struct report *r, const char *name)
{
    struct error why;
    if (accelerator_count(name, &why) >= 0)
        return accelerator_count(name, &why) > 0;
    for (int k = 0; k < ISA_COUNT; k++)
        if (strcmp(name, isa_name((enum isa)k)) == 0)
            return k <= (int)r->isa;
    if (backend_find(name))
        return backend_usable(backend_find(name), &why);
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

static void print_size(const char *title, double bytes)
{
    if (isnan(bytes))
        printf("  %-14s not known\n", title);
    else if (bytes >= 1 << 30)
        printf("  %-14s %.1f GiB\n", title, bytes / (1 << 30));
    else
        printf("  %-14s %.0f KiB\n", title, bytes / 1024);
}

static void print_known(const char *title, const char *value)
{
    printf("  %-14s %s\n", title, value[0] ? value : "not known");
}

static void print_free(const struct free_memory *memory)
{
    if (isfinite(memory->bytes))
        printf("  %-14s %.1f GiB %s\n", "of that free", memory->bytes / (1 << 30), memory->where);
    else
        print_known("of that free", "");
}

static void print_machine(const struct report *r)
{
    printf("machine\n");
    printf("  %-14s %s%s\n", "CPU", cpu_name(r)[0] ? cpu_name(r) : "not known",
           is_virtual(r) ? " (virtual machine)" : "");
    printf("  %-14s %s\n", "kernels up to", isa_name(r->isa));
    printf("  %-14s %d of %d, %s memory node(s)\n", "CPUs usable", r->cpus_allowed, r->cpus_online,
           text_of(r, "topology", "numa_nodes"));
    print_size("L1 data", number_of(r, "topology", "l1d"));
    print_size("L2", number_of(r, "topology", "l2"));
    print_size("L3", number_of(r, "topology", "l3"));
    print_size("memory", number_of(r, "memory", "total") * 1024);
    print_free(&r->memory);
    print_known("huge pages", text_of(r, "memory", "thp"));
    print_known("governor", text_of(r, "cpu_state", "governors"));
    printf("  %-14s %s %s %s\n", "system", text_of(r, "kernel", "system"),
           text_of(r, "kernel", "release"), text_of(r, "kernel", "machine"));
    printf("  %-14s %s, %d facts (--facts)\n", "environment", r->environment.hash,
           r->environment.fact_count);
}

static void print_cupti(void)
{
    int built, opened;
    cupti_session_versions(&built, &opened);
    if (opened)
        printf("  %-14s version %d, built for %d\n", "CUPTI", opened, built);
}

static void json_cupti(struct json *json)
{
    int built, opened;
    cupti_session_versions(&built, &opened);
    json_open(json, "cupti", '{');
    json_int(json, "built", built);
    json_int(json, "opened", opened);
    json_close(json);
}

/* Its library's version is said even where there is no device to use it on. */
static void print_backend(const struct backend *backend)
{
    char version[64];
    struct error why;
    backend_version(backend, version, sizeof(version));
    printf("  %-14s %s%s%s%s\n", backend->name,
           backend_usable(backend, &why) ? backend->summary : "absent, see below",
           version[0] ? " (version " : "", version, version[0] ? ")" : "");
}

static void print_text(const struct report *r)
{
    print_machine(r);
    printf("build\n  %-14s %s (%s, %s)\n  %-14s %s\n  %-14s %s, protobuf-c %s\n", "ridge",
           build_info.version, build_info.commit, build_info.config, "compiler",
           build_info.compiler, "libraries", text_of(r, "process", "libc"), protobuf_c_version());
    printf("plug-ins\n");
    for (int k = 0; k < plugin_info_count(); k++) {
        const struct plugin_info *info = plugin_info_at(k);
        printf("  %-14s %s\n", info->name,
               info->state == PLUGIN_LOADED ? info->version : "absent, see below");
    }
    accelerators_print();
    char reason[400];
    printf("profilers\n");
    for (int k = 0; k < profiler_count(); k++)
        printf("  %-14s %s\n", profiler_at(k)->name,
               profiler_at(k)->available(reason, sizeof(reason)) ? profiler_at(k)->summary
                                                                 : "absent, see below");
    print_cupti();
    printf("data\n  %-14s %s\n", "jpeg",
           jpeg_open(reason, sizeof(reason)) ? "folders of JPEG by libjpeg-turbo" : reason);
    printf("between ranks\n");
    for (int k = 0; k < backend_count(); k++)
        print_backend(backend_at(k));
    printf("tuner\n  %-14s %s%s\n", "cache", r->cache, !r->cache_exists ? " (not there yet)" : "");
    for (int k = 0; k < r->advice.count; k++)
        printf("%s  - %s\n", k ? "" : "advice\n", r->advice.text[k]);
    for (int k = 0; k < r->missing.count; k++)
        printf("%s  - %s\n", k ? "" : "missing\n", r->missing.text[k]);
    if (!r->missing.count)
        printf("All that is required is there.\n");
}

static void json_fact(struct json *json, const char *name, const char *value)
{
    json_text(json, name, value[0] ? value : NULL);
}

/* Bytes and counts; NAN becomes null. */
static void json_count(struct json *json, const char *name, double value)
{
    if (isnan(value))
        json_null(json, name);
    else
        json_int(json, name, (int64_t)value);
}

static void json_machine(struct json *json, const struct report *r)
{
    char system[512];
    snprintf(system, sizeof(system), "%s %s %s", text_of(r, "kernel", "system"),
             text_of(r, "kernel", "release"), text_of(r, "kernel", "machine"));
    json_open(json, "machine", '{');
    json_fact(json, "cpu", cpu_name(r));
    json_text(json, "isa", isa_name(r->isa));
    json_int(json, "cpus_online", r->cpus_online);
    json_int(json, "cpus_allowed", r->cpus_allowed);
    json_count(json, "numa_nodes", number_of(r, "topology", "numa_nodes"));
    json_number(json, "cpu_quota", number_of(r, "limit", "cpus_granted"));
    json_count(json, "l1d_bytes", number_of(r, "topology", "l1d"));
    json_count(json, "l2_bytes", number_of(r, "topology", "l2"));
    json_count(json, "l3_bytes", number_of(r, "topology", "l3"));
    json_count(json, "memory_bytes", number_of(r, "memory", "total") * 1024);
    json_count(json, "memory_available_bytes",
               isfinite(r->memory.bytes) ? r->memory.bytes : (double)NAN);
    json_text(json, "memory_available_where", r->memory.where);
    json_fact(json, "huge_pages", text_of(r, "memory", "thp"));
    json_fact(json, "governor", text_of(r, "cpu_state", "governors"));
    json_text(json, "system", system);
    json_bool(json, "hypervisor", is_virtual(r));
    json_text(json, "environment", r->environment.hash);
    json_text(json, "host", r->environment.host_label);
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
    json_fact(&json, "libc", text_of(r, "process", "libc"));
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
    accelerators_json(&json);
    json_open(&json, "profilers", '[');
    for (int k = 0; k < profiler_count(); k++) {
        char reason[400];
        bool available = profiler_at(k)->available(reason, sizeof(reason));
        json_open(&json, NULL, '{');
        json_text(&json, "name", profiler_at(k)->name);
        json_bool(&json, "available", available);
        json_text(&json, "reason", available ? NULL : reason);
        json_close(&json);
    }
    json_close(&json);
    json_cupti(&json);
    json_text(&json, "tuner_cache", r->cache);
    json_advice(&json, "advice", &r->advice);
    json_advice(&json, "missing", &r->missing);
    json_close(&json);
}

static void examine(struct report *r, const struct doctor_options *o)
{
    r->cpus_online = (int)sysconf(_SC_NPROCESSORS_ONLN);
    r->cpus_allowed = cpus_allowed();
    plugins_load(NULL);
    r->memory = free_memory_find("");
    check_machine(r);
    check_build(r);
    check_profilers(r);
    check_backends(r);
    check_cache(r);
    check_devices(r);
    check_required(r, o->require);
    if (o->json)
        print_json(r);
    else
        print_text(r);
}

static int doctor_main(int word_count, char **words, const void *values)
{
    const struct doctor_options *o = values;
    if (word_count) {
        fprintf(stderr, "ridge doctor: takes no word, got \"%s\"\n", words[0]);
        return EXIT_USAGE;
    }
    struct report r = {.isa = isa_detect()};
    struct arena arena = {0};
    struct error err;
    if (environment_probe(&r.environment, &arena, o->redact, &err) != STATUS_OK) {
        arena_release(&arena);
        return command_fail(&err);
    }
    if (!o->facts)
        examine(&r, o);
    else if (o->json)
        environment_print_json(&r.environment);
    else
        environment_print(&r.environment);
    arena_release(&arena);
    return r.missing.count ? EXIT_MISSING : EXIT_FINE;
}

REGISTER(command, doctor) = {
    .name = "doctor",
    .summary = "say what this machine and this build can do",
    .usage = "[--facts] [--redact] [--require LIST] [--json]",
    .help = "Exits with 5 when something that --require names is not available.",
    .options = options,
    .values_size = sizeof(struct doctor_options),
    .main = doctor_main,
};
