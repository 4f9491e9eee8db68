/* SPDX-License-Identifier: Apache-2.0
 *
 * DFT of f32 along any axis by a fast transform of VL lines at once (engine/kernels/lib/fft.h):
 * real and complex, of both directions, half of the frequencies or all. Few lines leave lanes idle.
 */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/fft_lanes.h"
#include "engine/ops/lib/transform.h"

struct kernel_state {
    struct fft_blocks work;
    struct dft_lines lines;
    struct fft_elements in, out;
    float scale;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    struct op_args args = args_of_query(q);
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (q->in[0].dtype != DTYPE_F32)
        return UNSUPPORTED(why, "only f32");
    if (!desc_is_plain(&q->in[0]) || !desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "only plain memory");
    TRY(dft_lines_of(&args, &s->lines, why));
    TRY(fft_blocks_plan(&s->work, s->lines.length, s->lines.in.outer * s->lines.in.inner,
                        q->threads, why));
    int re = s->lines.inverse ? VL : 0;
    int64_t inner = s->lines.in.inner, in = s->lines.parts_in, out = s->lines.parts_out;
    s->in = (struct fft_elements){s->lines.given, inner * in, in, re, VL - re};
    s->out = (struct fft_elements){s->lines.outputs, inner * out, out, re, VL - re};
    s->scale = s->lines.inverse ? (float)(1 / (double)s->lines.length) : 1;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return fft_blocks_bytes(&s->work);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s, size_t *bytes,
                           struct error *err)
{
    (void)q;
    return fft_prepare(&s->work.fft, bytes, err);
}

static void release(struct kernel_state *s)
{
    fft_release(&s->work.fft);
}

struct job {
    const struct kernel_state *state;
    const float *x;
    float *y, *workspace;
};

static struct fft_lanes lanes_of(const struct axis *axis, int64_t block)
{
    struct fft_lanes lanes;
    int64_t first = block * VL;
    lanes.count = (int)smaller(axis->outer * axis->inner - first, VL);
    for (int j = 0; j < lanes.count; j++)
        lanes.at[j] = axis_line(axis, first + j);
    fft_lanes_end(&lanes);
    return lanes;
}

/* The frequencies of a real signal: the second half mirrors the first one. */
static void mirror(const struct kernel_state *s, float *scratch)
{
    int64_t n = s->lines.length;
    vf_store(fft_row(&s->work.fft, scratch, 0) + s->in.im, vf_zero());
    if (n % 2 == 0)
        vf_store(fft_row(&s->work.fft, scratch, n / 2) + s->in.im, vf_zero());
    for (int64_t k = 1; k < (n + 1) / 2; k++) {
        const float *from = fft_row(&s->work.fft, scratch, k);
        float *to = fft_row(&s->work.fft, scratch, n - k);
        vf_store(to + s->in.re, vf_load(from + s->in.re));
        vf_store(to + s->in.im, vf_neg(vf_load(from + s->in.im)));
    }
}

static void load_block(const struct job *job, int64_t block, float *scratch)
{
    const struct kernel_state *s = job->state;
    const struct dft_lines *l = &s->lines;
    struct fft_lanes lanes = lanes_of(&l->in, block);
    fft_lanes_load(&lanes, &s->in, job->x, &s->work.fft, scratch);
    for (int64_t k = l->given; k < l->length; k++) {
        float *row = fft_row(&s->work.fft, scratch, k);
        vf_store(row, vf_zero());
        vf_store(row + VL, vf_zero());
    }
    if (l->mirrored)
        mirror(s, scratch);
}

static void scale_rows(const struct kernel_state *s, float *rows)
{
    vf scale = vf_set1(s->scale);
    for (int64_t k = 0; k < 2 * s->lines.outputs; k++)
        vf_store(rows + k * VL, vf_mul(vf_load(rows + k * VL), scale));
}

static void block_work(void *context, int64_t block, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    float *scratch = fft_blocks_scratch(&s->work, job->workspace, block, thread);
    struct axis out = {s->lines.in.outer, s->lines.outputs, s->lines.in.inner};
    struct fft_lanes lanes = lanes_of(&out, block);
    load_block(job, block, scratch);
    float *rows = fft_run(&s->work.fft, scratch);
    if (s->lines.inverse)
        scale_rows(s, rows);
    fft_lanes_store(&lanes, &s->out, rows, job->y);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {s, args->in[0], args->out[0], args->workspace};
    pool_run(args->pool, s->work.blocks, block_work, &job);
}

REGISTER_KERNEL(dft_lines) = {
    NATIVE(dft_lines), .ops = OPS("DFT"),  .state_size = sizeof(struct kernel_state),
    .plan = plan,      .prepare = prepare, .workspace = workspace,
    .launch = launch,  .release = release,
};
