/* SPDX-License-Identifier: Apache-2.0
 *
 * makecontext gives a fiber its stack; from then on setjmp and longjmp switch, which unlike
 * swapcontext make no system call. Fibers stay for the next block. A fortified longjmp, which
 * Ubuntu's compiler asks for, takes a jump to another stack for a mistake. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "tests/gpu/host/grid.h"
#include "tests/gpu/host/pattern.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { WARP = 32, STACK_BYTES = 128 << 10, SHARED_MAX = 228 << 10 };

enum state { READY, AT_BLOCK, AT_CLUSTER, AT_WARP, AT_SHUFFLE, ENDED };

struct fiber {
    ucontext_t context;
    jmp_buf at;
    char *stack;
    bool started; /* has a place to jump to */
    unsigned shuffles;
};

static struct {
    pthread_mutex_t lock;
    struct host_index grid_size, block_size, block_index;
    const struct host_kernel *kernel;
    void **arguments;
    struct fiber *fibers;
    unsigned char states[HOST_THREADS]; /* enum state; apart, since barriers count them all */
    char *shared;
    int count, now; /* threads of a cluster, mostly one block; the running one */
    int block_count;
    unsigned cluster;
    uint32_t waits[HOST_CLUSTER_MAX], cluster_waits; /* barriers so far: of each block, of all */
    struct watch_moment
        moment; /* of the running thread; of the next ones but for thread and warp */
    uint16_t warp_waits[HOST_THREADS / WARP];
    jmp_buf scheduler;
    ucontext_t home;
    uint64_t exchange[2][HOST_THREADS];
    double counted;
    long begun;
} g = {.lock = PTHREAD_MUTEX_INITIALIZER};

double host_counted(void)
{
    return g.counted;
}

void host_count(double n)
{
    g.counted += n;
}

long host_begun(void)
{
    return g.begun;
}

void host_begin(void)
{
    g.begun++;
}

static void die(const char *what)
{
    fprintf(stderr, "block %u,%u,%u: %s\n", g.block_index.x, g.block_index.y, g.block_index.z,
            what);
    abort();
}

/* ---- fibers ---- */

static void back_to_scheduler(enum state state)
{
    struct fiber *f = &g.fibers[g.now];
    g.states[g.now] = (unsigned char)state;
    if (_setjmp(f->at) == 0)
        _longjmp(g.scheduler, 1);
}

static void fiber_main(void)
{
    for (;;) {
        g.kernel->run(g.arguments);
        back_to_scheduler(ENDED);
    }
}

static void start(struct fiber *f)
{
    if (!f->stack) {
        f->stack =
            mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (f->stack == MAP_FAILED)
            die("no memory for a fiber's stack");
    }
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, fiber_main, 0);
    f->started = true;
    setcontext(&f->context);
}

static void resume(int thread)
{
    struct fiber *f = &g.fibers[thread];
    g.now = thread;
    g.moment.thread = (uint16_t)thread;
    g.moment.warp_waits = g.warp_waits[thread / WARP];
    g.moment.waits = (g.cluster_waits << 16) + g.waits[host_cluster_rank()];
    if (_setjmp(g.scheduler) != 0)
        return;
    if (f->started)
        _longjmp(f->at, 1);
    start(f);
}

/* ---- barriers ---- */

static int count_in(int first, int last, enum state state)
{
    int found = 0;
    for (int k = first; k < last; k++)
        found += g.states[k] == state;
    return found;
}

static void release(int first, int last)
{
    for (int k = first; k < last; k++)
        if (g.states[k] != ENDED)
            g.states[k] = READY;
}

/* Returns whether a block's barrier has opened. */
static bool open_blocks(void)
{
    bool opened = false;
    for (unsigned rank = 0; rank < g.cluster; rank++) {
        int first = (int)rank * g.block_count, last = first + g.block_count;
        int waiting = count_in(first, last, AT_BLOCK), ended = count_in(first, last, ENDED);
        if (!waiting || waiting + ended != g.block_count)
            continue;
        release(first, last);
        g.waits[rank]++;
        opened = true;
    }
    return opened;
}

/* Called when no fiber can run. Returns whether all have ended. */
static bool open_barriers(void)
{
    int ended = count_in(0, g.count, ENDED), opened = 0;
    if (ended == g.count)
        return true;
    if (count_in(0, g.count, AT_CLUSTER) == g.count - ended) {
        release(0, g.count);
        g.cluster_waits++;
        return false;
    }
    if (open_blocks())
        return false;
    for (int first = 0; first < g.count; first += WARP) {
        int last = first + WARP < g.count ? first + WARP : g.count;
        bool wait = count_in(first, last, AT_WARP) == last - first;
        if (!wait && count_in(first, last, AT_SHUFFLE) != last - first)
            continue;
        g.warp_waits[first / WARP] += wait;
        release(first, last);
        opened++;
    }
    if (!opened)
        die("some threads wait at a barrier or shuffle that others have left out");
    return false;
}

