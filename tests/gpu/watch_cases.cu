/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels that are right and kernels that are wrong, for host/watch.h to tell apart; built for the
 * host alone. Usage: watch_cases NAME; without a name it lists them. */
#include "engine/kernels/cuda/lib/cluster.h"
#include "engine/kernels/cuda/lib/mma.h"

extern "C" {
#include "tests/gpu/host/memory.h"
}

enum { THREADS = 64 };

struct numbers {
    int *x; /* THREADS of them */
    unsigned char *bytes;
};

/* ---- barriers of the block ---- */

static __device__ void exchange(const struct numbers &k, int *shared, bool wait)
{
    shared[threadIdx.x] = (int)threadIdx.x;
    if (wait)
        __syncthreads();
    if (blockIdx.x == 0)
        k.x[threadIdx.x] = shared[(threadIdx.x + WARP) % THREADS];
}

__global__ void good_exchange(const __grid_constant__ struct numbers k)
{
    __shared__ int shared[THREADS];
    exchange(k, shared, true);
}

__global__ void unordered_exchange(const __grid_constant__ struct numbers k)
{
    __shared__ int shared[THREADS];
    exchange(k, shared, false);
}

static __device__ void rounds(const struct numbers &k, int *shared, bool wait)
{
    int sum = 0;
    for (int round = 0; round < 3; round++) {
        shared[threadIdx.x] = round;
        __syncthreads();
        sum += shared[(threadIdx.x + WARP) % THREADS];
        if (wait)
            __syncthreads();
    }
    if (blockIdx.x == 0)
        k.x[threadIdx.x] = sum;
}

__global__ void good_rounds(const __grid_constant__ struct numbers k)
{
    __shared__ int shared[THREADS];
    rounds(k, shared, true);
}

/* What is written again may still be read. */
__global__ void unordered_rounds(const __grid_constant__ struct numbers k)
{
    __shared__ int shared[THREADS];
    rounds(k, shared, false);
}

/* Warp 1 reads what warp 0 reads first and then writes. */
__global__ void unordered_last_reader(const __grid_constant__ struct numbers k)
{
    SHARED_MEMORY(int, shared);
    if (threadIdx.x == 0)
        shared[0] = 1;
    __syncthreads();
    int seen = shared[0];
    if (threadIdx.x == THREADS - 1)
        shared[0] = 2;
    k.x[blockIdx.x * THREADS / 2 + threadIdx.x / 2 % (THREADS / 2)] = threadIdx.x % 2 ? 0 : seen;
}

/* ---- within a warp ---- */

static __device__ void turn(const struct numbers &k, int *shared, int how)
{
    shared[threadIdx.x] = (int)threadIdx.x;
    if (how == 1)
        __syncwarp();
    int with = __shfl_xor_sync(all_lanes, (int)threadIdx.x, 1);
    if (blockIdx.x == 0)
        k.x[threadIdx.x] = shared[with];
}

__global__ void good_lanes(const __grid_constant__ struct numbers k)
{
    __shared__ int shared[THREADS];
    turn(k, shared, 1);
}

/* A shuffle is no barrier of memory. */
__global__ void unordered_lanes(const __grid_constant__ struct numbers k)
{
    __shared__ int shared[THREADS];
    turn(k, shared, 0);
}

/* ---- between blocks ---- */

__global__ void good_sum(const __grid_constant__ struct numbers k)
{
    atomicAdd(&k.x[0], 1);
}

__global__ void good_volatile(const __grid_constant__ struct numbers k)
{
    *(volatile int *)&k.x[0] = 1;
}

__global__ void unordered_blocks(const __grid_constant__ struct numbers k)
{
    if (threadIdx.x == 0)
        k.x[0] = (int)blockIdx.x;
}

__global__ void unordered_blocks_read(const __grid_constant__ struct numbers k)
{
    if (threadIdx.x == 0)
        k.x[1 + blockIdx.x] = k.x[blockIdx.x];
}

/* An atomic operation orders nothing for who does not use one. */
__global__ void unordered_atomic(const __grid_constant__ struct numbers k)
{
    if (threadIdx.x == 0 && blockIdx.x == 0)
        atomicAdd(&k.x[0], 1);
    else if (threadIdx.x == 0)
        k.x[1] = k.x[0];
}

/* ---- parts of a word ---- */

__global__ void good_bytes(const __grid_constant__ struct numbers k)
{
    k.bytes[blockIdx.x * THREADS + threadIdx.x] = 1;
}

__global__ void unordered_bytes(const __grid_constant__ struct numbers k)
{
    k.bytes[threadIdx.x] = 1;
}

__global__ void unordered_word_and_byte(const __grid_constant__ struct numbers k)
{
    if (threadIdx.x == 0)
        k.bytes[blockIdx.x] = (unsigned char)k.x[1];
    else if (threadIdx.x == 1)
        *(int *)k.bytes = 1;
}

/* ---- what nobody has written ---- */

