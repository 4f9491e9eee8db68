/* SPDX-License-Identifier: Apache-2.0
 * The timed part of engine/kernels/lib/copy_plan.h. */
#include "base/numbers/integers.h"
#include "engine/kernels/lib/copy_block.h"
#include "engine/kernels/lib/copy_bytes.h"
#include "engine/kernels/lib/copy_plan.h"

/* ---- innermost loops ---- */

#define STRIDED(name, copy)                                                                        \
    static void name(char *dst, const char *src, int64_t count, const struct copy_loop *step)      \
    {                                                                                              \
        for (int64_t k = 0; k < count; k++)                                                        \
            copy(dst + k * step->dst, src + k * step->src);                                        \
    }
SIMD_INLINE void copy_1(char *dst, const char *src)
{
    *dst = *src;
}
STRIDED(strided_1, copy_1)
STRIDED(strided_2, copy_2)
STRIDED(strided_4, copy_4)
STRIDED(strided_8, copy_8)
STRIDED(strided_16, copy_16)
STRIDED(strided_32, copy_32)
STRIDED(strided_64, copy_64)

/* `count` pieces of `bytes` each, at the strides of step. */
static void strided(char *dst, const char *src, int64_t count, int64_t bytes,
                    const struct copy_loop *step)
{
    switch (bytes) {
    case 1:
        strided_1(dst, src, count, step);
        return;
    case 2:
        strided_2(dst, src, count, step);
        return;
    case 4:
        strided_4(dst, src, count, step);
        return;
    case 8:
        strided_8(dst, src, count, step);
        return;
    case 16:
        strided_16(dst, src, count, step);
        return;
    case 32:
        strided_32(dst, src, count, step);
        return;
    case 64:
        strided_64(dst, src, count, step);
        return;
    default:
        for (int64_t k = 0; k < count; k++)
            copy_run(dst + k * step->dst, src + k * step->src, bytes);
    }
}

/* ---- units ---- */

/* Where a unit is. */
struct cursor {
    int64_t index[COPY_LOOPS];
    const char *src;
    char *dst;
};

static void cursor_init(struct cursor *c, const struct copy_plan *plan, int64_t unit)
{
    for (int k = plan->loop_count - 1; k >= 0; k--) {
        c->index[k] = unit % plan->loops[k].extent;
        unit /= plan->loops[k].extent;
        c->src += c->index[k] * plan->loops[k].src;
        c->dst += c->index[k] * plan->loops[k].dst;
    }
}

/* `count` units on; they end within the innermost loop or at its end. */
static void cursor_advance(struct cursor *c, const struct copy_plan *plan, int64_t count)
{
    for (int k = plan->loop_count - 1; k >= 0; k--) {
        const struct copy_loop *loop = &plan->loops[k];
        c->index[k] += count;
        c->src += count * loop->src;
        c->dst += count * loop->dst;
        if (c->index[k] < loop->extent)
            return;
        c->src -= c->index[k] * loop->src;
        c->dst -= c->index[k] * loop->dst;
        c->index[k] = 0;
        count = 1;
    }
}

static int64_t chunk_size(const struct copy_plan *plan, const struct copy_inner *inner,
                          const struct cursor *c)
{
    if (inner->chunk_loop < 0)
        return inner->extent;
    int64_t at = c->index[inner->chunk_loop];
    bool last = at == plan->loops[inner->chunk_loop].extent - 1;
    return last ? inner->extent - at * inner->chunk : inner->chunk;
}

static void one_unit(const struct copy_plan *plan, const struct cursor *c)
{
    const struct copy_inner *inner = plan->inner;
    int64_t size = chunk_size(plan, inner, c);
    if (plan->how == COPY_TRANSPOSE) {
        struct copy_block block = {c->src,       c->dst, inner[0].src,
                                   inner[1].dst, size,   chunk_size(plan, &inner[1], c)};
        copy_block(&block, plan->elem, plan->stream);
    } else if (plan->how == COPY_FILL) {
        char line[LINE_BYTES];
        copy_pattern(line, c->src, plan->elem);
        copy_fill(c->dst, line, size * plan->elem);
    } else if (plan->stream && size >= 16 * LINE_BYTES) {
        copy_run_stream(c->dst, c->src, size);
    } else {
        copy_run(c->dst, c->src, size);
    }
}

void copy_units(const struct copy_plan *plan, const char *src, char *dst, int64_t first,
                int64_t last)
{
    struct cursor c = {.src = src + plan->src, .dst = dst + plan->dst};
    cursor_init(&c, plan, first);
    int inner = plan->loop_count - 1;
    /* Short runs: one tight loop per pass of the innermost loop. */
    bool short_runs = plan->how == COPY_RUN && inner >= 0 && plan->inner[0].chunk_loop < 0 &&
                      plan->inner[0].extent < 16 * LINE_BYTES;
    for (int64_t unit = first; unit < last;) {
        int64_t count = 1;
        if (short_runs) {
            int64_t left = plan->loops[inner].extent - c.index[inner];
            count = left < last - unit ? left : last - unit;
            strided(c.dst, c.src, count, plan->inner[0].extent, &plan->loops[inner]);
        } else {
            one_unit(plan, &c);
        }
        cursor_advance(&c, plan, count);
        unit += count;
    }
}

/* ---- tiles ---- */

struct job {
    const struct kernel_state *state;
    const struct kernel_args *args;
};

/* What was computed where it is to be copied to stays (engine/compile/parts.c). */
static void part_units(const struct job *job, const struct copy_plan *plan, int64_t first,
                       int64_t last)
{
    const char *src = job->args->in[plan->input];
    char *dst = job->args->out[plan->output];
    if (src + plan->src != dst + plan->dst)
        copy_units(plan, src, dst, first, last);
}

static void tile_work(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t first = tile * s->units_per_tile, last = first + s->units_per_tile;
    last = smaller(last, s->units);
    for (int k = 0; k < s->count && last > 0; k++) {
        const struct copy_plan *plan = &s->plans[k];
        if (s->together) {
            part_units(job, plan, first, last);
            continue;
        }
        int64_t end = last < plan->units ? last : plan->units;
        if (first < end)
            part_units(job, plan, first, end);
        first = first > plan->units ? first - plan->units : 0;
        last -= plan->units;
    }
    simd_fence();
}

void copy_launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct job job = {state, args};
    pool_run(args->pool, state->tiles, tile_work, &job);
}
