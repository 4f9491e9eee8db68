/* SPDX-License-Identifier: Apache-2.0
 *
 * Where oneDNN's OpenMP threads run. Ridge's pool pins its calling thread to one CPU, and libgomp's
 * threads inherit the mask of the thread that starts them: without care the whole team would share
 * one CPU. OMP_PROC_BIND is no way out, since it would pin the masters of several concurrent
 * executables to the same place. So each team is pinned by hand, thread k to the k-th CPU after its
 * master's.
 *
 * With three threads and more there is a second trap: libgomp ends the threads that a smaller
 * region does not need and starts new ones for the next larger region (oneDNN sizes regions by the
 * work), again with the master's mask. Around such launches the master's mask is therefore
 * the team's; two system calls, 2 to 4 us. A team of two has no smaller region with threads.
 */
#include <omp.h>

#include "base/system/cpus.h"
#include "engine/kernels/onednn/lib/adapter.h"

static struct cpus process_cpus; /* of the process when the plug-in was loaded */

/* The team of one master thread. */
struct team {
    int threads; /* 0: not pinned yet */
    bool pinned; /* the master is, to one CPU */
    struct cpus master, all;
};

static _Thread_local struct team team;

void team_remember_cpus(void)
{
    cpus_of_thread(&process_cpus);
}

/* The CPU of thread k of a team whose master runs on `first`: k steps on in the process's mask. */
static int cpu_of(int first, int k)
{
    int cpu = first, steps = k % cpus_count(&process_cpus);
    while (steps > 0) {
        cpu = (cpu + 1) % CPUS_MAX;
        steps -= cpus_has(&process_cpus, cpu);
    }
    return cpu;
}

void team_threads(int threads)
{
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
}

void team_ready(int threads)
{
    team_threads(threads);
    team.threads = threads;
    team.pinned = false;
    if (threads == 1 || cpus_count(&process_cpus) < 2 || !cpus_of_thread(&team.master) ||
        cpus_count(&team.master) != 1)
        return;
    int first = cpus_at(&team.master, 0);
    team.all = (struct cpus){0};
    for (int k = 0; k < threads; k++)
        cpus_add(&team.all, cpu_of(first, k));
    team.pinned = true;
#pragma omp parallel num_threads(threads)
    cpus_bind_to(pthread_self(), cpu_of(first, omp_get_thread_num()));
}

void team_begin(int threads)
{
    if (team.threads != threads)
        team_ready(threads);
    if (threads > 2 && team.pinned)
        cpus_bind(pthread_self(), &team.all);
}

void team_end(int threads)
{
    if (threads > 2 && team.pinned)
        cpus_bind(pthread_self(), &team.master);
}
