/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums that were computed in slices, each with a result of its own, are added in the order of the
 * slices: the result is the same on any number of threads.
 */
#ifndef ENGINE_KERNELS_LIB_SLICES_H
#define ENGINE_KERNELS_LIB_SLICES_H

#include "base/numbers/integers.h"
#include "base/system/pool.h"
#include "engine/kernels/lib/simd.h"

struct slices {
    const float *from;
    int64_t count, step; /* floats between slices */
    float *to;
    int64_t floats;
};

enum { SLICES_TASK_FLOATS = 4096 };

static inline void slices_add_part(void *context, int64_t task, int thread)
{
    (void)thread;
    const struct slices *s = context;
    int64_t end = (task + 1) * SLICES_TASK_FLOATS;
    end = smaller(end, s->floats);
    for (int64_t k = task * SLICES_TASK_FLOATS; k < end; k += VL) {
        vm lanes = vm_first(end - k);
        vf sum = vf_load_m(s->from + k, lanes);
        for (int64_t slice = 1; slice < s->count; slice++)
            sum = vf_add(sum, vf_load_m(s->from + slice * s->step + k, lanes));
        vf_store_m(s->to + k, lanes, sum);
    }
}

static inline void slices_add(const struct slices *slices, struct pool *pool)
{
    struct slices copy = *slices;
    pool_run(pool, divide_up(copy.floats, SLICES_TASK_FLOATS), slices_add_part, &copy);
}

#endif
