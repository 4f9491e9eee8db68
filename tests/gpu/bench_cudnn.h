/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel of the cuDNN plug-in on one node, over a faked device and library. */
#ifndef TESTS_GPU_BENCH_CUDNN_H
#define TESTS_GPU_BENCH_CUDNN_H

#include "engine/kernels/cudnn/lib/device.h"
#include "tests/gpu/fake_cudnn.h"
#include "tests/gpu/fake_device.h"
#include "tests/gpu/hooks.h"
#include "tests/gpu/one_node.h"
#include "tests/lib/lowered.h"

/* What the fake's engines are called. */
#define KNOBS    "tile 4 k 4 split 4 index 4 23=4 25=4 cga_m 4 cga_n 4 stages "
#define EXACT    "engine 1 " KNOBS "4"
#define ROUNDING "engine 0 " KNOBS "4"

struct subject {
    const char *name, *kernel, *op;
    void (*make)(struct graph *g);
    int variants; /* in f32 without tf32, by the fake's four configurations */
    int tensors;  /* that a launch gives addresses of; 0: not through the graph API */
    const char *text;
    int plans; /* that a launch executes */
};

extern const struct subject subjects[];
extern const int subject_count;
const struct subject *subject(const char *name);

struct bench {
    struct lowered lowered;
    struct kernel_query query;
    const struct kernel *kernel;
    struct device device;
    char *memory[8];
    const void *in[8];
    void *out[4];
    struct error err; /* of launches */
    struct kernel_args args;
};

void bench_open(struct bench *b, const struct subject *s);
void bench_close(struct bench *b);
/* Everything that an executable does with a kernel, to the first failure. */
enum status run_through(struct bench *b, struct error *err);
/* Gives back what is kept for the device. */
void forget_device(void);

/* Of each test (cmocka): the plug-in calls the fake, nothing fails yet. */
int bench_set_up(void **state);
int bench_tear_down(void **state);

#endif
