/* SPDX-License-Identifier: Apache-2.0
 *
 * What the machine is, and how CPU and memory are set. Firmware facts need no root except serial
 * numbers; settings of CPU 0 stand for all, `governors` says whether that is true. */
#include "base/registry.h"
#include "harness/machine/facts.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/machine/procfs.h"
#include "harness/machine/topology.h"

#define DMI     "/sys/class/dmi/id/"
#define CPUS    "/sys/devices/system/cpu/"
#define FREQ    CPUS "cpu0/cpufreq/"
#define CPUINFO "/proc/cpuinfo"
#define MEMINFO "/proc/meminfo"
#define THP     "/sys/kernel/mm/transparent_hugepage/"
#define VM      "/proc/sys/vm/"

static const struct fact_source sources[] = {
    {"identity", "system_vendor", DMI "sys_vendor", FACT_LINE, NULL, NULL, FACT_IDENTITY, false},
    {"identity", "product", DMI "product_name", FACT_LINE, NULL, NULL, FACT_IDENTITY, false},
    {"identity", "board_vendor", DMI "board_vendor", FACT_LINE, NULL, NULL, FACT_IDENTITY, true},
    {"identity", "board", DMI "board_name", FACT_LINE, NULL, NULL, FACT_IDENTITY, true},
    {"identity", "bios_vendor", DMI "bios_vendor", FACT_LINE, NULL, NULL, FACT_IDENTITY, false},
    {"identity", "bios_version", DMI "bios_version", FACT_LINE, NULL, NULL, FACT_IDENTITY, false},
    {"identity", "bios_date", DMI "bios_date", FACT_LINE, NULL, NULL, FACT_IDENTITY, false},
    {"identity", "serial", DMI "product_serial", FACT_LINE, NULL, NULL, FACT_VOLATILE, false},
    {"identity", "board_serial", DMI "board_serial", FACT_LINE, NULL, NULL, FACT_VOLATILE, true},
    {"identity", "uuid", DMI "product_uuid", FACT_LINE, NULL, NULL, FACT_VOLATILE, false},
    {"identity", "hostname", "/proc/sys/kernel/hostname", FACT_LINE, NULL, NULL, FACT_VOLATILE,
     false},
    {"identity", "device_tree_model", "/proc/device-tree/model", FACT_LINE, NULL, NULL,
     FACT_IDENTITY, true},

    {"cpu", "vendor", CPUINFO, FACT_KEY, "vendor_id", NULL, FACT_IDENTITY, true},
    {"cpu", "model_name", CPUINFO, FACT_KEY, "model name", NULL, FACT_IDENTITY, true},
    {"cpu", "family", CPUINFO, FACT_KEY, "cpu family", NULL, FACT_IDENTITY, true},
    {"cpu", "model", CPUINFO, FACT_KEY, "model\t", NULL, FACT_IDENTITY, true},
    {"cpu", "stepping", CPUINFO, FACT_KEY, "stepping", NULL, FACT_IDENTITY, true},
    {"cpu", "microcode", CPUINFO, FACT_KEY, "microcode", NULL, FACT_IDENTITY, true},
    {"cpu", "flags", CPUINFO, FACT_KEY, "flags", NULL, FACT_IDENTITY, true},
    {"cpu", "address_sizes", CPUINFO, FACT_KEY, "address sizes", NULL, FACT_IDENTITY, true},
    {"cpu", "features", CPUINFO, FACT_KEY, "Features", NULL, FACT_IDENTITY, true},
    {"cpu", "implementer", CPUINFO, FACT_KEY, "CPU implementer", NULL, FACT_IDENTITY, true},
    {"cpu", "part", CPUINFO, FACT_KEY, "CPU part", NULL, FACT_IDENTITY, true},
    {"cpu", "variant", CPUINFO, FACT_KEY, "CPU variant", NULL, FACT_IDENTITY, true},
    {"cpu", "revision", CPUINFO, FACT_KEY, "CPU revision", NULL, FACT_IDENTITY, true},
    {"cpu", "clock_now", CPUINFO, FACT_KEY, "cpu MHz", "MHz", FACT_VOLATILE, true},

    {"cpu_state", "driver", FREQ "scaling_driver", FACT_LINE, NULL, NULL, FACT_TUNING, false},
    {"cpu_state", "governor", FREQ "scaling_governor", FACT_LINE, NULL, NULL, FACT_TUNING, false},
    {"cpu_state", "energy_preference", FREQ "energy_performance_preference", FACT_LINE, NULL, NULL,
     FACT_TUNING, false},
    {"cpu_state", "hardware_min", FREQ "cpuinfo_min_freq", FACT_LINE, NULL, "kHz", FACT_TUNING,
     false},
    {"cpu_state", "hardware_max", FREQ "cpuinfo_max_freq", FACT_LINE, NULL, "kHz", FACT_TUNING,
     false},
    {"cpu_state", "limit_min", FREQ "scaling_min_freq", FACT_LINE, NULL, "kHz", FACT_TUNING, false},
    {"cpu_state", "limit_max", FREQ "scaling_max_freq", FACT_LINE, NULL, "kHz", FACT_TUNING, false},
    {"cpu_state", "clock_now", FREQ "scaling_cur_freq", FACT_LINE, NULL, "kHz", FACT_VOLATILE,
     true},
    {"cpu_state", "boost", CPUS "cpufreq/boost", FACT_LINE, NULL, NULL, FACT_TUNING, true},
    {"cpu_state", "no_turbo", CPUS "intel_pstate/no_turbo", FACT_LINE, NULL, NULL, FACT_TUNING,
     true},
    {"cpu_state", "intel_pstate", CPUS "intel_pstate/status", FACT_LINE, NULL, NULL, FACT_TUNING,
     true},
    {"cpu_state", "amd_pstate", CPUS "amd_pstate/status", FACT_LINE, NULL, NULL, FACT_TUNING, true},
    {"cpu_state", "idle_driver", CPUS "cpuidle/current_driver", FACT_LINE, NULL, NULL, FACT_TUNING,
     false},
    {"cpu_state", "idle_governor", CPUS "cpuidle/current_governor", FACT_LINE, NULL, NULL,
     FACT_TUNING, true},
    {"cpu_state", "isolated", CPUS "isolated", FACT_LINE, NULL, NULL, FACT_TUNING, false},
    {"cpu_state", "nohz_full", CPUS "nohz_full", FACT_LINE, NULL, NULL, FACT_TUNING, true},
    {"cpu_state", "smt", CPUS "smt/control", FACT_LINE, NULL, NULL, FACT_TUNING, false},
    {"cpu_state", "online", CPUS "online", FACT_LINE, NULL, NULL, FACT_TUNING, false},
    {"cpu_state", "clock_source",
     "/sys/devices/system/clocksource/clocksource0/current_clocksource", FACT_LINE, NULL, NULL,
     FACT_TUNING, false},

    {"memory", "total", MEMINFO, FACT_KEY, "MemTotal", "KiB", FACT_VOLATILE, false},
    {"memory", "available", MEMINFO, FACT_KEY, "MemAvailable", "KiB", FACT_VOLATILE, false},
    {"memory", "swap_total", MEMINFO, FACT_KEY, "SwapTotal", "KiB", FACT_TUNING, false},
    {"memory", "swap_free", MEMINFO, FACT_KEY, "SwapFree", "KiB", FACT_VOLATILE, true},
    {"memory", "huge_pages_total", MEMINFO, FACT_KEY, "HugePages_Total", NULL, FACT_TUNING, false},
    {"memory", "huge_pages_free", MEMINFO, FACT_KEY, "HugePages_Free", NULL, FACT_VOLATILE, true},
    {"memory", "huge_page_size", MEMINFO, FACT_KEY, "Hugepagesize", "KiB", FACT_TUNING, false},
    {"memory", "thp", THP "enabled", FACT_CHOICE, NULL, NULL, FACT_TUNING, false},
    {"memory", "thp_defrag", THP "defrag", FACT_CHOICE, NULL, NULL, FACT_TUNING, false},
    {"memory", "thp_shmem", THP "shmem_enabled", FACT_CHOICE, NULL, NULL, FACT_TUNING, true},
    {"memory", "khugepaged_defrag", THP "khugepaged/defrag", FACT_LINE, NULL, NULL, FACT_TUNING,
     true},
    {"memory", "numa_balancing", "/proc/sys/kernel/numa_balancing", FACT_LINE, NULL, NULL,
     FACT_TUNING, true},
    {"memory", "swappiness", VM "swappiness", FACT_LINE, NULL, NULL, FACT_TUNING, false},
    {"memory", "overcommit", VM "overcommit_memory", FACT_LINE, NULL, NULL, FACT_TUNING, false},
    {"memory", "zone_reclaim", VM "zone_reclaim_mode", FACT_LINE, NULL, NULL, FACT_TUNING, true},
    {"memory", "ksm", "/sys/kernel/mm/ksm/run", FACT_LINE, NULL, NULL, FACT_TUNING, true},
};

