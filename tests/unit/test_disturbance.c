/* SPDX-License-Identifier: Apache-2.0
 *
 * Busy neighbours: what is judged of the time that threads wait for a CPU, and how it is read. */
#define _GNU_SOURCE

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/registry.h"
#include "base/system/clock.h"
#include "harness/watch/disturbance.h"
#include "harness/watch/stolen_time.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"

#define assert_close(a, b, by) assert_true(fabs((a) - (b)) <= (by))

/* ---- judging ---- */

struct judged {
    const char *what;
    struct disturbance d;
    int threads;
    bool disturbed;
    const char *text; /* a part of it; NULL: nothing is said */
};

static const struct judged judged[] = {
    {"a quiet machine",
     {.wall_s = 1, .wait_s = 0.002, .run_s = 1.99, .others = {.all_s = 0.005, .cpus = 2}},
     2,
     false,
     NULL},
    {"busy loops on both CPUs",
     {.wall_s = 1,
      .wait_s = 0.9,
      .run_s = 1,
      .others = {.all_s = 1, .busiest_s = 0.52, .busiest = "yes", .cpus = 2}},
     2,
     true,
     "disturbed: 45.0 % of the CPU time went to other programs on this machine (busiest: yes, "
     "0.52 CPUs)"},
    {"a neighbour of low priority that takes 3 %",
     {.wall_s = 1,
      .wait_s = 0.06,
      .run_s = 1.5,
      .others = {.all_s = 0.5, .busiest_s = 0.5, .busiest = "make", .cpus = 2}},
     2,
     true,
     "disturbed: 3.0 % of the CPU time went to other programs"},
    {"just below the limit",
     {.wall_s = 1, .wait_s = 0.039, .run_s = 1.9, .others = {.all_s = 0.5, .cpus = 2}},
     2,
     false,
     NULL},
    {"nobody can be seen",
     {.wall_s = 1, .wait_s = 0.9, .run_s = 1, .others = {.all_s = NAN, .cpus = 2}},
     2,
     true,
     "disturbed: 45.0 % of the CPU time went to other programs on this machine"},
    {"four threads on two CPUs, alone",
     {.wall_s = 1, .wait_s = 2, .run_s = 2, .others = {.all_s = 0.01, .cpus = 2}},
     4,
     false,
     "its 4 threads share 2 CPUs and wait for each other"},
    {"a point shorter than the tick in which others are counted",
     {.wall_s = 0.0005, .wait_s = 0.002, .run_s = 0.001, .others = {.all_s = 0.01, .cpus = 2}},
     2,
     true,
     "disturbed: up to 100.0 % of the CPU time went to other programs"},
    {"four threads on two CPUs, and a neighbour",
     {.wall_s = 1,
      .wait_s = 2.4,
      .run_s = 1.6,
      .others = {.all_s = 0.4, .busiest_s = 0.4, .busiest = "cc1", .cpus = 2}},
     4,
     true,
     "disturbed: 20.0 % of the CPU time went to other programs on this machine (busiest: cc1, "
     "0.4 CPUs)"},
    {"a library's own threads beside the pool's",
     {.wall_s = 1, .wait_s = 0.9, .run_s = 2, .others = {.all_s = 0.01, .cpus = 2}},
     2,
     false,
     "more of its threads than the point's 2 wanted the 2 CPUs"},
    {"the control group's quota",
     {.wall_s = 1, .wait_s = 0.8, .run_s = 1, .others = {.all_s = 0.01, .cpus = 2, .quota_s = 0.7}},
     2,
     true,
     "disturbed: the cgroup's CPU quota held it back for 40.0 % of the CPU time"},
    {"waking takes its time, nobody else ran",
     {.wall_s = 1, .wait_s = 0.06, .run_s = 0.8, .others = {.all_s = 0.01, .cpus = 2}},
     2,
     false,
     "although little else ran"},
    {"the kernel does not tell",
     {.wall_s = 1, .wait_s = NAN, .unknown = "no", .others = {.all_s = 1, .cpus = 2}},
     2,
     false,
     NULL},
};

TEST(neighbours_are_told_from_our_own_threads)
{
    for (int k = 0; k < ARRAY_COUNT(judged); k++) {
        const struct judged *j = &judged[k];
        char text[200];
        bool disturbed = disturbance_judge(&j->d, j->threads, text, sizeof(text));
        bool fits = j->text ? strstr(text, j->text) != NULL : text[0] == '\0';
        if (disturbed != j->disturbed || !fits)
            fail_msg("%s: %d \"%s\"", j->what, disturbed, text);
    }
}

/* ---- reading ---- */

static void make_root(char *root)
{
    static const char pattern[] = "/tmp/ridge-disturbance-XXXXXX";
    memcpy(root, pattern, sizeof(pattern));
    assert_non_null(mkdtemp(root));
}

static void remove_root(const char *root, const char *below)
{
    char command[256];
    snprintf(command, sizeof(command), "rm -rf '%s%s'", root, below);
    assert_int_equal(system(command), 0);
}

