/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "tests/gpu/host/played.h"

#include <stdlib.h>
#include <time.h>

#include "base/system/clock.h"

enum { KEPT = 1000, SECOND_NS = 1000000000 };

static struct {
    long count;
    uint64_t begin_ns[KEPT], end_ns[KEPT];
    long capture[KEPT];
} played;

static uint64_t wanted(const char *name)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : 0;
}

static void sleep_until(uint64_t ns)
{
    struct timespec time = {(time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

uint64_t played_begin(void)
{
    uint64_t gap_ns = wanted("RIDGE_HOST_GAP_NS"), now_ns = clock_now_ns();
    if (!gap_ns)
        return now_ns;
    sleep_until(now_ns + gap_ns);
    return clock_now_ns();
}

void played_end(uint64_t begin_ns, int nodes, long capture)
{
    uint64_t long_ns = nodes > 1 ? wanted("RIDGE_HOST_REPLAY_NS") : 0;
    long k = played.count++ % KEPT;
    if (long_ns)
        sleep_until(begin_ns + long_ns);
    played.begin_ns[k] = begin_ns;
    played.capture[k] = capture;
    played.end_ns[k] = long_ns ? begin_ns + long_ns : clock_now_ns();
}

long api_replays(void)
{
    return played.count;
}

long api_replay_capture(long k)
{
    return played.capture[k % KEPT];
}

int api_replay(long k, uint64_t *begin_ns, uint64_t *end_ns)
{
    if (k < 0 || k >= played.count || k < played.count - KEPT)
        return 0;
    *begin_ns = played.begin_ns[k % KEPT];
    *end_ns = played.end_ns[k % KEPT];
    return 1;
}