/* Entries of a folder below the root, sorted; free() each and the list. */
static int list_folder(const struct facts *facts, const char *folder, struct dirent ***entries)
{
    char path[512];
    snprintf(path, sizeof(path), "%s%s", facts->root, folder);
    *entries = NULL;
    return scandir(path, entries, NULL, alphasort);
}

static void read_mitigations(struct facts *facts)
{
    struct dirent **entries;
    int count = list_folder(facts, CPUS "vulnerabilities", &entries);
    for (int k = 0; k < count; k++) {
        char path[512], value[512];
        snprintf(path, sizeof(path), CPUS "vulnerabilities/%.200s", entries[k]->d_name);
        struct fact fact = {.category = "mitigation",
                            .key = entries[k]->d_name,
                            .source = path,
                            .class = FACT_TUNING,
                            .value = value};
        fact.status = procfs_line(facts->root, path, value, sizeof(value));
        if (entries[k]->d_name[0] != '.')
            facts_add(facts, fact);
        free(entries[k]);
    }
    free(entries);
}

/* Every governor that some CPU has: one word where all agree. A CPU that is offline has none. */
static void read_governors(struct facts *facts)
{
    char all[256] = "", path[128], word[64];
    for (int cpu = 0; cpu < 4096; cpu++) {
        snprintf(path, sizeof(path), CPUS "cpu%d/cpufreq/scaling_governor", cpu);
        if (procfs_line(facts->root, path, word, sizeof(word)) != FACT_OK)
            continue;
        size_t length = strlen(all);
        if (!strstr(all, word) && length + strlen(word) + 2 < sizeof(all))
            snprintf(all + length, sizeof(all) - length, "%s%s", length ? " " : "", word);
    }
    if (all[0])
        facts_text(facts,
                   (struct fact){.category = "cpu_state",
                                 .key = "governors",
                                 .source = CPUS "cpu*/cpufreq/scaling_governor",
                                 .class = FACT_TUNING},
                   "%s", all);
}

