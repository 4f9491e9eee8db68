/* SPDX-License-Identifier: Apache-2.0
 *
 * When replays of the made runtime began and ended. The environment may say how long they take, for
 * tests of what is computed from their times: RIDGE_HOST_GAP_NS passes before each one begins, and
 * each of more than one node lasts RIDGE_HOST_REPLAY_NS. The made CUPTI (tests/cupti_fake/) asks
 * for them. */
#ifndef TESTS_GPU_HOST_PLAYED_H
#define TESTS_GPU_HOST_PLAYED_H

#include <stdint.h>

#include "tests/gpu/host/api.h"

uint64_t played_begin(void);
void played_end(uint64_t begin_ns, int nodes, long capture);

/* How many there were; the k-th (from 0) from its begin to its end, if it is one of the last
 * thousand. CLOCK_MONOTONIC. Found by dlsym. */
typedef long api_replays_entry(void);
typedef int api_replay_entry(long k, uint64_t *begin_ns, uint64_t *end_ns);
API_EXPORT api_replays_entry api_replays;
/* How many captures were begun, and by which of them (from 1) the k-th replay was made. */
API_EXPORT api_replays_entry api_captures;
typedef long api_replay_capture_entry(long k);
API_EXPORT api_replay_capture_entry api_replay_capture;
API_EXPORT api_replay_entry api_replay;

#endif