TEST(threads_come_and_go)
{
    char root[64];
    struct run_delay d;
    make_root(root);
    put_file(root, "/proc/self/task/10/schedstat", "1000 500 3\n");
    put_file(root, "/proc/self/task/11/schedstat", "9000 700 3\n");
    run_delay_open(&d, root);
    assert_int_equal(d.wait_ns, 0);
    put_file(root, "/proc/self/task/10/schedstat", "1100 560 4\n");
    run_delay_read(&d);
    assert_int_equal(d.wait_ns, 60);
    assert_int_equal(d.run_ns, 100);
    put_file(root, "/proc/self/task/12/schedstat", "5 1000 1\n"); /* all of it is new */
    run_delay_read(&d);
    assert_int_equal(d.wait_ns, 1060);
    remove_root(root, "/proc/self/task/12"); /* what it had stays */
    put_file(root, "/proc/self/task/11/schedstat", "9000 710 4\n");
    run_delay_read(&d);
    assert_int_equal(d.wait_ns, 1070);
    assert_int_equal(d.count, 2);
    put_file(root, "/proc/self/task/12/schedstat", "5 30 1\n"); /* the number again */
    run_delay_read(&d);
    assert_int_equal(d.wait_ns, 1100);
    assert_string_equal(run_delay_unknown(&d), "");
    run_delay_close(&d);
    remove_root(root, "");
}

TEST(a_kernel_that_does_not_count_is_named)
{
    char root[64];
    struct run_delay d;
    make_root(root);
    run_delay_open(&d, root);
    assert_non_null(strstr(run_delay_unknown(&d), "cannot be read"));
    run_delay_read(&d);
    run_delay_close(&d);
    put_file(root, "/proc/self/task/10/schedstat", "0 0 0\n");
    run_delay_open(&d, root);
    assert_non_null(strstr(run_delay_unknown(&d), "does not count"));
    run_delay_close(&d);
    remove_root(root, "");
}

static void put_process(const char *root, int pid, const char *name, int ticks, int born)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    snprintf(text, sizeof(text),
             "%d (%s) R 1 1 1 0 -1 4194304 1 0 0 0 %d %d 0 0 20 0 1 0 %d 4096 1\n", pid, name,
             ticks, ticks, born);
    put_file(root, path, text);
}

TEST(the_busiest_is_named_without_control_characters)
{
    char root[64];
    struct other_programs p;
    struct others others;
    long hz = sysconf(_SC_CLK_TCK);
    make_root(root);
    put_process(root, 999001, "old", 100000, 5);
    put_process(root, 999002, "a) R 1 (b\033[2J", 10, 6);
    put_process(root, 999003, "went", 7, 6);
    put_file(root, "/proc/self/cgroup", "4:cpuset:/x\n3:cpu,cpuacct:/a/b\n0::/\n");
    put_file(root, "/sys/fs/cgroup/cpu/a/b/cpu.stat", "nr_periods 1\nthrottled_time 1000000000\n");
    put_file(root, "/sys/fs/cgroup/cpu/a/cpu.stat", "throttled_time 0\n");
    other_programs_begin(&p, root);
    put_process(root, 999002, "a) R 1 (b\033[2J", 10 + (int)hz, 6); /* user and system: 2 s */
    put_process(root, 999003, "comes", 1 + (int)hz / 4, 77);        /* another of that number */
    put_file(root, "/sys/fs/cgroup/cpu/a/b/cpu.stat", "nr_periods 1\nthrottled_time 1500000000\n");
    put_file(root, "/sys/fs/cgroup/cpu/a/cpu.stat", "throttled_time 250000000\n");
    other_programs_end(&p, &others);
    assert_string_equal(others.busiest, "a) R 1 (b?[2J");
    assert_close(others.busiest_s, 2, 1e-9);
    assert_close(others.quota_s, 0.75, 1e-9);
    assert_true(isnan(others.all_s)); /* no /proc/stat there */
    assert_true(others.cpus >= 1);
    remove_root(root, "");
}

