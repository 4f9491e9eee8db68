/* SPDX-License-Identifier: Apache-2.0 */
#include "base/numbers/integers.h"
#include "engine/kernels/lib/gemm.h"
#include "engine/kernels/lib/simd_square.h"

/* Panels are full width but for the last, which has as many vectors as it needs. */
int64_t gemm_panel_vectors(const struct gemm_plan *plan, int64_t panel)
{
    int64_t left = plan->size.n - panel * plan->size.vectors * VL;
    int64_t vectors = divide_up(left, VL);
    return vectors < plan->size.vectors ? vectors : plan->size.vectors;
}

int64_t gemm_packed_floats(const struct gemm_plan *plan)
{
    int64_t vectors = divide_up(plan->size.n, VL);
    return vectors * VL * plan->size.taps * plan->size.k;
}

static void pack_row(const float *from, int64_t stride, int64_t count, float scale, float *to,
                     int64_t width)
{
    for (int64_t n = 0; n < count; n++)
        to[n] = scale * from[n * stride];
    for (int64_t n = count; n < width; n++)
        to[n] = 0.0f;
}

static void pack_columns(const float *from, const struct gemm_source_b *b, int64_t k, int64_t count,
                         int64_t width, float *to)
{
    if (b->row == 1) {
        for (int64_t n = 0; n < width; n += VL) {
            struct turn turn = {from + n * b->column, b->column, to + n, width};
            turn_rows(turn, count - n, k, vf_set1(b->scale));
        }
        return;
    }
    for (int64_t k0 = 0; k0 < k; k0 += 16) {
        int64_t k1 = k0 + 16 < k ? k0 + 16 : k;
        for (int64_t n = 0; n < width; n++)
            for (int64_t i = k0; i < k1; i++)
                to[i * width + n] = n < count ? b->scale * from[i * b->row + n * b->column] : 0.0f;
    }
}

/* Taps innermost, a column's elements one after the other: weights [N, K, taps]. All taps at once,
 * so that each line of memory is read once. */
static void pack_taps(const struct gemm_size *s, const float *from, int64_t column, int64_t count,
                      int64_t width, float *to)
{
    int64_t all = s->taps * s->k, k = 0, tap = 0;
    for (int64_t at = 0; at < all; at += VL) {
        float *rows[VL];
        int64_t depth = all - at < VL ? all - at : VL;
        for (int64_t i = 0; i < depth; i++) {
            rows[i] = to + (tap * s->k + k) * width;
            if (++tap == s->taps) {
                tap = 0;
                k++;
            }
        }
        for (int64_t n = 0; n < width; n += VL) {
            int64_t columns = count - n < VL ? count - n : VL;
            turn_columns(from + n * column + at, column, rows, depth, columns);
            for (int64_t i = 0; i < depth; i++)
                rows[i] += VL;
        }
    }
}

void gemm_pack_b(const struct gemm_plan *plan, const struct gemm_source_b *from, int64_t first,
                 int64_t last, float *packed)
{
    const struct gemm_size *s = &plan->size;
    int64_t full = (int64_t)s->vectors * VL;
    for (int64_t panel = first; panel < last; panel++) {
        int64_t width = gemm_panel_vectors(plan, panel) * VL, left = s->n - panel * full;
        int64_t count = left < width ? left : width;
        float *to = packed + panel * full * s->taps * s->k;
        if (from->tap == 1 && from->row == s->taps && from->scale == 1.0f) {
            pack_taps(s, from->b + panel * full * from->column, from->column, count, width, to);
            continue;
        }
        for (int64_t tap = 0; tap < s->taps; tap++, to += s->k * width) {
            const float *b = from->b + tap * from->tap + panel * full * from->column;
            if (from->column != 1) {
                pack_columns(b, from, s->k, count, width, to);
                continue;
            }
            for (int64_t k = 0; k < s->k; k++)
                pack_row(b + k * from->row, 1, count, from->scale, to + k * width, width);
        }
    }
}

struct packing {
    const struct gemm_plan *plan;
    const struct gemm_source_b *from;
    float *packed;
};

static void pack_panel(void *context, int64_t panel, int thread)
{
    const struct packing *p = context;
    (void)thread;
    gemm_pack_b(p->plan, p->from, panel, panel + 1, p->packed);
}

void gemm_pack(const struct gemm_plan *plan, const struct gemm_source_b *from, struct pool *pool,
               float *packed)
{
    struct packing packing = {plan, from, packed};
    pool_run(pool, plan->panels, pack_panel, &packing);
}
