/* SPDX-License-Identifier: Apache-2.0
 *
 * MatchPriors of f32: the priors' corners are laid side by side once, then images are matched each
 * on its own. A vector of priors is compared with a box at a time, and no overlap is stored: the
 * few that are asked for again are computed again. */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/kernels/lib/simd.h"
#include "engine/ops/lib/match.h"

enum { SIDES = 5, PAD = 16, CHUNK = 1024 };

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    struct match m;
    int64_t padded; /* priors, with those after the last one, which overlap nothing */
    bool wide, wants_offsets;
    int threads;
    size_t thread_floats;
    const float *boxes, *priors;
    const void *labels;
    int64_t *classes;
    float *offsets, *memory;
    float *side[SIDES]; /* [padded] each: x1, y1, x2, y2, area */
};

/* One image, in the memory of a thread. */
struct image {
    const float *boxes;
    int64_t n;
    float *largest,
        *box;     /* [padded]: overlap with the box that it overlaps most, and this one or -1 */
    float *free;  /* [padded]: 0 where matched for the sake of a box, else 1 */
    float *reach; /* [B]: most overlap with a free prior; 0: it has a prior, or is none */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    TRY(query_plain_results(q, why));
    for (int k = 0; k < MATCH_INPUTS; k++)
        if ((k != MATCH_LABELS && q->in[k].dtype != DTYPE_F32) || !desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain f32", k);
    if (q->in[MATCH_LABELS].dtype != DTYPE_I32 && q->in[MATCH_LABELS].dtype != DTYPE_I64)
        return UNSUPPORTED(why, "only classes of i32 and i64");
    if (q->out[0].dtype == DTYPE_NONE)
        return UNSUPPORTED(why, "output 0 is not wanted");
    s->m = match_of(q->node, &q->in[MATCH_BOXES].shape, &q->in[MATCH_PRIORS].shape);
    if (s->m.boxes > 1 << 23)
        return UNSUPPORTED(why, "more than 2^23 boxes");
    s->wide = q->in[MATCH_LABELS].dtype == DTYPE_I64;
    s->wants_offsets = q->out_count > 1 && q->out[1].dtype != DTYPE_NONE;
    s->padded = round_up(s->m.priors, PAD);
    s->thread_floats = (size_t)(3 * s->padded + round_up(s->m.boxes, PAD));
    s->threads = q->threads;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return ((size_t)(SIDES * s->padded) + s->thread_floats * (size_t)s->threads) * sizeof(float);
}

static void lay_out(void *context, int64_t chunk, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t last = (chunk + 1) * CHUNK < job->padded ? (chunk + 1) * CHUNK : job->padded;
    for (int64_t p = chunk * CHUNK; p < last; p++) {
        static const float none[4] = {0, 0, 0, 0};
        const float *prior = p < job->m.priors ? job->priors + p * 4 : none;
        for (int k = 0; k < 2; k++) {
            job->side[k][p] = prior[k] - prior[k + 2] * 0.5f;
            job->side[k + 2][p] = prior[k] + prior[k + 2] * 0.5f;
        }
        job->side[4][p] = prior[2] * prior[3];
    }
}

SIMD_INLINE vf overlap(const struct kernel_state *job, const float *box, int64_t p)
{
    vf width = vf_sub(vf_min(vf_load(job->side[2] + p), vf_set1(box[2])),
                      vf_max(vf_load(job->side[0] + p), vf_set1(box[0])));
    vf height = vf_sub(vf_min(vf_load(job->side[3] + p), vf_set1(box[3])),
                       vf_max(vf_load(job->side[1] + p), vf_set1(box[1])));
    vf both = vf_mul(width, height), area = vf_set1((box[2] - box[0]) * (box[3] - box[1]));
    vm touch = vm_and(vf_lt(vf_zero(), width), vf_lt(vf_zero(), height));
    vf all = vf_sub(vf_add(area, vf_load(job->side[4] + p)), both);
    return vf_select(touch, vf_div(both, all), vf_zero());
}

static int64_t label_of(const struct kernel_state *job, int64_t n, int64_t b)
{
    int64_t at = n * job->m.boxes + b;
    return job->wide ? ((const int64_t *)job->labels)[at] : ((const int32_t *)job->labels)[at];
}

static float most_free(const struct kernel_state *job, const struct image *a, int64_t b)
{
    vf largest = vf_zero();
    for (int64_t p = 0; p < job->padded; p += VL)
        largest = vf_max(largest, vf_mul(overlap(job, a->boxes + b * 4, p), vf_load(a->free + p)));
    return vf_max_of(largest);
}

static void find_overlaps(const struct kernel_state *job, const struct image *a)
{
    vf tie = vf_set1((float)(1 + MATCH_TIE));
    for (int64_t p = 0; p < job->padded; p++) {
        a->largest[p] = 0;
        a->box[p] = -1;
        a->free[p] = 1;
    }
    for (int64_t b = 0; b < job->m.boxes; b++) {
        vf reach = vf_zero(), here = vf_set1((float)b);
        a->reach[b] = 0;
        if (label_of(job, a->n, b) <= 0)
            continue;
        for (int64_t p = 0; p < job->padded; p += VL) {
            vf o = overlap(job, a->boxes + b * 4, p), largest = vf_load(a->largest + p);
            vm more = vf_lt(vf_mul(largest, tie), o);
            reach = vf_max(reach, o);
            vf_store(a->largest + p, vf_select(more, o, largest));
            vf_store(a->box + p, vf_select(more, here, vf_load(a->box + p)));
        }
        a->reach[b] = vf_max_of(reach);
    }
}

/* The first free prior that overlaps box b by as much as it can have. */
static int64_t first_free(const struct kernel_state *job, const struct image *a, int64_t b)
{
    vf least = vf_set1(a->reach[b]), tie = vf_set1((float)(1 + MATCH_TIE));
    for (int64_t p = 0; p < job->padded; p += VL) {
        vf o = vf_mul(overlap(job, a->boxes + b * 4, p), vf_load(a->free + p));
        unsigned found = vm_bits(vf_le(least, vf_mul(o, tie)));
        if (found)
            return p + __builtin_ctz(found);
    }
    return NONE;
}

static float overlap_of(const struct kernel_state *job, const float *box, int64_t p)
{
    float lanes[VL];
    vf_store(lanes, overlap(job, box, p / VL * VL));
    return lanes[p % VL];
}

/* The next pair; false: no free prior touches a box that has none. */
static bool serve_box(const struct kernel_state *job, const struct image *a)
{
    float largest = 0;
    int64_t box = NONE;
    for (int64_t b = 0; b < job->m.boxes; b++)
        if (a->reach[b] > largest * (float)(1 + MATCH_TIE)) {
            largest = a->reach[b];
            box = b;
        }
    int64_t p = box == NONE ? NONE : first_free(job, a, box);
    if (p == NONE)
        return false;
    a->free[p] = 0;
    a->box[p] = (float)box;
    a->reach[box] = 0;
    for (int64_t b = 0; b < job->m.boxes; b++)
        if (a->reach[b] > 0 && overlap_of(job, a->boxes + b * 4, p) >= a->reach[b])
            a->reach[b] = most_free(job, a, b);
    return true;
}

static void encode(const struct kernel_state *job, const float *box, const float *prior,
                   float *offset)
{
    for (int k = 0; k < 2; k++) {
        float centre = (box[k] + box[k + 2]) * 0.5f, size = box[k + 2] - box[k];
        offset[k] = (centre - prior[k]) / prior[k + 2] / (float)job->m.variance_xy;
        offset[k + 2] = logf(size / prior[k + 2]) / (float)job->m.variance_size;
    }
}

static void write_targets(const struct kernel_state *job, const struct image *a)
{
    float threshold = (float)job->m.threshold, background = (float)job->m.background;
    int64_t *classes = job->classes + a->n * job->m.priors;
    for (int64_t p = 0; p < job->m.priors; p++) {
        bool matched = a->free[p] == 0 || a->largest[p] >= threshold;
        int64_t box = (int64_t)a->box[p];
        classes[p] = matched ? label_of(job, a->n, box) : -(a->largest[p] >= background);
        if (!job->wants_offsets)
            continue;
        float *offset = job->offsets + (a->n * job->m.priors + p) * 4;
        if (matched)
            encode(job, a->boxes + box * 4, job->priors + p * 4, offset);
        else
            memset(offset, 0, 4 * sizeof(*offset));
    }
}

static void image_work(void *context, int64_t n, int thread)
{
    const struct kernel_state *job = context;
    float *memory = job->memory + (size_t)thread * job->thread_floats;
    struct image a = {.boxes = job->boxes + n * job->m.boxes * 4,
                      .n = n,
                      .largest = memory,
                      .box = memory + job->padded,
                      .free = memory + 2 * job->padded,
                      .reach = memory + 3 * job->padded};
    find_overlaps(job, &a);
    while (job->m.best && serve_box(job, &a))
        continue;
    write_targets(job, &a);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.boxes = args->in[MATCH_BOXES];
    job.labels = args->in[MATCH_LABELS];
    job.priors = args->in[MATCH_PRIORS];
    job.classes = args->out[0];
    job.offsets = job.wants_offsets ? args->out[1] : NULL;
    for (int k = 0; k < SIDES; k++)
        job.side[k] = (float *)args->workspace + k * job.padded;
    job.memory = (float *)args->workspace + SIDES * job.padded;
    pool_run(args->pool, divide_up(job.padded, CHUNK), lay_out, &job);
    pool_run(args->pool, job.m.images, image_work, &job);
}

REGISTER_KERNEL(match_overlaps) = {
    NATIVE(match_overlaps), .ops = OPS("MatchPriors"), .state_size = sizeof(struct kernel_state),
    .plan = plan,           .workspace = workspace,    .launch = launch,
};