/* A block, or the blocks of a cluster. Their shared memory begins as NaN: nothing is given. */
static void run_cluster(struct host_index first, size_t shared_bytes)
{
    g.block_index = first;
    for (unsigned rank = 0; rank < g.cluster; rank++)
        memset(g.shared + rank * SHARED_MAX, 0xff, shared_bytes);
    for (int k = 0; k < g.count; k++) {
        g.states[k] = READY;
        g.fibers[k].shuffles = 0;
    }
    g.moment.block++;
    g.cluster_waits = 0;
    memset(g.waits, 0, sizeof(g.waits));
    memset(g.warp_waits, 0, sizeof(g.warp_waits));
    do
        for (int k = 0; k < g.count; k++)
            if (g.states[k] == READY)
                resume(k);
    while (!open_barriers());
    if (pattern_wanted())
        pattern_end_block();
}

/* ---- the grid ---- */

static void prepare(struct host_index block, unsigned cluster, size_t shared_bytes)
{
    g.cluster = cluster;
    g.block_count = (int)(block.x * block.y * block.z);
    g.count = g.block_count * (int)cluster;
    if (g.block_count < 1 || g.block_count > HOST_BLOCK_MAX || shared_bytes > SHARED_MAX)
        die("a block of this size cannot be launched");
    if (cluster < 1 || cluster > HOST_CLUSTER_MAX || g.count > HOST_THREADS)
        die("a cluster of this size is not known here");
    if (cluster > 1 && g.block_count % WARP)
        die("blocks of a cluster have whole warps here");
    if (!g.fibers)
        g.fibers = calloc(HOST_THREADS, sizeof(*g.fibers));
    if (!g.shared)
        g.shared = aligned_alloc(256, SHARED_MAX * HOST_CLUSTER_MAX);
    if (!g.fibers || !g.shared)
        die("out of memory");
}

void host_grid_run(const struct host_kernel *kernel, struct host_index grid,
                   struct host_index block, unsigned cluster, void **arguments, size_t shared_bytes)
{
    pthread_mutex_lock(&g.lock);
    g.kernel = kernel;
    g.arguments = arguments;
    g.grid_size = grid;
    g.block_size = block;
    prepare(block, cluster, shared_bytes);
    g.moment.launch++;
    g.moment.block = 0;
    g.begun = 0;
    watch_begin(&g.moment, g.shared, SHARED_MAX * HOST_CLUSTER_MAX,
                cluster > 1 ? (unsigned)g.block_count : 0);
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x += cluster)
                run_cluster((struct host_index){x, y, z}, shared_bytes);
    watch_end();
    pthread_mutex_unlock(&g.lock);
}

/* ---- for the kernels ---- */

struct host_index host_block_index(void)
{
    struct host_index first = g.block_index;
    return (struct host_index){first.x + host_cluster_rank(), first.y, first.z};
}

struct host_index host_block_size(void)
{
    return g.block_size;
}

struct host_index host_grid_size(void)
{
    return g.grid_size;
}

void *host_shared(void)
{
    return g.shared + host_cluster_rank() * SHARED_MAX;
}

unsigned host_cluster_rank(void)
{
    return g.cluster == 1 ? 0 : (unsigned)(g.now / g.block_count);
}

void *host_cluster_shared(const void *own, unsigned rank)
{
    size_t at = (size_t)((const char *)own - g.shared) % SHARED_MAX;
    if (rank >= g.cluster)
        die("a cluster has no such block");
    return g.shared + rank * SHARED_MAX + at;
}

unsigned host_thread_number(void)
{
    return (unsigned)g.now;
}

struct host_index host_thread_index(void)
{
    unsigned k = (unsigned)g.now, x = g.block_size.x, y = g.block_size.y;
    if (x == (unsigned)g.count) /* nearly always, and divisions take longest here */
        return (struct host_index){k, 0, 0};
    if (g.cluster > 1)
        k %= (unsigned)g.block_count;
    return (struct host_index){k % x, k / x % y, k / x / y};
}

int host_lane(void)
{
    return g.now % WARP;
}

void host_wait_block(void)
{
    back_to_scheduler(AT_BLOCK);
}

/* Where all meet: at the wait, or with RIDGE_HOST_ARRIVE=1 at the arrival before it. What comes in
 * between must be ordered with what comes after the one and with what came before the other. */
static bool meet_at_arrival(void)
{
    const char *text = getenv("RIDGE_HOST_ARRIVE");
    return text && strcmp(text, "1") == 0;
}

void host_arrive_cluster(void)
{
    if (meet_at_arrival())
        back_to_scheduler(AT_CLUSTER);
}

void host_wait_cluster(void)
{
    if (!meet_at_arrival())
        back_to_scheduler(AT_CLUSTER);
}

static void meet(unsigned mask, enum state state)
{
    if (mask != 0xffffffffu)
        die("only whole warps are known here");
    back_to_scheduler(state);
}

void host_wait_warp(unsigned mask)
{
    meet(mask, AT_WARP);
}

void host_meet_warp(unsigned mask)
{
    meet(mask, AT_SHUFFLE);
}

/* Two places by turns: a lane may bring its next value while others still read this one. */
uint64_t host_shuffle(unsigned mask, uint64_t value, int lane)
{
    int me = g.now, first = me - me % WARP;
    unsigned turn = g.fibers[me].shuffles++ & 1;
    g.exchange[turn][me] = value;
    host_meet_warp(mask);
    if (first + lane >= g.count)
        die("a shuffle reads a thread that the block does not have");
    return g.exchange[turn][first + lane];
}
