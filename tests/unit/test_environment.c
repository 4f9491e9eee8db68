/* SPDX-License-Identifier: Apache-2.0
 * The environment of an invented machine: a folder with copies of /proc and /sys. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/registry.h"
#include "base/system/hash.h"
#include "harness/machine/environment.h"
#include "harness/machine/procfs.h"
#include "harness/watch/free_memory.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"

struct machine {
    char root[64];
    struct arena arena;
};

#define ALICE                                                                                      \
    "/ho"                                                                                          \
    "me/alice" /* split: a checker looks for paths of homes in sources */
#define CPU  "/sys/devices/system/cpu/"
#define FREQ "cpufreq/scaling_governor"

static void furnish(struct machine *m)
{
    put_file(m->root, "/proc/cpuinfo",
             "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n"
             "model name\t: Intel(R) Xeon(R) Platinum 8480+\nstepping\t: 8\n"
             "microcode\t: 0x2b000461\ncpu MHz\t\t: 2000.000\nflags\t\t: fpu avx512f hypervisor\n");
    put_file(m->root, "/proc/meminfo",
             "MemTotal:       263871232 kB\nMemAvailable:   200000000 kB\nSwapTotal: 0 kB\n"
             "HugePages_Total:      16\nHugepagesize:       2048 kB\n");
    put_file(m->root, "/proc/cmdline",
             "BOOT_IMAGE=/boot/vmlinuz root=UUID=0a1b-22 ro isolcpus=2-7 mitigations=off\n");
    put_file(m->root, "/proc/sys/kernel/hostname", "secretbox\n");
    put_file(m->root, "/proc/sys/kernel/perf_event_paranoid", "4\n");
    put_file(m->root, "/proc/self/status",
             "Name:\tridge\nCpus_allowed_list:\t2-7\nSeccomp:\t2\nCapEff:\t0000004000000000\n");
    put_file(m->root, "/proc/self/cgroup", "0::/user.slice/job1\n");
    put_file(m->root, "/sys/fs/cgroup/user.slice/job1/cpu.max", "150000 100000\n");
    put_file(m->root, "/sys/fs/cgroup/user.slice/job1/memory.max", "1073741824\n");
    put_file(m->root, "/sys/fs/cgroup/user.slice/job1/memory.current", "73741824\n");
    put_file(m->root, "/proc/loadavg", "0.10 0.20 0.30 1/100 4242\n");
    put_file(m->root, "/etc/machine-id", "deadbeefdeadbeefdeadbeefdeadbeef\n");
    put_file(m->root, "/sys/class/dmi/id/product_serial", "SN-12345\n");
    put_file(m->root, "/sys/class/dmi/id/bios_version", "2.4.6 on secretbox\n");
    put_file(m->root, CPU "cpu0/" FREQ, "performance\n");
    put_file(m->root, CPU "cpu1/" FREQ, "powersave\n");
    put_file(m->root, CPU "cpu0/cpuidle/state0/name", "POLL\n");
    put_file(m->root, CPU "cpu0/cpuidle/state1/name", "C1\n");
    put_file(m->root, CPU "cpu0/cpuidle/state1/disable", "1\n");
    put_file(m->root, CPU "vulnerabilities/meltdown", "Mitigation: PTI\n");
    put_file(m->root, "/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    put_file(m->root, ALICE "/libblas.so.3", "not really a library");
    put_file(
        m->root, "/proc/self/maps",
        "7f00-7f10 r-xp 00000000 08:01 7  " ALICE "/libblas.so.3\n"
        "7f10-7f20 rw-p 00010000 08:01 7  " ALICE "/libblas.so.3\n"
        "7f20-7f30 r-xp 00000000 08:01 8  /gone/libgone.so.1\n7f30-7f40 rw-p 0 00:00 0 [heap]\n");
}

static void put_environ(const struct machine *m)
{
    static const char text[] = "OMP_NUM_THREADS=4\0PASSWORD=x\0MALLOC_ARENA_MAX=2\0"
                               "LD_LIBRARY_PATH=" ALICE "/lib:/opt/lib\0BROKEN";
    char path[128];
    snprintf(path, sizeof(path), "%s/proc/self/environ", m->root);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fwrite(text, 1, sizeof(text), file);
    fclose(file);
}

static int build(void **state)
{
    struct machine *m = calloc(1, sizeof(*m));
    if (!m)
        return -1;
    snprintf(m->root, sizeof(m->root), "/tmp/ridge-machine-XXXXXX");
    if (!mkdtemp(m->root)) {
        free(m);
        return -1;
    }
    furnish(m);
    put_environ(m);
    *state = m;
    return 0;
}

static int tear_down(void **state)
{
    struct machine *m = *state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", m->root);
    arena_release(&m->arena);
    int code = system(command); /* a path of mkdtemp */
    free(m);
    return code;
}

static struct environment probe(struct machine *m, bool redact)
{
    struct environment environment;
    struct environment_options options = {.root = m->root, .redact = redact};
    MUST(environment_probe_at, &options, &environment, &m->arena);
    return environment;
}

static const char *value(const struct environment *e, const char *category, const char *key)
{
    const struct fact *fact = environment_find(e, category, key);
    if (!fact)
        fail_msg("no fact %s/%s", category, key);
    assert_int_equal(fact->status, FACT_OK);
    assert_true(fact->source[0] != '\0');
    return fact->value;
}

TEST(facts_are_read)
{
    struct machine *m = *state;
    struct environment e = probe(m, false);
    assert_string_equal(value(&e, "cpu", "model"), "143"); /* not the model name */
    assert_string_equal(value(&e, "cpu", "model_name"), "Intel(R) Xeon(R) Platinum 8480+");
    assert_string_equal(value(&e, "cpu", "microcode"), "0x2b000461");
    assert_string_equal(value(&e, "cpu_state", "governors"), "performance powersave");
    assert_string_equal(value(&e, "cpu_state", "idle_states"), "POLL C1(off)");
    assert_string_equal(value(&e, "mitigation", "meltdown"), "Mitigation: PTI");
    assert_string_equal(value(&e, "memory", "thp"), "madvise");
    assert_string_equal(value(&e, "memory", "size"), "252");
    assert_string_equal(value(&e, "memory", "available"), "200000000");
    assert_string_equal(value(&e, "container", "virtual_machine"), "yes");
    assert_string_equal(value(&e, "container", "seccomp"), "2");
    assert_string_equal(value(&e, "limit", "cpus_granted"), "1.5");
    assert_string_equal(value(&e, "limit", "control_group"), "/user.slice/job1");
    assert_string_equal(value(&e, "process", "cpus_allowed"), "2-7");
    assert_string_equal(value(&e, "permission", "cap_perfmon"), "yes");
    assert_string_equal(value(&e, "permission", "cap_sys_admin"), "no");
    assert_true(environment_number(&e, "permission", "perf_event_paranoid") == 4);
    assert_true(isnan(environment_number(&e, "cpu", "vendor")));
    assert_true(isnan(environment_number(&e, "cpu", "no_such_fact")));
    assert_true(free_memory_find(m->root).bytes == 1000000000); /* of the control group */
    assert_true(procfs_cpu_quota(m->root) == 1.5);
}

/* The limit of a user's or pod's group holds for all groups below, which have none of their own. */
TEST(the_quota_of_a_group_above_counts)
{
    struct machine *m = *state;
    put_file(m->root, "/sys/fs/cgroup/user.slice/job1/cpu.max", "max 100000\n");
    assert_true(procfs_cpu_quota(m->root) == -1);
    put_file(m->root, "/sys/fs/cgroup/user.slice/cpu.max", "50000 100000\n");
    assert_true(procfs_cpu_quota(m->root) == 0.5);
    put_file(m->root, "/sys/fs/cgroup/user.slice/job1/cpu.max", "20000 100000\n");
    assert_true(procfs_cpu_quota(m->root) == 0.2);
}

TEST(the_quota_of_version_1_counts)
{
    struct machine *m = *state;
    static const char group[] = "/sys/fs/cgroup/cpu/docker/job1/", above[] = "/sys/fs/cgroup/cpu/";
    char path[128];
    put_file(m->root, "/proc/self/cgroup", "5:cpuset:/\n4:cpu,cpuacct:/docker/job1\n1:name=x:/y\n");
    snprintf(path, sizeof(path), "%scpu.cfs_quota_us", group);
    put_file(m->root, path, "-1\n");
    snprintf(path, sizeof(path), "%scpu.cfs_period_us", group);
    put_file(m->root, path, "100000\n");
    assert_true(procfs_cpu_quota(m->root) == -1);
    snprintf(path, sizeof(path), "%scpu.cfs_quota_us", above);
    put_file(m->root, path, "75000\n");
    snprintf(path, sizeof(path), "%scpu.cfs_period_us", above);
    put_file(m->root, path, "50000\n");
    assert_true(procfs_cpu_quota(m->root) == 1.5);
    struct environment e = probe(m, false);
    assert_string_equal(value(&e, "limit", "cpus_granted"), "1.5");
}

TEST(governors_of_cpus_behind_an_offline_one_are_seen)
{
    struct machine *m = *state;
    put_file(m->root, CPU "cpu3/" FREQ, "schedutil\n"); /* and there is no cpu2 */
    struct environment e = probe(m, false);
    assert_string_equal(value(&e, "cpu_state", "governors"), "performance powersave schedutil");
}

TEST(missing_facts_say_so)
{
    struct environment e = probe(*state, false);
    const struct fact *driver = environment_find(&e, "cpu_state", "driver");
    assert_true(driver && driver->status == FACT_ABSENT && driver->value[0] == '\0');
    assert_null(environment_find(&e, "cpu", "part")); /* Arm: not a word about it */
    const struct fact *gone = environment_find(&e, "library", "libgone.so.1");
    assert_true(gone && gone->status == FACT_ABSENT);
}

/* Whether it is a virtual machine cannot be seen there. */
TEST(a_cpu_of_arm_has_a_name)
{
    struct machine *m = *state;
    put_file(m->root, "/proc/cpuinfo",
             "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd sve2\n"
             "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\n"
             "CPU part\t: 0xd4f\nCPU revision\t: 0\n");
    struct environment e = probe(m, false);
    assert_string_equal(value(&e, "cpu", "model_name"), "Arm Neoverse-V2");
    assert_string_equal(value(&e, "cpu", "features"), "fp asimd sve2");
    const struct fact *virtual = environment_find(&e, "container", "virtual_machine");
    assert_true(virtual && virtual->status == FACT_ABSENT);
    put_file(m->root, "/proc/cpuinfo", "CPU implementer\t: 0x99\nCPU part\t: 0x123\n");
    e = probe(m, false);
    assert_string_equal(value(&e, "cpu", "model_name"), "Arm (implementer 0x99, part 0x123)");
}

/* As in virtual machines for Arm: hwloc knows the CPUs alone. */
TEST(a_cache_of_unknown_size_is_absent)
{
    struct machine *m = *state;
    struct environment e;
    setenv("HWLOC_SYNTHETIC", "pu:2", 1);
    MUST(environment_probe_at, &(struct environment_options){.root = ""}, &e, &m->arena);
    unsetenv("HWLOC_SYNTHETIC");
    static const char *const keys[] = {"l1d", "l2", "l3"};
    for (int k = 0; k < ARRAY_COUNT(keys); k++) {
        const struct fact *fact = environment_find(&e, "topology", keys[k]);
        assert_true(fact && fact->status == FACT_ABSENT && !fact->value[0]);
    }
    assert_string_equal(value(&e, "topology", "cpus"), "2");
}

TEST(variables_and_libraries)
{
    struct environment e = probe(*state, false);
    char hex[HASH64_TEXT];
    assert_string_equal(value(&e, "variable", "OMP_NUM_THREADS"), "4");
    assert_string_equal(value(&e, "variable", "MALLOC_ARENA_MAX"), "2");
    assert_null(environment_find(&e, "variable", "PASSWORD"));
    assert_null(environment_find(&e, "variable", "BROKEN"));
    hash64_hex(hash64_text("not really a library"), hex);
    assert_string_equal(value(&e, "library", "libblas.so.3"), hex);
    assert_null(environment_find(&e, "library", "libblas.so.3#2")); /* one file, once */
}

TEST(facts_are_sorted_and_unique)
{
    struct environment e = probe(*state, false);
    assert_true(e.fact_count > 60);
    for (int k = 1; k < e.fact_count; k++) {
        int order = strcmp(e.facts[k - 1].category, e.facts[k].category);
        assert_true(order < 0 || (order == 0 && strcmp(e.facts[k - 1].key, e.facts[k].key) != 0));
    }
}

/* Nothing of whose machine it is remains, and the hash does not depend on it. */
TEST(redaction)
{
    struct machine *m = *state;
    struct environment open = probe(m, false), closed = probe(m, true);
    static const char *const secrets[] = {"secretbox", "SN-12345", "alice",
                                          "0a1b-22",   "vmlinuz",  "job1"};
    for (int k = 0; k < closed.fact_count; k++)
        for (int s = 0; s < ARRAY_COUNT(secrets); s++)
            if (strstr(closed.facts[k].value, secrets[s]) ||
                strstr(closed.facts[k].source, secrets[s]))
                fail_msg("%s/%s: \"%s\" from \"%s\"", closed.facts[k].category, closed.facts[k].key,
                         closed.facts[k].value, closed.facts[k].source);
    assert_string_equal(value(&closed, "kernel", "command_line"),
                        "BOOT_IMAGE=<path> root=<path> ro isolcpus=2-7 mitigations=off");
    assert_string_equal(value(&closed, "identity", "bios_version"), "2.4.6 on <host>");
    assert_string_equal(value(&closed, "variable", "LD_LIBRARY_PATH"), "<home>:/opt/lib");
    assert_string_equal(open.host_label, "secretbox");
    assert_null(strstr(closed.host_label, "secret"));
    assert_string_equal(open.hash, closed.hash);
    assert_string_equal(open.host_uid, closed.host_uid);
    assert_null(strstr(closed.host_uid, "deadbeef"));
}

/* Settings change the hash; what changes by itself, and names, do not. */
TEST(the_hash_covers_settings)
{
    struct machine *m = *state;
    struct environment before = probe(m, false);
    put_file(m->root, "/proc/loadavg", "9.10 0.20 0.30 1/100 4243\n");
    put_file(m->root, "/proc/sys/kernel/hostname", "otherbox\n");
    put_file(m->root, "/sys/class/dmi/id/bios_version", "2.4.6 on otherbox\n");
    put_file(m->root, "/sys/class/dmi/id/product_serial", "SN-99999\n");
    struct environment same = probe(m, false);
    assert_string_equal(before.hash, same.hash);
    static const struct {
        const char *path, *text;
    } changes[] = {
        {"/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"},
        {CPU "cpu1/" FREQ, "performance\n"},
        {CPU "vulnerabilities/meltdown", "Vulnerable\n"},
        {"/sys/fs/cgroup/user.slice/job1/cpu.max", "250000 100000\n"},
        {"/proc/cmdline", "root=UUID=0a1b-22 ro isolcpus=2-8\n"},
        {"/sys/class/dmi/id/bios_version", "2.4.7\n"},
    };
    char last[17];
    snprintf(last, sizeof(last), "%s", same.hash);
    for (int k = 0; k < ARRAY_COUNT(changes); k++) {
        put_file(m->root, changes[k].path, changes[k].text);
        struct environment after = probe(m, false);
        if (strcmp(after.hash, last) == 0)
            fail_msg("%s does not count", changes[k].path);
        snprintf(last, sizeof(last), "%s", after.hash);
    }
    put_file(m->root, "/etc/machine-id", "0123456789abcdef0123456789abcdef\n");
    assert_string_not_equal(probe(m, false).host_uid, before.host_uid);
}

TEST(changes_are_named)
{
    struct machine *m = *state;
    char text[400];
    struct environment before = probe(m, false);
    put_file(m->root, "/proc/loadavg", "9.10 0.20 0.30 1/100 4243\n");
    struct environment same = probe(m, false);
    environment_changes(&before, &same, text, sizeof(text));
    assert_string_equal(text, "");
    put_file(m->root, "/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    struct environment one = probe(m, false);
    environment_changes(&same, &one, text, sizeof(text));
    assert_non_null(strstr(text, " -> always"));
    assert_null(strchr(text, ','));
    put_file(m->root, CPU "vulnerabilities/meltdown", "Vulnerable\n");
    put_file(m->root, CPU "vulnerabilities/spectre_v9", "Vulnerable\n");
    put_file(m->root, "/sys/fs/cgroup/user.slice/job1/cpu.max", "250000 100000\n");
    struct environment many = probe(m, false);
    environment_changes(&same, &many, text, sizeof(text));
    assert_string_equal(text + strlen(text) - 5, ", ...");
    char small[16];
    environment_changes(&same, &many, small, sizeof(small));
    assert_int_equal(strlen(small), sizeof(small) - 1);
}

/* The file system of a folder is found by its device number. */
TEST(storage)
{
    struct machine *m = *state;
    struct stat info;
    char text[512];
    assert_int_equal(stat(".", &info), 0);
    snprintf(text, sizeof(text),
             "20 1 0:0 / /proc rw - proc proc rw\n"
             "21 1 %u:%u / /data rw,noatime shared:1 - xfs /dev/nvme0n1p2 rw\n",
             major(info.st_dev), minor(info.st_dev));
    put_file(m->root, "/proc/self/mountinfo", text);
    struct environment e = probe(m, false);
    assert_string_equal(value(&e, "storage", "file_system"), "xfs");
    assert_string_equal(value(&e, "storage", "device"), "/dev/nvme0n1p2");
    assert_string_equal(value(&e, "storage", "mount_options"), "rw,noatime");
}

/* An empty machine is described, not complained about. */
TEST(nothing_there)
{
    struct machine *m = *state, empty = {.root = "/nonexistent/ridge"};
    (void)m;
    struct environment e = probe(&empty, false);
    assert_true(strlen(e.hash) == 16 && strlen(e.host_uid) == 16);
    assert_true(environment_find(&e, "kernel", "release")->status == FACT_ABSENT);
    arena_release(&empty.arena);
}

TEST(this_machine)
{
    struct machine *m = *state;
    struct environment e, again;
    struct build_record build;
    MUST(environment_probe, &e, &m->arena, false);
    MUST(environment_probe, &again, &m->arena, true);
    assert_string_equal(e.hash, again.hash);
    assert_true(environment_number(&e, "topology", "cpus") >= 1);
    assert_non_null(environment_find(&e, "library", "libc.so.6"));
    MUST(build_probe, &build, &m->arena);
    assert_true(strlen(build.uid) == 16 && build.version[0] && build.compiler[0]);
}

const struct unit_fixture unit_fixture = {.before_each = build, .after_each = tear_down};
