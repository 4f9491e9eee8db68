/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/peak.h"

#include "base/clock.h"
#include "engine/kernels/lib/roof.h"

enum { BURSTS = 7, THREADS_MAX = 1024 };

struct burst {
    roof_compute *run;
    int64_t rounds;
    double flops[THREADS_MAX];
    float sink[THREADS_MAX];
};

static void work(void *context, int64_t tile, int thread)
{
    struct burst *burst = context;
    (void)thread;
    burst->flops[tile] = burst->run(burst->rounds, &burst->sink[tile]);
}

#if defined(__x86_64__)
static roof_compute *const functions[ISA_COUNT] = {roof_fma_f32_scalar, roof_fma_f32_avx2,
                                                   roof_fma_f32_avx512};
#else
static roof_compute *const functions[ISA_COUNT] = {roof_fma_f32_scalar, roof_fma_f32_scalar,
                                                   roof_fma_f32_scalar};
#endif

double peak_fma_f32(struct pool *pool, enum isa isa)
{
    static const int64_t rounds = 60000; /* about 2 ms */
    struct burst burst = {.run = functions[isa], .rounds = rounds};
    int threads = pool_threads(pool) < THREADS_MAX ? pool_threads(pool) : THREADS_MAX;
    double best = 0;
    for (int k = 0; k < BURSTS; k++) {
        uint64_t start = clock_now_ns();
        pool_run(pool, threads, work, &burst);
        double ns = (double)(clock_now_ns() - start), flops = 0;
        for (int t = 0; t < threads; t++)
            flops += burst.flops[t];
        best = flops / ns * 1e9 > best ? flops / ns * 1e9 : best;
    }
    return best;
}
