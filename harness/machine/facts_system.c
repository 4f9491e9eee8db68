/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernel, limits of the control group, container, sensors, permissions. Permissions are no part of
 * the hash: they say what can be known, not how fast the machine is. */
#include "base/registry.h"
#include "harness/machine/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "harness/machine/procfs.h"

#define KERNEL  "/proc/sys/kernel/"
#define RAPL    "/sys/class/powercap/intel-rapl:0/energy_uj"
#define STATUS_ "/proc/self/status"

static const struct fact_source sources[] = {
    {"kernel", "system", KERNEL "ostype", FACT_LINE, NULL, NULL, FACT_IDENTITY, false},
    {"kernel", "release", KERNEL "osrelease", FACT_LINE, NULL, NULL, FACT_IDENTITY, false},
    {"kernel", "version", KERNEL "version", FACT_LINE, NULL, NULL, FACT_IDENTITY, false},
    {"kernel", "distribution", "/etc/os-release", FACT_KEY, "PRETTY_NAME", NULL, FACT_IDENTITY,
     false},
    {"kernel", "command_line", "/proc/cmdline", FACT_LINE, NULL, NULL, FACT_TUNING, false},
    {"kernel", "tainted", KERNEL "tainted", FACT_LINE, NULL, NULL, FACT_VOLATILE, true},
    {"kernel", "address_randomisation", KERNEL "randomize_va_space", FACT_LINE, NULL, NULL,
     FACT_TUNING, false},
    {"kernel", "nmi_watchdog", KERNEL "nmi_watchdog", FACT_LINE, NULL, NULL, FACT_TUNING, true},
    {"kernel", "timer_migration", KERNEL "timer_migration", FACT_LINE, NULL, NULL, FACT_TUNING,
     true},
    {"kernel", "sched_autogroup", KERNEL "sched_autogroup_enabled", FACT_LINE, NULL, NULL,
     FACT_TUNING, true},
    {"kernel", "sched_rt_runtime", KERNEL "sched_rt_runtime_us", FACT_LINE, NULL, "us", FACT_TUNING,
     true},
    {"kernel", "workqueue_cpumask", "/sys/devices/virtual/workqueue/cpumask", FACT_LINE, NULL, NULL,
     FACT_TUNING, true},
    {"kernel", "default_irq_affinity", "/proc/irq/default_smp_affinity", FACT_LINE, NULL, NULL,
     FACT_TUNING, true},
    {"kernel", "uptime", "/proc/uptime", FACT_LINE, NULL, NULL, FACT_VOLATILE, false},
    {"kernel", "load", "/proc/loadavg", FACT_LINE, NULL, NULL, FACT_VOLATILE, false},
    {"kernel", "memory_pressure", "/proc/pressure/memory", FACT_LINE, NULL, NULL, FACT_VOLATILE,
     true},
    {"kernel", "cpu_pressure", "/proc/pressure/cpu", FACT_LINE, NULL, NULL, FACT_VOLATILE, true},

    {"container", "seccomp", STATUS_, FACT_KEY, "Seccomp", NULL, FACT_TUNING, true},
    {"container", "no_new_privileges", STATUS_, FACT_KEY, "NoNewPrivs", NULL, FACT_VOLATILE, true},
    {"container", "speculation_store_bypass", STATUS_, FACT_KEY, "Speculation_Store_Bypass", NULL,
     FACT_TUNING, true},
    {"container", "hypervisor", "/sys/hypervisor/type", FACT_LINE, NULL, NULL, FACT_IDENTITY, true},

    {"permission", "perf_event_paranoid", KERNEL "perf_event_paranoid", FACT_LINE, NULL, NULL,
     FACT_VOLATILE, false},
    {"permission", "kptr_restrict", KERNEL "kptr_restrict", FACT_LINE, NULL, NULL, FACT_VOLATILE,
     true},
    {"permission", "capabilities", STATUS_, FACT_KEY, "CapEff", NULL, FACT_VOLATILE, false},
    {"permission", "nvidia_profiling_admin_only", "/proc/driver/nvidia/params", FACT_KEY,
     "RmProfilingAdminOnly", NULL, FACT_VOLATILE, true},
};

/* ---- control group ---- */

static const struct {
    const char *key, *file;
    enum fact_class class;
} group_files[] = {
    {"cpu_max", "cpu.max", FACT_TUNING},
    {"cpu_weight", "cpu.weight", FACT_TUNING},
    {"cpus", "cpuset.cpus.effective", FACT_TUNING},
    {"memory_nodes", "cpuset.mems.effective", FACT_TUNING},
    {"memory_max", "memory.max", FACT_TUNING},
    {"memory_high", "memory.high", FACT_TUNING},
    {"memory_swap_max", "memory.swap.max", FACT_TUNING},
    {"memory_current", "memory.current", FACT_VOLATILE},
    {"processes_max", "pids.max", FACT_VOLATILE},
    {"throttled", "cpu.stat", FACT_VOLATILE},
};

