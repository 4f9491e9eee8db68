/* SPDX-License-Identifier: Apache-2.0
 *
 * A device "cuda" whose memory is the host's, for tests of kernels that only call a library; and a
 * script by which any call, of the device or of a faked library, fails once at its n-th use.
 */
#ifndef TESTS_GPU_FAKE_DEVICE_H
#define TESTS_GPU_FAKE_DEVICE_H

#include "engine/run/device.h"

struct fake_script {
    int calls;          /* so far */
    int fail_at;        /* the number of the call that fails, from 1; 0: none */
    const char *failed; /* its name; NULL: none yet */
    int activations;    /* launched */
    double clock_ns;    /* of the device; work moves it on */
    int live;           /* things made and not given back: blocks of memory, descriptors, handles */
};

/* One per test program: functions of a library have nowhere to keep it. */
extern struct fake_script fake;

void fake_reset(int fail_at);
/* Counts a call; true: it has to fail. */
bool fake_fails(const char *name);
/* Whether a call of this name has failed in any script since the program began. */
bool fake_has_failed(const char *name);

extern const struct device_kind fake_device_kind; /* without capture */
void fake_device(struct device *device);          /* an opened one */

#endif
