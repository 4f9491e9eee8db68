/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/text/utc.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/numbers/random.h"
#include "base/system/clock.h"

void utc_now(char text[UTC_TEXT])
{
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    size_t length = strftime(text, UTC_TEXT, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + length, UTC_TEXT - length, ".%03dZ", (int)(now.tv_nsec / 1000000));
}

void uuid_make(char text[UUID_TEXT])
{
    uint32_t w[4];
    if (getrandom(w, sizeof(w), 0) != (ssize_t)sizeof(w)) /* kernels before 3.17 */
        random_words(clock_now_ns(), (uint64_t)getpid(), w);
    snprintf(text, UUID_TEXT, "%08x-%04x-4%03x-%04x-%04x%08x", w[0], w[1] >> 16, w[1] & 0xfff,
             (w[2] >> 16 & 0x3fff) | 0x8000, w[2] & 0xffff, w[3]);
}
