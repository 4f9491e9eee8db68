/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the made library share. */
#ifndef TESTS_CUPTI_FAKE_STATE_H
#define TESTS_CUPTI_FAKE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "profilers/plugins/cupti/api.h"
#include "tests/cupti_fake/fake.h"

#define PUBLIC __attribute__((visibility("default")))

enum { RANGES_MAX = 512, KINDS_MAX = 64 };

struct CUpti_Profiler_Host_Object {
    int metrics;
    bool samples;
};

/* What must live, unchanged, until the profiler is disabled. */
struct kept {
    const uint8_t *bytes; /* borrowed; NULL: none */
    size_t size;
    uint64_t hash;
};

struct CUpti_RangeProfiler_Object {
    struct kept config;
    const uint8_t *data; /* borrowed: the counter data image */
    bool first;          /* it was enabled before the device ran anything */
    bool configured, started, pushed;
    int pass, pass_ranges, ranges, limit;
    char names[RANGES_MAX][16];
    int seen[RANGES_MAX]; /* ranges that a kernel ran in */
    int seen_count;
};

struct CUpti_PmSampling_Object {
    bool configured, started, cleared;
    size_t limit, left; /* samples that an image takes; that were not decoded */
    uint64_t interval;
    struct kept config;
};

struct named_uses {
    const char *name;
    int uses;
};

struct fake_state {
    struct fake_script script;
    struct named_uses uses[FAKE_NAMES_MAX];
    int objects;
    bool failed; /* as the script wanted: what follows may be incomplete */
    char rule[160];
    bool initialized, context_current, cuda_initialized;
    bool was_attached;                           /* CUPTI, at any time */
    struct CUpti_RangeProfiler_Object *profiler; /* one at a time */
    struct CUpti_PmSampling_Object *sampler;
    size_t image_samples;
    long sampled_replays, traced_replays; /* while samples were taken; before the trace began */
    long traced_captures;                 /* before the trace began */
    bool enabled[KINDS_MAX];
    bool fresh;  /* activity was enabled and not flushed since */
    int dropped; /* records since the last look */
};

extern struct fake_state fake;

/* keep_look: whether it is as it was kept; reads memory that must be alive. */
struct kept keep(const uint8_t *bytes, size_t size);
void keep_look(const struct kept *kept, const char *what);
void broke(const char *what);
/* Counts a use; the script's code when it is the one that fails, else 0. */
int enter(const char *call);

/* device.c: what the made device replayed since the process began. */
long device_replays(void);
long device_captures(void);
long device_replay_capture(long k);
bool device_replay(long k, uint64_t *begin_ns, uint64_t *end_ns);
/* What the environment wants to be counted of a range or in a sample; false: it wants nothing. */
bool device_count(const char *metric, double *value);

#define ENTER(name)                                                                                \
    do {                                                                                           \
        int code_ = enter(#name);                                                                  \
        if (code_)                                                                                 \
            return code_;                                                                          \
    } while (0)

#endif