/* Bug: a point on one CPU was charged with what was stolen from programs on the others. */
TEST(time_stolen_from_other_cpus_is_none_of_ours)
{
    char root[64], text[200];
    cpu_set_t usual, one;
    long hz = sysconf(_SC_CLK_TCK);
    make_root(root);
    assert_int_equal(sched_getaffinity(0, sizeof(usual), &usual), 0);
    int own = 0;
    while (!CPU_ISSET((size_t)own, &usual))
        own++;
    CPU_ZERO(&one);
    CPU_SET((size_t)own, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    snprintf(
        text, sizeof(text),
        "cpu  1 1 1 1 1 1 1 %ld 0 0\ncpu%d 1 1 1 1 1 1 1 %ld 0 0\ncpu%d 1 1 1 1 1 1 1 %ld 0 0\n",
        9 * hz, own, 2 * hz, own + 1, 7 * hz);
    put_file(root, "/proc/stat", text);
    struct stolen_time *stolen = stolen_time_open(root);
    assert_non_null(stolen);
    assert_int_equal(stolen_time_ns(stolen), 2000000000);
    stolen_time_close(stolen);
    assert_int_equal(sched_setaffinity(0, sizeof(usual), &usual), 0);
    remove_root(root, "");
}

/* More processes than are looked at: when some end, others are seen for the first time, which have
 * all the CPU time of their lives. Machines of many CPUs have that many threads of the kernel. */
TEST(a_process_that_was_not_looked_at_before_is_not_the_busiest)
{
    enum { PROCESSES = 4300, LEFT = 200 };
    char root[64], folder[96], process[512], stat[520];
    struct other_programs p;
    struct others others;
    make_root(root);
    for (int k = 0; k < PROCESSES; k++)
        put_process(root, 900000 + k, "idle", 100000, 5);
    other_programs_begin(&p, root);
    snprintf(folder, sizeof(folder), "%s/proc", root);
    DIR *proc = opendir(folder);
    assert_non_null(proc);
    for (int k = 0; k < PROCESSES - LEFT;) { /* in the order in which they were listed */
        const struct dirent *e = readdir(proc);
        assert_non_null(e);
        if (e->d_name[0] != '9')
            continue;
        snprintf(process, sizeof(process), "%s/%s", folder, e->d_name);
        snprintf(stat, sizeof(stat), "%s/stat", process);
        assert_int_equal(unlink(stat), 0);
        assert_int_equal(rmdir(process), 0);
        k++;
    }
    closedir(proc);
    other_programs_end(&p, &others);
    assert_string_equal(others.busiest, "");
    remove_root(root, "");
}

TEST(quotas_of_version_2_count_with_their_parents)
{
    char root[64];
    struct other_programs p;
    struct others others;
    make_root(root);
    put_file(root, "/proc/self/cgroup", "0::/a/b\n");
    put_file(root, "/sys/fs/cgroup/a/b/cpu.stat", "usage_usec 1\nthrottled_usec 10\n");
    put_file(root, "/sys/fs/cgroup/a/cpu.stat", "usage_usec 1\nthrottled_usec 0\n");
    other_programs_begin(&p, root);
    put_file(root, "/sys/fs/cgroup/a/cpu.stat", "usage_usec 1\nthrottled_usec 300000\n");
    other_programs_end(&p, &others);
    assert_close(others.quota_s, 0.3, 1e-9);
    assert_string_equal(others.busiest, "");
    remove_root(root, "");
}

/* ---- the machine itself ---- */

struct spinner {
    _Atomic bool stop;
};

static void *spin(void *context)
{
    struct spinner *spinner = context;
    while (!atomic_load(&spinner->stop))
        ;
    return NULL;
}

static void pin(cpu_set_t *before)
{
    cpu_set_t one;
    assert_int_equal(sched_getaffinity(0, sizeof(*before), before), 0);
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && !CPU_COUNT(&one); cpu++)
        if (CPU_ISSET(cpu, before))
            CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

static void burn(double seconds)
{
    uint64_t end = clock_now_ns() + (uint64_t)(seconds * 1e9);
    while (clock_now_ns() < end)
        ;
}

/* A child of low priority on our CPU has some of it, by name. */
TEST(a_neighbour_on_our_cpu_is_found_and_named)
{
    cpu_set_t before;
    struct disturbance_watch watch = {.open = false};
    struct disturbance d;
    char text[200];
    pin(&before);
    pid_t child = fork();
    if (child == 0) {
        pthread_setname_np(pthread_self(), "busy-neighbour");
        if (nice(5) != -1)
            burn(60);
        _exit(0);
    }
    burn(0.02);
    disturbance_begin(&watch, "");
    burn(0.6);
    disturbance_end(&watch, &d);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    sched_setaffinity(0, sizeof(before), &before);
    if (d.unknown[0])
        skip(); /* a kernel that does not count */
    assert_int_equal(d.others.cpus, 1);
    assert_true(d.run_s > 0.01 && d.run_s < d.wall_s + 0.05);
    bool disturbed = disturbance_judge(&d, 1, text, sizeof(text));
    if (!disturbed || !strstr(text, "went to other programs"))
        fail_msg("waited %.3f of %.3f s: \"%s\"", d.wait_s, d.wall_s, text);
}

/* Two threads of our own on one CPU: nobody else is accused. */
TEST(our_own_threads_are_no_neighbours)
{
    cpu_set_t before;
    struct disturbance_watch watch = {.open = false};
    struct disturbance d;
    struct spinner spinner = {.stop = false};
    pthread_t thread;
    char text[200];
    pin(&before);
    disturbance_begin(&watch, "");
    assert_int_equal(pthread_create(&thread, NULL, spin, &spinner), 0);
    burn(0.4);
    atomic_store(&spinner.stop, true);
    pthread_join(thread, NULL);
    disturbance_end(&watch, &d);
    sched_setaffinity(0, sizeof(before), &before);
    if (d.unknown[0])
        skip();
    assert_true(d.wait_s > 0.02);
    if (!(d.others.all_s < 0.04 * d.wall_s))
        skip(); /* others did run here */
    assert_false(disturbance_judge(&d, 1, text, sizeof(text)));
}
