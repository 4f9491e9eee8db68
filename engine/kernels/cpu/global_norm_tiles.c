/* SPDX-License-Identifier: Apache-2.0
 *
 * GlobalNorm: squares summed tile by tile over all tensors (lib/pieces.h), then over the tiles in
 * their order, so that any number of threads gets the same bits. Blocks are summed in floats, which
 * are added up in double.
 */
#include "engine/kernels/lib/pieces.h"
#include "engine/kernels/lib/simd.h"

struct kernel_state {
    struct pieces pieces;
    int64_t parts; /* whose sums lie in the workspace */
};

struct job {
    const struct kernel_state *state;
    const void *const *in;
    double *sums;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    TRY(query_plain_f32(q, why));
    s->parts = pieces_parts(q, 0, 1);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)s->parts * sizeof(double);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s, size_t *bytes,
                           struct error *err)
{
    return pieces_make(&s->pieces, q, 0, 1, bytes, err);
}

static void release(struct kernel_state *s)
{
    pieces_release(&s->pieces);
}

static double squares(const float *x, int64_t count)
{
    enum { SUMS = 4, STEP = SUMS * VL, BLOCK = 16 * STEP };
    double all = 0;
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t i = first, end = first + BLOCK < count ? first + BLOCK : count;
        vf sum[SUMS] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
        for (; i + STEP <= end; i += STEP) {
            for (int k = 0; k < SUMS; k++) {
                vf value = vf_load(x + i + k * VL);
                sum[k] = vf_fma(value, value, sum[k]);
            }
        }
        for (; i < end; i += VL) {
            vf value = vf_load_m(x + i, vm_first(end - i));
            sum[0] = vf_fma(value, value, sum[0]);
        }
        all += (double)vf_sum(vf_add(vf_add(sum[0], sum[1]), vf_add(sum[2], sum[3])));
    }
    return all;
}

static void run_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct job *job = context;
    const struct pieces *pieces = &job->state->pieces;
    struct part part = part_begin(pieces, tile);
    while (part_next(pieces, tile, &part)) {
        const float *x = job->in[part.tensor];
        job->sums[part.number] = squares(x + part.from, part.to - part.from);
    }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {.state = s, .in = args->in, .sums = args->workspace};
    float *norm = args->out[0];
    double all = 0;
    pool_run(args->pool, s->pieces.tiles, run_tile, &job);
    for (int k = 0; k < s->pieces.count; k++)
        for (int64_t i = 0; i < part_run(&s->pieces, k); i++)
            all += job.sums[part_first(&s->pieces, k) + i];
    *norm = (float)sqrt(all);
}

REGISTER_KERNEL(global_norm_tiles) = {
    NATIVE(global_norm_tiles),
    .ops = OPS("GlobalNorm"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .prepare = prepare,
    .launch = launch,
    .release = release,
};
