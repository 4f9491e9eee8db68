/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of what is judged by counts and times: the environment says what is counted, and what
 * the made device (tests/gpu/host/) replayed is what is recorded.
 *
 * RIDGE_FAKE_COUNTS="METRIC=N ..." are counts per execution; a metric that it does not name is 0.
 * Ranges do not see where an execution ends, so that those of a whole count EXECUTIONS of them: as
 * many as profiler cupti takes of a device that is fast. Samples count replays.
 * RIDGE_FAKE_REPLAYS=1 records replays, and one kernel as long as each. */
#include <stdlib.h>
#include <string.h>

#include "tests/cupti_fake/state.h"
#include "tests/gpu/host/played.h"
#include "tests/lib/device_symbol.h"

enum { EXECUTIONS = 8 };

static long number(const char *symbol)
{
    api_replays_entry *entry;
    void *found = device_symbol(symbol);
    memcpy(&entry, &found, sizeof(found));
    return entry ? entry() : 0;
}

long device_replays(void)
{
    return number("api_replays");
}

long device_captures(void)
{
    return number("api_captures");
}

long device_replay_capture(long k)
{
    api_replay_capture_entry *capture;
    void *found = device_symbol("api_replay_capture");
    memcpy(&capture, &found, sizeof(found));
    return capture ? capture(k) : 0;
}

bool device_replay(long k, uint64_t *begin_ns, uint64_t *end_ns)
{
    api_replay_entry *replay;
    void *found = device_symbol("api_replay");
    memcpy(&replay, &found, sizeof(found));
    return replay && replay(k, begin_ns, end_ns);
}

static double counted_per_execution(const char *counts, const char *metric)
{
    size_t length = strlen(metric);
    for (const char *at = counts; (at = strstr(at, metric)); at += length)
        if ((at == counts || at[-1] == ' ') && at[length] == '=')
            return strtod(at + length + 1, NULL);
    return 0;
}

bool device_count(const char *metric, double *value)
{
    const char *counts = getenv("RIDGE_FAKE_COUNTS");
    if (!counts)
        return false;
    *value = counted_per_execution(counts, metric);
    *value *= fake.profiler ? EXECUTIONS : (double)fake.sampled_replays / FAKE_SAMPLES;
    return true;
}
