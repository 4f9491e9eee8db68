/* SPDX-License-Identifier: Apache-2.0
 *
 * For tests of devices: the plug-in whose CUDA runtime is the host (tests/gpu/host/), what can be
 * scripted there, and small networks. */
#ifndef TESTS_LIB_HOST_GPU_H
#define TESTS_LIB_HOST_GPU_H

#include "engine/run/exe.h"

/* tests/gpu/host/api.h; all NULL before host_gpu_start. */
struct host_gpu {
    void (*script)(const char *call, int at, int error);
    int (*calls)(void);
    void (*lose)(const char *call, int at, int error);
    void (*slow)(int at, double ns);
    long (*live)(void);
    void (*clock)(double command_ns);
    void (*dry)(int dry);
    double (*counted)(void);
};

/* Loads the plug-in `name` of the build that the program lies in (BUILD/tests/unit/x), and no
 * other: the path of its folder, BUILD/tests/`folder`. */
const char *plugins_of_build(const char *program, const char *folder, const char *name);
/* The start of a unit test: loads the plug-in over the host; ends the program with a skip where
 * there is none. */
int host_gpu_start(int argc, char **argv);
const struct host_gpu *host_gpu(void);
/* RIDGE_TEST_GPU, a device of the real plug-in, or "cuda". */
const char *gpu_name(void);
/* How many things live that are to be given back; 0 where nobody counts. */
long gpu_live(void);

/* One thread, no tuning. */
struct exe_options gpu_options(const char *device);
/* On gpu_name(), own kernels, nodes as they are: no pass joins them. */
struct exe_options gpu_unfused(bool tuned);
/* Every node has an own kernel. */
struct graph *gpu_small_net(void);
/* Three nodes have none: the host computes them, in the middle and at the end. */
struct graph *gpu_mixed_net(void);
/* A step of decoding: its inputs are "x" and the states "keys", "values", which are changed in
 * place, "at", which counts steps, and "mean"; the last two are moved. Every node has an own kernel
 * but with odd: then the host reads each state, and computes what follows "mean". At most
 * GPU_DECODER_STEPS runs fit into the caches. */
enum { GPU_DECODER_STEPS = 24 };
struct graph *gpu_decoder(bool odd);
/* 40 nodes that read whatever there is. */
struct graph *gpu_any_net(unsigned seed);

/* In unit tests. */
#define SAYS(text, part)                                                                           \
    do {                                                                                           \
        const char *text_ = (text);                                                                \
        if (!strstr(text_, part))                                                                  \
            fail_msg("\"%s\" does not say \"%s\"", text_, part);                                   \
    } while (0)

#endif
