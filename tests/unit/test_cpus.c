/* SPDX-License-Identifier: Apache-2.0
 * On a machine of more than 1024 CPUs the kernel fills no cpu_set_t: `ridge scale` took such a
 * machine for one of a single CPU. */
#define _GNU_SOURCE
#include "base/system/cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/registry.h"
#include "tests/lib/unit.h"

/* The machine: CPUs that the kernel could have, and every how many one is allowed; 0: none says. */
static struct {
    size_t possible, every;
} machine;

/* In place of the C library's, as the kernel does it. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *mask)
{
    (void)pid;
    if (machine.every == 0 || size * 8 < machine.possible) {
        errno = machine.every ? EINVAL : EPERM;
        return -1;
    }
    memset(mask, 0, size);
    for (size_t cpu = 0; cpu < machine.possible; cpu += machine.every)
        CPU_SET_S(cpu, size, mask);
    return 0;
}

TEST(cpus_are_counted_on_machines_of_any_size)
{
    static const struct {
        size_t possible, every;
        int count;
    } cases[] = {{2, 1, 2}, {1024, 1, 1024}, {1025, 1, 1025}, {1920, 1, 1920}, {8192, 64, 128}};
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        machine.possible = cases[k].possible;
        machine.every = cases[k].every;
        assert_int_equal(cpus_allowed(), cases[k].count);
    }
}

TEST(where_the_kernel_does_not_say_all_are_allowed)
{
    machine.every = 0;
    assert_int_equal(cpus_allowed(), sysconf(_SC_NPROCESSORS_ONLN));
}
