/* SPDX-License-Identifier: Apache-2.0
 *
 * A trial of a kernel where it can do no harm: some vendor kernels crash, hang or compute nonsense
 * on particular shapes and CPUs, and the first to learn of it should not be the benchmark.
 *
 * probe_kernel forks. The child prepares and launches the kernel once, on the real query, with
 * guard zones round every output and the workspace, and compares the outputs with the expected
 * ones. A crash, a time-out, a write out of bounds or wrong numbers come back as UNSUPPORTED with a
 * reason ("mine_conv died with SIGFPE in launch").
 *
 * Fork and threads: the child has only the calling thread, so nothing in it may rely on a thread of
 * the parent. It therefore works on a new thread with a pool of its own. libgomp keeps its team per
 * master thread, so an OpenMP library starts a new team there even after the parent has run OpenMP
 * regions; OpenBLAS ends its threads at fork by itself. The parent's threads must be idle (no
 * exe_run at the same time, none just starting): a lock that one of them holds stays locked. A
 * device context does not survive a fork: kernels of other devices than the CPU are refused here
 * and must not be `distrusted`.
 */
#ifndef ENGINE_RUN_PROBE_H
#define ENGINE_RUN_PROBE_H

#include "engine/graph/kernel.h"

struct probe_data {
    const void *const *in;         /* per input of the query, in its desc's memory; NULL: absent */
    const double *const *expected; /* per output: row-major, logical shape; NULL: not compared */
    double tolerance;              /* on max |got - expected| / max |expected|; integers: exact */
};

/* OK: the kernel did its work. UNSUPPORTED: it did not, `why` has the reason; this is a property of
 * kernel, variant and query, and may be remembered. FAILED: the trial itself could not be made. */
enum status probe_kernel(const struct kernel *kernel, const struct kernel_query *q, int variant,
                         const struct probe_data *data, int deadline_ms, struct error *why);

#endif
