/* SPDX-License-Identifier: Apache-2.0
 * On a machine of more than 1024 CPUs the kernel fills no cpu_set_t: `ridge scale` took such a
 * machine for one of a single CPU, and a pool bound all of its threads to CPU 0. */
#define _GNU_SOURCE
#include "base/system/cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/registry.h"
#include "base/system/pool.h"
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

/* What threads were bound to: the first CPU of each set, and how many the last one had. */
static struct {
    int count, cpu[8], cpus;
} bound;

int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *mask)
{
    (void)thread;
    size_t cpu = 0;
    while (cpu < size * 8 && !CPU_ISSET_S(cpu, size, mask))
        cpu++;
    if (bound.count < ARRAY_COUNT(bound.cpu))
        bound.cpu[bound.count] = (int)cpu;
    bound.count++;
    bound.cpus = CPU_COUNT_S(size, mask);
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

TEST(cpus_are_taken_in_turn_beyond_1024)
{
    struct cpus cpus;
    machine.possible = 3000;
    machine.every = 1000; /* 0, 1000, 2000 */
    assert_true(cpus_of_thread(&cpus));
    assert_true(cpus_has(&cpus, 2000));
    assert_false(cpus_has(&cpus, 1999));
    for (int k = 0; k < 6; k++)
        assert_int_equal(cpus_at(&cpus, k), k % 3 * 1000);
    cpus_add(&cpus, CPUS_MAX - 1);
    cpus_add(&cpus, CPUS_MAX);
    cpus_add(&cpus, -1);
    assert_int_equal(cpus_count(&cpus), 4);
    assert_int_equal(cpus_at(&cpus, 3), CPUS_MAX - 1);
    assert_false(cpus_has(&cpus, CPUS_MAX));
    assert_false(cpus_has(&cpus, -1));
    assert_int_equal(cpus_at(&(struct cpus){0}, 1), 0);
}

/* The threads of a pool go where the kernel allows them to, as far as binding is asked of it. */
TEST(threads_of_a_pool_are_bound_beyond_1024)
{
    struct pool *pool;
    struct error err;
    machine.possible = 4000;
    machine.every = 1500; /* 0, 1500, 3000 */
    bound.count = 0;
    assert_int_equal(pool_new(3, &pool, &err), STATUS_OK);
    assert_int_equal(bound.count, 3);
    assert_int_equal(bound.cpu[0], 1500);
    assert_int_equal(bound.cpu[1], 3000);
    assert_int_equal(bound.cpu[2], 0);
    pool_free(pool);
    assert_int_equal(bound.count, 4); /* the caller may go everywhere again */
    assert_int_equal(bound.cpus, 3);
}

TEST(where_the_kernel_does_not_say_all_are_allowed)
{
    machine.every = 0;
    assert_int_equal(cpus_allowed(), sysconf(_SC_NPROCESSORS_ONLN));
}
