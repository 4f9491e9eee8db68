/* SPDX-License-Identifier: Apache-2.0
 *
 * The entry of the plug-in: opens OpenBLAS with the best kernels for this CPU, and keeps its
 * threads where they belong. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/system/cpus.h"
#include "base/system/library.h"
#include "engine/kernels/openblas/lib/openblas.h"

#define X(name) extern const struct kernel kernel_openblas_##name;
#include "openblas_list.inc"
#undef X

static const struct kernel *const kernels[] = {
#define X(name) &kernel_openblas_##name,
#include "openblas_list.inc"
#undef X
};

enum { THREADED_BY_PTHREADS = 1 }; /* openblas_get_parallel() */

struct openblas openblas;
static char version[96];
static struct cpus process_cpus;
static _Atomic bool forked;     /* since then OpenBLAS has no threads */
static _Atomic int threads_now; /* OpenBLAS has one number for all callers */

static const struct plugin table = {
    .abi = PLUGIN_ABI,
    .size = sizeof(struct plugin),
    .kernel_size = sizeof(struct kernel),
    .name = "openblas",
    .version = version,
    .kernels = kernels,
    .kernel_count = ARRAY_COUNT(kernels),
};

/* ---- threads ---- */

/* OpenBLAS ends its threads before a fork and starts new ones when it is called next, in parent and
 * child. They would inherit the mask of the caller, whom ridge's pool has bound to one CPU. */
static void note_fork(void)
{
    atomic_store(&forked, true);
}

static void change_threads(int threads)
{
    struct cpus own;
    bool known = cpus_of_thread(&own);
    if (known)
        cpus_bind(pthread_self(), &process_cpus);
    openblas.set_num_threads(threads);
    if (known)
        cpus_bind(pthread_self(), &own);
    atomic_store(&threads_now, threads);
    atomic_store(&forked, false);
}

void openblas_threads(int threads)
{
    if (atomic_load_explicit(&forked, memory_order_relaxed) ||
        threads != atomic_load_explicit(&threads_now, memory_order_relaxed))
        change_threads(threads);
}

/* ---- opening ---- */

enum { THREAD_BYTES = 136 << 20, OTHER_BYTES = 320 << 20 };

/* Bytes that a limit leaves beside what is in use; infinite without a limit. */
static double room(int resource, double used)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return INFINITY;
    return (double)limit.rlim_cur - used;
}

/* Each thread of OpenBLAS 0.3.21 allocates 128 MiB at its start and tries again for ever where
 * there is no room; whoever waits for its end, as a fork or the end of the process does, hangs with
 * it. */
static enum status check_room(struct error *why)
{
    double pages = 0, total = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%lf", &pages) == 1)
        total = pages * (double)sysconf(_SC_PAGESIZE);
    if (file)
        fclose(file);
    double free_bytes = fmin(room(RLIMIT_AS, total), room(RLIMIT_DATA, total));
    double needed = (double)cpus_count(&process_cpus) * THREAD_BYTES + OTHER_BYTES;
    if (free_bytes >= needed)
        return STATUS_OK;
    return REFUSE(why,
                  "OpenBLAS needs about %.0f MiB of address space for its threads, and the limit "
                  "(ulimit -v, -d) leaves %.0f MiB",
                  needed / (1 << 20), fmax(free_bytes, 0) / (1 << 20));
}

#if defined(__x86_64__)
static bool is_amd_with_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") && __builtin_cpu_supports("avx2");
}
#else
static bool is_amd_with_avx2(void)
{
    return false;
}
#endif

/* On Zen 4, OpenBLAS 0.3.21 picks its Cooper Lake kernels, which are 10 to 40 % slower there than
 * the Haswell ones (SGEMM of 512^3: 94 and 109 of 117 GFLOP/s; 32x4096x1024: 53 and 89).
 * Idle threads poll for 2^n cycles before they sleep, by default 2^26: 25 ms in which they disturb
 * whatever runs next. 2^20 is 0.4 ms. */
static void choose_settings(void)
{
    if (is_amd_with_avx2())
        setenv("OPENBLAS_CORETYPE", "Haswell", 0);
    setenv("OPENBLAS_THREAD_TIMEOUT", "20", 0);
}

static enum status find_functions(void *library, struct error *why)
{
    static const struct library_symbol symbols[] = {
        {"cblas_sgemm", offsetof(struct openblas, sgemm)},
        {"cblas_sgemv", offsetof(struct openblas, sgemv)},
        {"openblas_set_num_threads", offsetof(struct openblas, set_num_threads)},
        {"openblas_get_config", offsetof(struct openblas, get_config)},
        {"openblas_get_corename", offsetof(struct openblas, get_corename)},
        {"openblas_get_parallel", offsetof(struct openblas, get_parallel)},
    };
    const char *missing = library_fill(library, symbols, ARRAY_COUNT(symbols), &openblas);
    if (missing)
        return REFUSE(why, "libopenblas.so.0 has no %s", missing);
    if (openblas.get_parallel() != THREADED_BY_PTHREADS)
        return REFUSE(why, "this OpenBLAS is not threaded by pthreads: "
                           "apt-get install libopenblas0-pthread");
    char number[32] = "";
    sscanf(openblas.get_config(), "OpenBLAS %31s", number);
    snprintf(version, sizeof(version), "%s %s", number, openblas.get_corename());
    return STATUS_OK;
}

const struct plugin *ridge_plugin(const struct plugin_host *host, struct error *why)
{
    if (host->abi != PLUGIN_ABI)
        return &table; /* the host compares both numbers */
    openblas.host = host;
    cpus_of_thread(&process_cpus);
    if (check_room(why) != STATUS_OK)
        return NULL;
    choose_settings();
    struct error absent;
    void *library;
    if (library_open_one("libopenblas.so.0", &library, &absent) != STATUS_OK) {
        REFUSE(why, "%s: apt-get install libopenblas0-pthread", absent.message);
        return NULL;
    }
    if (find_functions(library, why) != STATUS_OK)
        return NULL;
    pthread_atfork(NULL, note_fork, note_fork);
    return &table;
}
