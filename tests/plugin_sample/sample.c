/* SPDX-License-Identifier: Apache-2.0
 *
 * A plug-in outside ridge's tree: what a hardware vendor writes, on one page. It brings a Relu on
 * the CPU. For ridge's own tests the environment adds kernels that misbehave:
 *   RIDGE_SAMPLE=crash,hang,wrong,bounds,exit,slow   kernels of these names
 *   RIDGE_SAMPLE=nan,infinite,number                 kernels that give NaN or an infinity where a
 *                                                    number is due, or a number where NaN is
 *   RIDGE_SAMPLE=paged                               one that is wrong where pages of its workspace
 *                                                    are not in memory yet
 *   RIDGE_SAMPLE=idle                                a kernel on device cuda that computes nothing
 *   RIDGE_SAMPLE=abi | refuse                        the plug-in as a whole
 *   RIDGE_SAMPLE=roof, or roof,norun, or roof,older  a roof, one that cannot run, one that an older
 *                                                    plug-in has not
 *   RIDGE_SAMPLE_DELAY_US=N                          what sample_slow waits, default 1000
 *   RIDGE_SAMPLE_KILL=N                              the process is killed (SIGKILL) by the Nth
 *                                                    launch of sample_relu in it
 *   RIDGE_SAMPLE_REPEAT=N                          sample_relu does its work so many times, so
 *                                                  that one program is 5 % slower than another
 *
 * Build it with `make INCLUDE=/path/to/ridge`; run ridge with RIDGE_PLUGIN_PATH=this folder. */
#define _DEFAULT_SOURCE
#include "engine/run/plugin.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifndef SAMPLE_REPEAT
#define SAMPLE_REPEAT 1 /* what RIDGE_SAMPLE_REPEAT is where nobody says */
#endif

enum { CHUNK = 4096, KERNELS_MAX = 12 };

/* Everything that changes, but for `left`, is set at the entry and read only from then on. */
static const struct plugin_host *host;
static const struct kernel *kernels[KERNELS_MAX];
static struct plugin table;
static long delay_us, repeat, left; /* left: launches until the kill; 0: none */

/* ---- the kernel ---- */

struct relu {
    const float *x;
    float *y;
    int64_t count;
};

struct kernel_state {
    int64_t count;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    (void)variant;
    if (q->in[0].dtype != DTYPE_F32)
        return host->refuse(why, STATUS_UNSUPPORTED, "only f32");
    if (q->node->post_count)
        return host->refuse(why, STATUS_UNSUPPORTED, "no fused epilogue");
    if (!host->desc_is_dense(&q->in[0]) || !host->desc_same_memory(&q->in[0], &q->out[0]))
        return host->refuse(why, STATUS_UNSUPPORTED, "input and output differ in layout");
    state->count = shape_count(&q->in[0].shape);
    return STATUS_OK;
}

static void relu_chunk(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct relu *relu = context;
    int64_t from = tile * CHUNK;
    int64_t to = from + CHUNK < relu->count ? from + CHUNK : relu->count;
    for (int64_t k = from; k < to; k++)
        relu->y[k] = relu->x[k] < 0 ? 0 : relu->x[k]; /* keeps NaN */
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct relu relu = {args->in[0], args->out[0], state->count};
    if (left && --left == 0)
        raise(SIGKILL);
    for (long k = 1; k < repeat; k++)
        relu_chunk(&relu, 0, 0);
    host->pool_run(args->pool, (relu.count + CHUNK - 1) / CHUNK, relu_chunk, &relu);
}

static const struct kernel relu_kernel = {
    .name = "sample_relu",
    .provider = "sample",
    .ops = OPS("Relu"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};

/* ---- kernels that misbehave ---- */

static void launch_crash(const struct kernel_state *state, const struct kernel_args *args)
{
    launch(state, args);
    raise(SIGSEGV);
}

static void launch_hang(const struct kernel_state *state, const struct kernel_args *args)
{
    launch(state, args);
    for (;;)
        pause();
}

static void launch_wrong(const struct kernel_state *state, const struct kernel_args *args)
{
    launch(state, args);
    float *y = args->out[0];
    for (int64_t k = 0; k < state->count; k++)
        y[k] *= 1.03125f;
}

static void launch_bounds(const struct kernel_state *state, const struct kernel_args *args)
{
    launch(state, args);
    float *y = args->out[0];
    y[state->count] = 1;
}

static void launch_exit(const struct kernel_state *state, const struct kernel_args *args)
{
    launch(state, args);
    fprintf(stderr, "first line\nlicence expired\n");
    _exit(3);
}

static void launch_slow(const struct kernel_state *state, const struct kernel_args *args)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    launch(state, args);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < delay_us);
}

/* Every fifth element from the third on. */
static void put_every_fifth(const struct kernel_state *state, const struct kernel_args *args,
                            float x)
{
    float *y = args->out[0];
    for (int64_t k = 2; k < state->count; k += 5)
        y[k] = x;
}

static void launch_nan(const struct kernel_state *state, const struct kernel_args *args)
{
    launch(state, args);
    put_every_fifth(state, args, NAN);
}

static void launch_infinite(const struct kernel_state *state, const struct kernel_args *args)
{
    launch(state, args);
    put_every_fifth(state, args, -INFINITY);
}

static void launch_number(const struct kernel_state *state, const struct kernel_args *args)
{
    launch(state, args);
    float *y = args->out[0];
    for (int64_t k = 0; k < state->count; k++)
        y[k] = y[k] == y[k] ? y[k] : 0; /* what max(0, NaN) gives on many a processor */
}