static void read_group(struct facts *facts)
{
    char group[1024], path[1200], value[256];
    procfs_cgroup(facts->root, group, sizeof(group));
    facts_text(facts,
               (struct fact){.category = "limit",
                             .key = "control_group",
                             .class = FACT_VOLATILE,
                             .source = "/proc/self/cgroup"},
               "%s", group[0] ? group : "/");
    for (int k = 0; k < ARRAY_COUNT(group_files); k++) {
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", group, group_files[k].file);
        bool statistics = strcmp(group_files[k].file, "cpu.stat") == 0;
        enum fact_status status =
            statistics ? procfs_key(facts->root, path, "nr_throttled", value, sizeof(value))
                       : procfs_line(facts->root, path, value, sizeof(value));
        /* At the top there is no limit, hence no file. */
        if (status != FACT_ABSENT)
            facts_add(facts, (struct fact){"limit", group_files[k].key, value, "", path,
                                           group_files[k].class, status});
    }
    double quota = procfs_cpu_quota(facts->root);
    if (quota > 0)
        facts_number(facts,
                     (struct fact){.category = "limit",
                                   .key = "cpus_granted",
                                   .unit = "CPU",
                                   .class = FACT_TUNING,
                                   .source = "cpu.max"},
                     quota);
}

static bool exists(const struct facts *facts, const char *path)
{
    char whole[1024];
    snprintf(whole, sizeof(whole), "%s%s", facts->root, path);
    return access(whole, F_OK) == 0;
}

/* Which container runtime, by the marks that each leaves; "none seen" is no proof of none. */
static void read_container(struct facts *facts)
{
    static const struct {
        const char *path, *name;
    } marks[] = {{"/.dockerenv", "docker"},
                 {"/run/.containerenv", "podman"},
                 {"/.singularity.d", "apptainer"},
                 {"/run/systemd/container", "systemd"},
                 {"/var/run/secrets/kubernetes.io", "kubernetes"}};
    struct fact fact = {.category = "container",
                        .key = "runtime",
                        .class = FACT_TUNING,
                        .source = "marks of runtimes in the file system"};
    const char *name = "none seen";
    char group[1024];
    procfs_cgroup(facts->root, group, sizeof(group));
    static const char *const words[] = {"docker", "kubepods", "lxc", "libpod"};
    for (int k = 0; k < ARRAY_COUNT(words); k++)
        name = strstr(group, words[k]) ? words[k] : name;
    for (int k = 0; k < ARRAY_COUNT(marks); k++)
        if (exists(facts, marks[k].path))
            name = marks[k].name;
    facts_text(facts, fact, "%s", name);
}

/* ---- sensors ---- */

static void read_sensors(struct facts *facts)
{
    char path[128], type[64], value[64], key[96];
    for (int zone = 0; zone < 32; zone++) {
        snprintf(path, sizeof(path), "/sys/class/thermal/thermal_zone%d/type", zone);
        if (procfs_line(facts->root, path, type, sizeof(type)) != FACT_OK)
            break;
        snprintf(path, sizeof(path), "/sys/class/thermal/thermal_zone%d/temp", zone);
        snprintf(key, sizeof(key), "%s_%d", type, zone);
        enum fact_status status = procfs_line(facts->root, path, value, sizeof(value));
        facts_add(facts, (struct fact){"sensor", key, value, "mC", path, FACT_VOLATILE, status});
    }
    for (int chip = 0; chip < 32; chip++) {
        snprintf(path, sizeof(path), "/sys/class/hwmon/hwmon%d/name", chip);
        if (procfs_line(facts->root, path, type, sizeof(type)) != FACT_OK)
            continue;
        snprintf(path, sizeof(path), "/sys/class/hwmon/hwmon%d/temp1_input", chip);
        snprintf(key, sizeof(key), "hwmon_%s_%d", type, chip);
        enum fact_status status = procfs_line(facts->root, path, value, sizeof(value));
        if (status == FACT_OK)
            facts_add(facts,
                      (struct fact){"sensor", key, value, "mC", path, FACT_VOLATILE, status});
    }
}

/* ---- permissions ---- */

/* Whether a capability is among the effective ones: bit 38 is CAP_PERFMON, 21 CAP_SYS_ADMIN. */
static void read_capability(struct facts *facts, const char *key, int bit)
{
    char text[64];
    if (procfs_key(facts->root, STATUS_, "CapEff", text, sizeof(text)) != FACT_OK)
        return;
    bool has = strtoull(text, NULL, 16) >> bit & 1;
    facts_text(facts,
               (struct fact){
                   .category = "permission", .key = key, .source = STATUS_, .class = FACT_VOLATILE},
               "%s", has ? "yes" : "no");
}

static void read_readable(struct facts *facts, const char *key, const char *path)
{
    char whole[1024];
    snprintf(whole, sizeof(whole), "%s%s", facts->root, path);
    struct fact fact = {.category = "permission",
                        .key = key,
                        .source = path,
                        .value = "readable",
                        .class = FACT_VOLATILE};
    int file = open(whole, O_RDONLY | O_CLOEXEC);
    fact.status = file >= 0                           ? FACT_OK
                  : errno == EACCES || errno == EPERM ? FACT_DENIED
                                                      : FACT_ABSENT;
    if (file >= 0)
        close(file);
    facts_add(facts, fact);
}

void facts_system(struct facts *facts)
{
    struct utsname name;
    facts_read(facts, sources, ARRAY_COUNT(sources));
    if (uname(&name) == 0)
        facts_text(facts,
                   (struct fact){.category = "kernel",
                                 .key = "machine",
                                 .source = "uname()",
                                 .class = FACT_IDENTITY},
                   "%s", name.machine);
    read_group(facts);
    read_container(facts);
    read_sensors(facts);
    read_capability(facts, "cap_perfmon", 38);
    read_capability(facts, "cap_sys_admin", 21);
    read_readable(facts, "rapl", RAPL);
    read_readable(facts, "msr", "/dev/cpu/0/msr");
    read_readable(facts, "dmi_table", "/sys/firmware/dmi/tables/DMI");
}
