/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/roofs/peak.h"

#include <math.h>
#include <string.h>

#include "base/registry.h"
#include "base/system/clock.h"
#include "base/system/cpus.h"
#include "engine/kernels/lib/roof.h"

struct burst {
    roof_compute *run;
    int64_t rounds;
    double flops[CPUS_MAX];
    float sink[CPUS_MAX];
};

static void work(void *context, int64_t tile, int thread)
{
    struct burst *burst = context;
    (void)thread;
    burst->flops[tile] = burst->run(burst->rounds, &burst->sink[tile]);
}

struct peak {
    enum precision precision;
    enum isa isa;
    bool (*has)(void); /* beyond isa; NULL: nothing */
    const char *name;
    roof_compute *run;
};

/* The best of each precision first. Where no instruction multiplies bf16 they are widened. */
static const struct peak peaks[] = {
#if BUILT_ISAS > 2
    {PRECISION_F32, ISA_AVX512, NULL, "f32 multiply-adds", roof_fma_f32_avx512},
    {PRECISION_F32, ISA_AVX2, NULL, "f32 multiply-adds", roof_fma_f32_avx2},
    {PRECISION_BF16, ISA_AVX512, cpu_has_bf16, "bf16 dot products (AVX512-BF16)",
     roof_dot_bf16_avx512},
    {PRECISION_BF16, ISA_AVX512, NULL, "f32 multiply-adds, for want of one of bf16",
     roof_fma_f32_avx512},
    {PRECISION_BF16, ISA_AVX2, NULL, "f32 multiply-adds, for want of one of bf16",
     roof_fma_f32_avx2},
    {PRECISION_I8, ISA_AVX512, cpu_has_vnni, "i8 dot products (AVX512-VNNI)",
     roof_dot_i8_vnni_avx512},
    {PRECISION_I8, ISA_AVX512, NULL, "i8 dot products of three instructions", roof_dot_i8_avx512},
    {PRECISION_I8, ISA_AVX2, cpu_has_avx_vnni, "i8 dot products (AVX-VNNI)", roof_dot_i8_vnni_avx2},
    {PRECISION_I8, ISA_AVX2, NULL, "i8 dot products of three instructions", roof_dot_i8_avx2},
#endif
    {PRECISION_F32, ISA_SCALAR, NULL, "f32 multiply-adds", roof_fma_f32_scalar},
    {PRECISION_BF16, ISA_SCALAR, NULL, "f32 multiply-adds, for want of one of bf16",
     roof_fma_f32_scalar},
};

static const struct peak *find(enum isa isa, enum precision precision)
{
    for (int k = 0; k < ARRAY_COUNT(peaks); k++)
        if (peaks[k].precision == precision && peaks[k].isa <= isa &&
            (!peaks[k].has || peaks[k].has()))
            return &peaks[k];
    return NULL;
}

const char *peak_name(enum isa isa, enum precision precision)
{
    const struct peak *peak = find(isa, precision);
    return peak ? peak->name : NULL;
}

double peak_rate(struct pool *pool, enum isa isa, enum precision precision, int bursts)
{
    static const int64_t rounds = 60000; /* about 2 ms */
    const struct peak *peak = find(isa, precision);
    if (!peak)
        return NAN;
    struct burst burst = {.run = peak->run, .rounds = rounds};
    int threads = pool_threads(pool) < CPUS_MAX ? pool_threads(pool) : CPUS_MAX;
    double best = 0;
    for (int k = 0; k < bursts; k++) {
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
               double *clock_hz, const char **reason)
{
    double best = NAN;
    *clock_hz = 0;
    for (int k = 0; k < ceilings->count; k++) {
        const struct ceiling_record *c = &ceilings->records[k];
        if (!is_peak_of(c, point) || c->value <= best)
            continue;
        best = c->value;
        *clock_hz = c->clock_hz;
    }
    *reason = !isnan(best)      ? ""
              : ceilings->count ? "no ceiling of arithmetic in this precision was measured on this "
                                  "device"
                                : "this run measured no ceilings";
    return best;
}
