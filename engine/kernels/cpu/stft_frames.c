/* SPDX-License-Identifier: Apache-2.0
 *
 * STFT of f32: VL frames at once are weighed by the window and transformed
 * (engine/kernels/lib/fft.h). Frames that overlap are read again, from the caches.
 */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/fft_lanes.h"
#include "engine/ops/lib/transform.h"

struct kernel_state {
    struct fft_blocks work;
    struct stft_frames frames;
    struct fft_elements in, out;
    bool windowed;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    struct op_args args = args_of_query(q);
    const struct desc *window = query_in(q, STFT_WINDOW);
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (q->in[STFT_SIGNAL].dtype != DTYPE_F32 || (window && window->dtype != DTYPE_F32))
        return UNSUPPORTED(why, "only f32");
    if (!desc_is_plain(&q->in[STFT_SIGNAL]) || (window && !desc_is_plain(window)) ||
        !desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "only plain memory");
    TRY(stft_frames_of(&args, &s->frames, why));
    TRY(fft_blocks_plan(&s->work, s->frames.length, s->frames.batch * s->frames.frames, q->threads,
                        why));
    s->windowed = window != NULL;
    int64_t parts = s->frames.parts;
    s->in = (struct fft_elements){s->frames.length, parts, parts, 0, VL};
    s->out = (struct fft_elements){s->frames.outputs, 2, 2, 0, VL};
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
    const float *x, *window;
    float *y, *workspace;
};

static void weigh(const struct job *job, float *scratch)
{
    const struct kernel_state *s = job->state;
    for (int64_t k = 0; k < s->frames.length; k++) {
        float *row = fft_row(&s->work.fft, scratch, k);
        vf weight = vf_set1(job->window[k]);
        vf_store(row, vf_mul(vf_load(row), weight));
        vf_store(row + VL, vf_mul(vf_load(row + VL), weight));
    }
}

static void block_work(void *context, int64_t block, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    const struct stft_frames *f = &s->frames;
    float *scratch = fft_blocks_scratch(&s->work, job->workspace, block, thread);
    int64_t first = block * VL;
    int count = (int)smaller(f->batch * f->frames - first, VL);
    struct fft_lanes from = {.count = count}, to = {.count = count};
    for (int j = 0; j < count; j++) {
        int64_t frame = first + j;
        from.at[j] = frame / f->frames * f->samples + frame % f->frames * f->step;
        to.at[j] = frame * f->outputs;
    }
    fft_lanes_end(&from);
    fft_lanes_end(&to);
    fft_lanes_load(&from, &s->in, job->x, &s->work.fft, scratch);
    if (s->windowed)
        weigh(job, scratch);
    fft_lanes_store(&to, &s->out, fft_run(&s->work.fft, scratch), job->y);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {s, args->in[STFT_SIGNAL], s->windowed ? args->in[STFT_WINDOW] : NULL,
                      args->out[0], args->workspace};
    pool_run(args->pool, s->work.blocks, block_work, &job);
}

REGISTER_KERNEL(stft_frames) = {
    NATIVE(stft_frames), .ops = OPS("STFT"),     .state_size = sizeof(struct kernel_state),
    .plan = plan,        .workspace = workspace, .prepare = prepare,
    .launch = launch,    .release = release,
};
