/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/fma_peak.h"

#include "engine/kernels/lib/simd.h"

enum { CHAINS = 12, UNROLL = 8 }; /* more chains than FMA latency x ports (4 x 2) */

double SIMD_FN(fma_peak)(int64_t rounds, float *sink)
{
    vf sum[CHAINS];
    vf a = vf_set1(0.999f), b = vf_set1(1e-3f);
    for (int c = 0; c < CHAINS; c++)
        sum[c] = vf_set1((float)c);
    for (int64_t r = 0; r < rounds; r++)
        for (int u = 0; u < UNROLL; u++)
#pragma GCC unroll 12
            for (int c = 0; c < CHAINS; c++)
                sum[c] = vf_fma(sum[c], a, b);
    float total = 0;
    for (int c = 0; c < CHAINS; c++)
        total += vf_sum(sum[c]);
    *sink = total;
    return (double)rounds * UNROLL * CHAINS * VL * 2;
}
