/* SPDX-License-Identifier: Apache-2.0
 *
 * A signal's frame is written below the stack pointer, wherever that points. gemm:jit of oneDNN
 * 2.6.3 computes with the stack pointer in a block of the heap: an interrupt overwrote what lay
 * before the block, and a run that should have ended as interrupted aborted with a corrupted heap.
 * Here a timer's signals have a stack of their own and look where the stack pointer was. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "engine/graph/op.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/conv_gradient.h"
#include "engine/run/plugin.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"

enum { PERIOD_NS = 200000 };

static uintptr_t stack_begin, stack_end;
static volatile sig_atomic_t inside, outside;
static char signal_stack[64 << 10];

#if defined(__x86_64__)
static uintptr_t stack_pointer(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
}
#elif defined(__aarch64__)
static uintptr_t stack_pointer(const ucontext_t *context)
{
    return (uintptr_t)context->uc_mcontext.sp;
}
#else /* not known where it stands: the test shows nothing there */
static uintptr_t stack_pointer(const ucontext_t *context)
{
    (void)context;
    return stack_begin;
}
#endif

static void look(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    uintptr_t at = stack_pointer(context);
    if (at >= stack_begin && at < stack_end)
        inside++;
    else
        outside++;
}

/* Its signals go to this thread, whatever others there are. */
static timer_t timer_new(void)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    struct itimerspec period = {{0, PERIOD_NS}, {0, PERIOD_NS}};
    event._sigev_un._tid = gettid();
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    assert_int_equal(timer_settime(timer, 0, &period, NULL), 0);
    return timer;
}

/* All kernels that accept the graph's nodes are tried on this thread, and the fastest are run. */
static void try_all_kernels(struct graph *g)
{
    struct exe_options options = {.threads = 1, .isa = isa_detect(), .only_variant = NONE};
    MUST(graph_check, g);
    inside = outside = 0;
    timer_t timer = timer_new();
    struct exe *exe = compiled(g, &options);
    for (int k = 0; k < 10; k++)
        exe_run(exe);
    timer_delete(timer);
    exe_graph_free(exe, g);
    assert_true(inside > 0);
    if (outside)
        fail_msg("at %d of %d signals the stack pointer was outside the stack", (int)outside,
                 (int)(inside + outside));
}

TEST(products_stay_on_the_stack)
{
    struct graph *g = graph_new("products");
    int x = noise_input(g, "x", shape_of(256, 2048));
    graph_output(g, make_mat_mul(g, x, noise_param(g, "w", shape_of(2048, 64))));
    graph_output(g, make_mat_mul(g, x, noise_input(g, "v", shape_of(2048, 64))));
    try_all_kernels(g);
}

TEST(products_of_bytes_stay_on_the_stack)
{
    struct fill bytes = {.kind = FILL_INDEX, .a = 0, .b = 100};
    struct graph *g = graph_new("bytes");
    int x = graph_input(g, "x", DTYPE_U8, shape_of(256, 2048), bytes);
    int w = graph_param(g, "w", DTYPE_I8, shape_of(2048, 64), bytes);
    graph_output(g, graph_node(g, "MatMulInteger", NULL, INPUTS(x, w), NO_ATTRS));
    try_all_kernels(g);
}

TEST(convolutions_stay_on_the_stack)
{
    struct graph *g = graph_new("convolutions");
    int x = noise_input(g, "x", shape_of(2, 64, 28, 28));
    int w = noise_param(g, "w", shape_of(64, 64, 3, 3));
    int v = noise_input(g, "v", shape_of(64, 64, 3, 3));
    graph_output(g, graph_node(g, "Conv", NULL, INPUTS(x, w), NO_ATTRS));
    graph_output(g, graph_node(g, "Conv", NULL, INPUTS(x, v), NO_ATTRS));
    graph_output(g, graph_node(g, "ConvTranspose", NULL, INPUTS(x, w), NO_ATTRS));
    try_all_kernels(g);
}

/* 16 steps of 32 sequences. */
static void try_recurrent(const char *op, int64_t gates)
{
    enum { INPUT = 256, HIDDEN = 256 };
    struct graph *g = graph_new(op);
    int x = noise_input(g, "x", shape_of(16, 32, INPUT));
    int w = noise_param(g, "w", shape_of(1, gates * HIDDEN, INPUT));
    int r = noise_param(g, "r", shape_of(1, gates * HIDDEN, HIDDEN));
    int b = noise_param(g, "b", shape_of(1, 2 * gates * HIDDEN));
    graph_output(
        g, graph_node(g, op, NULL, INPUTS(x, w, r, b), ATTRS(attr_int("hidden_size", HIDDEN))));
    try_all_kernels(g);
}

TEST(recurrent_layers_stay_on_the_stack)
{
    try_recurrent("LSTM", 4);
    try_recurrent("GRU", 3);
}

static int load(void **state)
{
    (void)state;
    pthread_attr_t attr;
    void *begin;
    size_t size;
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstack(&attr, &begin, &size);
    pthread_attr_destroy(&attr);
    stack_begin = (uintptr_t)begin;
    stack_end = stack_begin + size;
    stack_t own = {.ss_sp = signal_stack, .ss_size = sizeof(signal_stack)};
    struct sigaction action = {.sa_sigaction = look,
                               .sa_flags = (int)(SA_SIGINFO | SA_ONSTACK | SA_RESTART)};
    sigemptyset(&action.sa_mask);
    plugins_load(NULL);
    return sigaltstack(&own, NULL) == 0 && sigaction(SIGALRM, &action, NULL) == 0 ? 0 : -1;
}

const struct unit_fixture unit_fixture = {.before_all = load};
