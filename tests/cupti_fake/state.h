/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the made library share. */
#ifndef TESTS_CUPTI_FAKE_STATE_H
#define TESTS_CUPTI_FAKE_STATE_H

#include <stdbool.h>

#include "profilers/cupti/api.h"
#include "tests/cupti_fake/fake.h"

#define PUBLIC __attribute__((visibility("default")))

enum { RANGES_MAX = 512, KINDS_MAX = 64 };

struct CUpti_Profiler_Host_Object {
    int metrics;
    bool samples;
};

struct CUpti_RangeProfiler_Object {
    bool configured, started, pushed;
    int pass, pass_ranges, ranges, most;
    char names[RANGES_MAX][16];
};

struct CUpti_PmSampling_Object {
    bool configured, started, cleared;
    int left; /* samples that were not decoded */
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
    struct CUpti_RangeProfiler_Object *profiler; /* one at a time */
    struct CUpti_PmSampling_Object *sampler;
    int image_samples;
    bool enabled[KINDS_MAX];
};

extern struct fake_state fake;

void broke(const char *what);
/* Counts a use; the script's code when it is the one that fails, else 0. */
int enter(const char *call);

#define ENTER(name)                                                                                \
    do {                                                                                           \
        int code_ = enter(#name);                                                                  \
        if (code_)                                                                                 \
            return code_;                                                                          \
    } while (0)

#endif