enum { PAGED_BYTES = 16 << 20, PAGED_PAGE = 4096 };

static size_t paged_workspace(const struct kernel_state *state)
{
    (void)state;
    return PAGED_BYTES;
}

static void launch_paged(const struct kernel_state *state, const struct kernel_args *args)
{
    unsigned char present[PAGED_BYTES / PAGED_PAGE];
    uintptr_t begin = (uintptr_t)args->workspace / PAGED_PAGE * PAGED_PAGE;
    bool all = mincore((void *)begin, PAGED_BYTES, present) == 0;
    for (int k = 0; all && k < ARRAY_COUNT(present); k++)
        all = present[k] & 1;
    launch(state, args);
    if (!all)
        put_every_fifth(state, args, NAN);
}

static const struct kernel paged_kernel = {
    .name = "sample_paged",
    .provider = "sample",
    .ops = OPS("Relu"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = paged_workspace,
    .launch = launch_paged,
};

#define MISBEHAVING(how)                                                                           \
    {                                                                                              \
        .name = "sample_" #how, .provider = "sample", .distrusted = true, .ops = OPS("Relu"),      \
        .state_size = sizeof(struct kernel_state), .plan = plan, .launch = launch_##how            \
    }

static const struct kernel misbehaving[] = {
    MISBEHAVING(crash),  MISBEHAVING(hang),     MISBEHAVING(wrong),
    MISBEHAVING(bounds), MISBEHAVING(exit),     MISBEHAVING(slow),
    MISBEHAVING(nan),    MISBEHAVING(infinite), MISBEHAVING(number),
};

/* ---- a kernel on another plug-in's device: it computes nothing ---- */

static void launch_idle(const struct kernel_state *state, const struct kernel_args *args)
{
    (void)state;
    (void)args;
}

static const struct kernel idle_kernel = {
    .name = "sample_idle",
    .provider = "sample",
    .device = "cuda",
    .ops = OPS("Relu"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch_idle,
};

/* ---- a roof of another plug-in's device: it only sleeps ---- */

static enum status prepare_roof(const struct device_roof *roof, const struct device *device,
                                struct roof_work *work, struct roof_state **state,
                                struct error *why)
{
    (void)roof;
    (void)device;
    (void)why;
    work->amount = 1000;
    *state = NULL;
    return STATUS_OK;
}

static enum status run_roof(const struct roof_state *state, int64_t rounds, void *stream,
                            struct error *err)
{
    (void)state;
    (void)stream;
    (void)err;
    nanosleep(&(struct timespec){.tv_nsec = rounds * 1000000}, NULL);
    return STATUS_OK;
}

static void release_roof(struct roof_state *state)
{
    (void)state;
}

static struct device_roof roof = {.name = "sleep f32",
                                  .device = "cuda",
                                  .level = "",
                                  .precision = "f32",
                                  .pattern = "sleep",
                                  .isa = "",
                                  .unit = "FLOP/s",
                                  .kind = ROOF_COMPUTE,
                                  .prepare = prepare_roof,
                                  .release = release_roof};
static const struct roof_group group = {sizeof(roof), &roof, 1};
static const struct roof_group *const groups[] = {&group};

static void offer_roof(const char *wanted)
{
    roof.run = strstr(wanted, "norun") ? NULL : run_roof;
    table.roofs = groups;
    table.roof_group_count = 1;
    if (strstr(wanted, "older"))
        table.size = offsetof(struct plugin, roofs);
}

/* Runs where a process ends by exit(). */
static __attribute__((destructor)) void take_leave(void)
{
    const char *wanted = getenv("RIDGE_SAMPLE");
    if (wanted && strstr(wanted, "farewell"))
        fprintf(stderr, "sample: farewell\n");
}

/* ---- the entry ---- */

const struct plugin *ridge_plugin(const struct plugin_host *ridge, struct error *why)
{
    const char *wanted = getenv("RIDGE_SAMPLE"), *delay = getenv("RIDGE_SAMPLE_DELAY_US");
    const char *more = getenv("RIDGE_SAMPLE_REPEAT"), *killing = getenv("RIDGE_SAMPLE_KILL");
    host = ridge;
    repeat = more ? strtol(more, NULL, 10) : SAMPLE_REPEAT;
    left = killing ? strtol(killing, NULL, 10) : 0;
    delay_us = delay ? strtol(delay, NULL, 10) : 1000;
    table = (struct plugin){.abi = PLUGIN_ABI,
                            .size = sizeof(struct plugin),
                            .kernel_size = sizeof(struct kernel),
                            .name = "sample",
                            .version = "1.0",
                            .kernels = kernels};
    kernels[table.kernel_count++] = &relu_kernel;
    if (ridge->abi != PLUGIN_ABI)
        return &table; /* the host compares both numbers and refuses */
    for (int k = 0; wanted && k < ARRAY_COUNT(misbehaving); k++)
        if (strstr(wanted, strchr(misbehaving[k].name, '_') + 1))
            kernels[table.kernel_count++] = &misbehaving[k];
    if (wanted && strstr(wanted, "paged"))
        kernels[table.kernel_count++] = &paged_kernel;
    if (wanted && strstr(wanted, "idle"))
        kernels[table.kernel_count++] = &idle_kernel;
    if (wanted && strstr(wanted, "roof"))
        offer_roof(wanted);
    if (wanted && strstr(wanted, "abi"))
        table.abi = PLUGIN_ABI + 1;
    if (wanted && strstr(wanted, "refuse")) {
        host->refuse(why, STATUS_UNSUPPORTED, "no sample device (looked for %d)", 1);
        return NULL;
    }
    return &table;
}
