/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "tests/gpu/host/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system/clock.h"
#include "tests/gpu/host/api.h"

enum { LAUNCH_FAILED = 719, NAME_SIZE = 32 };

static struct {
    char fail[NAME_SIZE], lose[NAME_SIZE];
    int fail_at, calls, error;
    int broken_calls; /* of the one that RIDGE_HOST_FAIL names */
    int lose_at, lose_calls, lose_error;
    int lost, lost_device; /* the error; 0: it is there */
    int device;            /* that calls speak of */
    int slow_at, launches;
    double slow_ns; /* below 0: for ever */
    uint64_t busy_until_ns;
    bool hangs;
} s;

void api_fail(const char *call, int at, int error)
{
    snprintf(s.fail, sizeof(s.fail), "%s", call);
    s.fail_at = at;
    s.calls = 0;
    s.error = error;
}

int api_calls(void)
{
    return s.calls;
}

void api_lose(const char *call, int at, int error)
{
    snprintf(s.lose, sizeof(s.lose), "%s", call);
    s.lose_at = at;
    s.lose_error = error;
    s.lose_calls = s.lost = 0;
}

void api_slow(int at, double ns)
{
    s.slow_at = at;
    s.slow_ns = ns;
    s.launches = 0;
    s.busy_until_ns = 0;
    s.hangs = false;
}

/* RIDGE_HOST_LOSE="CALL:N" or "CALL:N:ERROR", once. */
static void lose_by_environment(void)
{
    const char *text = getenv("RIDGE_HOST_LOSE");
    char *end;
    if (!text || s.lose[0])
        return;
    size_t length = strcspn(text, ":");
    snprintf(s.lose, sizeof(s.lose), "%.*s", (int)length, text);
    s.lose_at = text[length] ? (int)strtol(text + length + 1, &end, 10) : 1;
    s.lose_error = text[length] && *end == ':' ? (int)strtol(end + 1, NULL, 10) : LAUNCH_FAILED;
}

/* As a call that fails from its N-th use on, for good. */
static bool is_broken(const char *call)
{
    const char *text = getenv("RIDGE_HOST_FAIL");
    size_t length = strlen(call);
    if (!text || strncmp(text, call, length) != 0 || text[length] != ':')
        return false;
    return ++s.broken_calls >= strtol(text + length + 1, NULL, 10);
}

/* Is asked of the driver without the device's context. */
static bool needs_no_context(const char *call)
{
    static const char *const calls[] = {"driver_version", "runtime_version", "device_count",
                                        "facts"};
    for (size_t k = 0; k < sizeof(calls) / sizeof(calls[0]); k++)
        if (strcmp(call, calls[k]) == 0)
            return true;
    return false;
}

/* What only puts work into a queue has returned when the work does its harm. */
static bool is_queued(const char *call)
{
    return strcmp(call, "launch") == 0 || strcmp(call, "graph_launch") == 0;
}

static int lost(const char *call)
{
    lose_by_environment();
    if (needs_no_context(call))
        return 0;
    if (s.lost)
        return s.lost_device == s.device ? s.lost : 0;
    if (strcmp(call, s.lose) != 0 || ++s.lose_calls != s.lose_at)
        return 0;
    s.lost = s.lose_error;
    s.lost_device = s.device;
    return is_queued(call) ? 0 : s.lost;
}

int scripted(const char *call)
{
    int error = lost(call);
    if (error)
        return error;
    if (is_broken(call))
        return LAUNCH_FAILED;
    if (strcmp(call, s.fail) != 0)
        return 0;
    return ++s.calls == s.fail_at ? s.error : 0;
}

void script_device(int index)
{
    s.device = index;
}

int api_device(void)
{
    return s.device;
}

/* ---- work that takes long ---- */

void script_launched(void)
{
    if (s.slow_at == 0 || ++s.launches != s.slow_at)
        return;
    s.hangs = s.slow_ns < 0;
    s.busy_until_ns = clock_now_ns() + (s.hangs ? 0 : (uint64_t)s.slow_ns);
}

uint64_t script_busy_until(void)
{
    if (s.hangs)
        return UINT64_MAX;
    return s.busy_until_ns > clock_now_ns() ? s.busy_until_ns : 0;
}

void script_wait(const char *call)
{
    if (s.hangs) {
        fprintf(stderr, "%s waits for work that never ends\n", call);
        abort();
    }
    while (script_busy_until())
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}
