/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/model/admission.h"

#include <math.h>
#include <sys/resource.h>

#include "harness/model/roundings.h"

enum status admission_need(const struct graph *graph, const struct exe_options *options,
                           struct memory_need *need, struct error *err)
{
    struct graph *with;
    struct memory_need second;
    TRY(graph_need(graph, options, need, err));
    TRY(graph_with_roundings(graph, &with, err));
    if (!with)
        return STATUS_OK;
    enum status status = graph_need(with, options, &second, err);
    if (status == STATUS_OK)
        need->reference = fmax(second.compile, second.run + need->reference);
    graph_free(with);
    return status;
}

double admission_bytes(const struct memory_need *need, bool verify)
{
    return fmax(need->compile, need->run + (verify ? need->reference : 0));
}

/* Threads reserve more than they use. */
static double stacks(int threads)
{
    struct rlimit limit;
    bool known = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return (threads > 1 ? threads - 1 : 0) * (known ? (double)limit.rlim_cur : 8e6);
}

static double with_margin(double bytes)
{
    return bytes * (1 + ADMISSION_MARGIN_SHARE) + ADMISSION_MARGIN_BYTES;
}

enum status admission_judge(const struct memory_need *need, bool verify, int threads,
                            const struct free_memory *available, struct error *err)
{
    double more = available->is_address ? stacks(threads) : 0;
    double all = with_margin(admission_bytes(need, verify)) + more;
    double unverified = with_margin(admission_bytes(need, false)) + more;
    if (all <= available->bytes)
        return STATUS_OK;
    if (unverified <= available->bytes)
        return UNSUPPORTED(err,
                           "verifying needs %.3g GB of memory, %.3g GB are free %s: --no-verify "
                           "measures it with %.3g GB, or take a smaller batch",
                           all * 1e-9, available->bytes * 1e-9, available->where,
                           unverified * 1e-9);
    return UNSUPPORTED(err, "needs %.3g GB of memory, %.3g GB are free %s: take a smaller batch",
                       all * 1e-9, available->bytes * 1e-9, available->where);
}

enum status admission_check(const struct graph *graph, const struct exe_options *options,
                            bool verify, struct error *err)
{
    struct memory_need need;
    struct free_memory available = free_memory_find("");
    TRY(admission_need(graph, options, &need, err));
    return admission_judge(&need, verify, options->threads, &available, err);
}
