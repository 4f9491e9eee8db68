/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/compute/moments.h"

struct moments moments_of(const double *x, int64_t count)
{
    struct moments m = {0, 0};
    for (int64_t k = 0; k < count; k++)
        m.mean += x[k];
    m.mean /= (double)count;
    for (int64_t k = 0; k < count; k++)
        m.variance += (x[k] - m.mean) * (x[k] - m.mean);
    m.variance /= (double)count;
    return m;
}