__global__ void unwritten_shared(const __grid_constant__ struct numbers k)
{
    __shared__ int shared[THREADS];
    if (blockIdx.x == 0)
        shared[threadIdx.x] = 1; /* another block's shared memory */
    __syncthreads();
    if (blockIdx.x == 1)
        k.x[threadIdx.x] = shared[threadIdx.x];
}

__global__ void unwritten_device(const __grid_constant__ struct numbers k)
{
    if (blockIdx.x == 0)
        k.x[threadIdx.x] = k.bytes[threadIdx.x];
}

/* ---- copies that are done later ---- */

static __device__ void late(const struct numbers &k, int *shared, bool wait)
{
    if (threadIdx.x == 0) {
        copy_later<16>(shared, k.x, 16);
        copies_end_group();
        copies_wait<0>();
    }
    if (wait)
        __syncthreads();
    int seen = shared[0];
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x >= 4)
        k.x[threadIdx.x] = seen;
}

__global__ void good_copy(const __grid_constant__ struct numbers k)
{
    SHARED_MEMORY(int, shared);
    late(k, shared, true);
}

__global__ void unordered_copy(const __grid_constant__ struct numbers k)
{
    SHARED_MEMORY(int, shared);
    late(k, shared, false);
}

/* It may arrive while the stage before is still read. */
__global__ void unordered_early_copy(const __grid_constant__ struct numbers k)
{
    SHARED_MEMORY(int, shared);
    if (threadIdx.x < 4)
        shared[threadIdx.x] = 0;
    __syncthreads();
    int seen = shared[threadIdx.x % 4];
    if (threadIdx.x == 0) {
        copy_later<16>(shared, k.x, 16);
        copies_end_group();
    }
    __syncthreads();
    if (threadIdx.x == 0)
        copies_wait<0>();
    if (blockIdx.x == 0 && threadIdx.x >= 4)
        k.x[threadIdx.x] = seen;
}

/* ---- blocks of a cluster, of which there are two ---- */

static __device__ void pass_on(const struct numbers &k, uint2 *shared, bool wait)
{
    bool has_part = threadIdx.x < THREADS / 2;
    if (has_part)
        cluster_put(&shared[threadIdx.x], 1 - cluster_rank(), make_uint2(blockIdx.x, threadIdx.x));
    cluster_arrive();
    if (wait)
        cluster_wait();
    if (!has_part)
        return;
    uint2 seen = shared[threadIdx.x];
    if (wait && (seen.x == blockIdx.x || seen.y != threadIdx.x))
        abort();
    k.bytes[blockIdx.x * THREADS + threadIdx.x] = seen.x != 0;
}

__global__ void good_cluster(const __grid_constant__ struct numbers k)
{
    SHARED_MEMORY(uint2, shared);
    pass_on(k, shared, true);
}

__global__ void unordered_cluster(const __grid_constant__ struct numbers k)
{
    SHARED_MEMORY(uint2, shared);
    pass_on(k, shared, false);
}

/* ---- patterns (host/pattern.h) ---- */

/* Lanes read every second number: 8 sectors instead of 4, and 2 turns of the banks. */
__global__ void good_every_other(const __grid_constant__ struct numbers k)
{
    SHARED_MEMORY(int, shared);
    shared[threadIdx.x] = k.x[threadIdx.x * 2 % THREADS];
    __syncthreads();
    k.bytes[blockIdx.x * THREADS + threadIdx.x] = shared[threadIdx.x * 2 % THREADS] != 0;
}

/* clang-format off */
#define EACH_CASE(X)                                                                               \
    X(good_exchange) X(unordered_exchange) X(good_rounds) X(unordered_rounds)                      \
    X(unordered_last_reader) X(good_lanes) X(unordered_lanes) X(good_sum) X(good_volatile)         \
    X(unordered_blocks) X(unordered_blocks_read) X(unordered_atomic) X(good_bytes)                 \
    X(unordered_bytes) X(unordered_word_and_byte) X(unwritten_shared) X(unwritten_device)          \
    X(good_copy) X(unordered_copy) X(unordered_early_copy) X(good_every_other)      \
    X(good_cluster) X(unordered_cluster)
/* clang-format on */

static const struct {
    const char *name;
    const void *kernel;
} cases[] = {
#define CASE(name) {#name, KERNEL_ADDRESS(name)},
    EACH_CASE(CASE)};

static void run_case(const void *kernel, unsigned cluster)
{
    struct numbers k = {(int *)memory_take(THREADS * sizeof(int)),
                        (unsigned char *)memory_take(2 * THREADS)};
    void *arguments[] = {&k};
    memory_open();
    memset(k.x, 0, THREADS * sizeof(int));
    watch_written(k.x, THREADS * sizeof(int));
    host_grid_run((const struct host_kernel *)kernel, {2, 1, 1}, {THREADS, 1, 1}, cluster,
                  arguments, 256);
}

int main(int count, char **words)
{
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        if (count < 2)
            puts(cases[k].name);
        else if (strcmp(words[1], cases[k].name) == 0)
            run_case(cases[k].kernel, strstr(words[1], "cluster") ? 2 : 1);
    }
    return 0;
}