/* "POLL C1 C6(off)": what CPU 0 may do when idle. */
static void read_idle_states(struct facts *facts)
{
    char all[256] = "", path[128], name[64], off[16];
    for (int state = 0; state < 16; state++) {
        snprintf(path, sizeof(path), CPUS "cpu0/cpuidle/state%d/name", state);
        if (procfs_line(facts->root, path, name, sizeof(name)) != FACT_OK)
            break;
        snprintf(path, sizeof(path), CPUS "cpu0/cpuidle/state%d/disable", state);
        procfs_line(facts->root, path, off, sizeof(off));
        size_t length = strlen(all);
        snprintf(all + length, sizeof(all) - length, "%s%s%s", length ? " " : "", name,
                 strcmp(off, "1") == 0 ? "(off)" : "");
    }
    if (all[0])
        facts_text(facts,
                   (struct fact){.category = "cpu_state",
                                 .key = "idle_states",
                                 .source = CPUS "cpu0/cpuidle",
                                 .class = FACT_TUNING},
                   "%s", all);
}

/* Whole GiB: the exact size changes with the kernel's own needs. */
static void read_memory_size(struct facts *facts)
{
    char text[64];
    if (procfs_key(facts->root, MEMINFO, "MemTotal", text, sizeof(text)) != FACT_OK)
        return;
    facts_text(facts,
               (struct fact){.category = "memory",
                             .key = "size",
                             .unit = "GiB",
                             .source = MEMINFO,
                             .class = FACT_IDENTITY},
               "%.0f", strtod(text, NULL) / (1 << 20));
}

/* Cores of servers, as lscpu calls them. */
static const struct arm_core {
    const char *implementer, *part, *name;
} arm_cores[] = {
    {"0x41", "0xd07", "Arm Cortex-A57"},
    {"0x41", "0xd08", "Arm Cortex-A72"},
    {"0x41", "0xd0c", "Arm Neoverse-N1"},
    {"0x41", "0xd40", "Arm Neoverse-V1"},
    {"0x41", "0xd49", "Arm Neoverse-N2"},
    {"0x41", "0xd4a", "Arm Neoverse-E1"},
    {"0x41", "0xd4f", "Arm Neoverse-V2"},
    {"0x41", "0xd83", "Arm Neoverse-V3AE"},
    {"0x41", "0xd84", "Arm Neoverse-V3"},
    {"0x41", "0xd8e", "Arm Neoverse-N3"},
    {"0x43", "0x0af", "Cavium ThunderX2"},
    {"0x46", "0x001", "Fujitsu A64FX"},
    {"0x48", "0xd01", "HiSilicon TaiShan-v110"},
    {"0x4e", "0x004", "NVIDIA Carmel"},
    {"0x6d", "0xd49", "Microsoft Azure-Cobalt-100"},
    {"0xc0", "0xac3", "Ampere-1"},
    {"0xc0", "0xac4", "Ampere-1a"},
};

