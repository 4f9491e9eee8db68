/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/peak.h"

#include <math.h>
#include <string.h>

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

static bool is_peak_of(const struct ceiling_record *c, const struct point_record *point)
{
    return c->kind == CEILING_COMPUTE && !c->datasheet && c->value > 0 &&
           (c->threads == 0 || c->threads == point->threads) &&
           strcmp(c->device, point->device) == 0 && strcmp(c->precision, point->precision) == 0;
}

double peak_of(const struct point_record *point, const struct ceiling_list *ceilings,
               const char **reason)
{
    double best = NAN;
    for (int k = 0; k < ceilings->count; k++)
        if (is_peak_of(&ceilings->records[k], point))
            best = fmax(best, ceilings->records[k].value);
    *reason = !isnan(best)      ? ""
              : ceilings->count ? "no ceiling of arithmetic in this precision was measured on this "
                                  "device"
                                : "this run measured no ceilings";
    return best;
}
