/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN's functions as the plug-in's table wants them, without cuDNN: they check what they are
 * given, count what is made and given back, and fail where the script says
 * (tests/gpu/fake_device.h).
 *
 * Every graph has four configurations, of three engines: 0 uses tensor cores, 1 is exact and comes
 * with two values of the last of its nine knobs, 2 gives other bits each time. As in the library, a
 * question for no knobs is answered with none.
 */
#ifndef TESTS_GPU_FAKE_CUDNN_H
#define TESTS_GPU_FAKE_CUDNN_H

#include "engine/kernels/cudnn/lib/api.h"

enum { FAKE_TENSORS = 24, FAKE_WORKSPACE = 4096, FAKE_RNN_WEIGHTS = 1 << 16 };

/* What was launched last. */
struct fake_launch {
    int count;                /* launches so far, of any kind */
    int packs;                /* lists of addresses made so far */
    cudaStream_t stream;      /* of the handle, now */
    cudaStream_t launched_on; /* the last time */
    int64_t configuration;    /* of the four */
    int64_t uids[FAKE_TENSORS];
    void *memory[FAKE_TENSORS];
    int tensor_count;
    void *workspace;
    int rnn_places; /* weights whose place was asked for */
    int plans;      /* made so far */
    int questions;  /* for engines */
    bool compiled;  /* the test's: engines say that they are compiled at run time */
};

extern struct fake_launch fake_launch;

void fake_cudnn(struct cudnn_api *api);

#endif