/* Kernels for Arm print numbers where those for x86 print a name. */
static void read_arm_name(struct facts *facts)
{
    char implementer[32], part[32], name[64];
    if (procfs_key(facts->root, CPUINFO, "model name", name, sizeof(name)) == FACT_OK ||
        procfs_key(facts->root, CPUINFO, "CPU part", part, sizeof(part)) != FACT_OK ||
        procfs_key(facts->root, CPUINFO, "CPU implementer", implementer, sizeof(implementer)) !=
            FACT_OK)
        return;
    snprintf(name, sizeof(name), "Arm (implementer %.10s, part %.10s)", implementer, part);
    for (int k = 0; k < ARRAY_COUNT(arm_cores); k++)
        if (strcmp(arm_cores[k].implementer, implementer) == 0 &&
            strcmp(arm_cores[k].part, part) == 0)
            snprintf(name, sizeof(name), "%s", arm_cores[k].name);
    facts_text(
        facts,
        (struct fact){
            .category = "cpu", .key = "model_name", .source = CPUINFO, .class = FACT_IDENTITY},
        "%s", name);
}

/* Only x86 has a flag for it: elsewhere its absence proves nothing. */
static void read_hypervisor(struct facts *facts)
{
    char flags[8192], type[64];
    struct fact fact = {.category = "container",
                        .key = "virtual_machine",
                        .source = CPUINFO,
                        .class = FACT_IDENTITY};
    bool xen = procfs_line(facts->root, "/sys/hypervisor/type", type, sizeof(type)) == FACT_OK;
    fact.status = procfs_key(facts->root, CPUINFO, "flags", flags, sizeof(flags));
    if (xen || fact.status == FACT_OK)
        facts_text(facts, fact, "%s", xen || strstr(flags, " hypervisor") ? "yes" : "no");
    else
        facts_add(facts, fact);
}

void facts_machine(struct facts *facts)
{
    facts_read(facts, sources, ARRAY_COUNT(sources));
    read_mitigations(facts);
    read_governors(facts);
    read_idle_states(facts);
    read_memory_size(facts);
    read_arm_name(facts);
    read_hypervisor(facts);
}

static void add_absent(struct facts *facts, struct fact fact)
{
    fact.status = FACT_ABSENT;
    facts_add(facts, fact);
}

void facts_topology(struct facts *facts)
{
    struct topology *topology;
    struct topology_counts n;
    if (topology_open(&topology, NULL) != STATUS_OK) {
        facts_add(facts, (struct fact){.category = "topology",
                                       .key = "cpus",
                                       .source = "hwloc",
                                       .class = FACT_IDENTITY,
                                       .status = FACT_ABSENT});
        return;
    }
    topology_count(topology, &n);
    static const char *const bytes[] = {"l1d", "l2", "l3"};
    static const char *const counts[] = {"l1d_count", "l2_count", "l3_count"};
    struct fact fact = {.category = "topology", .source = "hwloc", .class = FACT_IDENTITY};
    const struct {
        const char *key;
        int value;
    } simple[] = {{"packages", n.packages},
                  {"cores", n.cores},
                  {"cpus", n.cpus},
                  {"numa_nodes", n.numa_nodes}};
    for (int k = 0; k < ARRAY_COUNT(simple); k++) {
        fact.key = simple[k].key;
        facts_number(facts, fact, simple[k].value);
    }
    for (int level = 1; level <= CACHE_LEVELS; level++) {
        fact.key = counts[level - 1];
        fact.unit = NULL;
        facts_number(facts, fact, n.caches[level - 1]);
        fact.key = bytes[level - 1];
        fact.unit = "B";
        int64_t size = topology_cache_bytes(topology, level, topology_first_cpu(topology));
        if (size > 0)
            facts_number(facts, fact, (double)size);
        else /* there is none, or the firmware does not tell */
            add_absent(facts, fact);
    }
    topology_close(topology);
}
