/* SPDX-License-Identifier: Apache-2.0
 *
 * DetectionOutput: all boxes decoded; per image and class the best candidates in order
 * (lib/ranking_lists.h), then those that stay (lib/suppress.h); per image the best of all classes
 * in order. */
#include "engine/kernels/cuda/lib/suppress.h"

enum { LOCATIONS, SCORES, PRIORS };
enum { COLUMNS = 7 };

struct detection {
    const float *locations, *scores, *priors;
    float *rows;
    int64_t *row_counts;           /* may be NULL */
    float4 *boxes;                 /* x1, y1, x2, y2 */
    const unsigned *kept, *counts; /* top_k priors per line; how many are kept */
    const rank_key *best;          /* of each image, best_capacity apart: places in kept_scores */
    const unsigned *best_counts;
    float *kept_scores; /* the same; below every threshold where there is none */
    unsigned images, count, classes, labels, top_k, keep; /* count: priors */
    unsigned best_capacity;
    float least, iou, variance_xy, variance_size;
};

static const float no_score = -1; /* thresholds are not below 0 */

__global__ void __launch_bounds__(BLOCK) detection_boxes(const __grid_constant__ struct detection k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK, all = k.images * k.count;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < all; i += step) {
        const float *at = k.locations + (size_t)i * 4,
                    *prior = k.priors + (size_t)(i % k.count) * 4;
        float x = prior[0] + k.variance_xy * at[0] * prior[2];
        float y = prior[1] + k.variance_xy * at[1] * prior[3];
        float w = prior[2] * expf(k.variance_size * at[2]) / 2;
        float h = prior[3] * expf(k.variance_size * at[3]) / 2;
        k.boxes[i] = make_float4(x - w, y - h, x + w, y + h);
    }
}

/* Scores of what is kept. */
__global__ void __launch_bounds__(BLOCK) detection_kept(const __grid_constant__ struct detection k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK, all = k.images * k.labels * k.top_k;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < all; i += step) {
        unsigned line = i / k.top_k, image = line / k.labels, label = line % k.labels + 1;
        float score = no_score;
        if (i - line * k.top_k < k.counts[line])
            score = k.scores[((size_t)image * k.count + k.kept[i]) * k.classes + label];
        k.kept_scores[i] = score;
    }
}

static __device__ __forceinline__ void write_row(const struct detection &k, unsigned image,
                                                 unsigned place, float *row)
{
    size_t at = (size_t)image * k.labels * k.top_k + place;
    float4 box = k.boxes[(size_t)image * k.count + k.kept[at]];
    row[0] = (float)image;
    row[1] = (float)(place / k.top_k + 1);
    row[2] = k.kept_scores[at];
    row[3] = box.x;
    row[4] = box.y;
    row[5] = box.z;
    row[6] = box.w;
}

__global__ void __launch_bounds__(BLOCK) detection_rows(const __grid_constant__ struct detection k)
{
    KERNEL_BEGIN();
    unsigned image = blockIdx.x, found = k.best_counts[image];
    const rank_key *best = k.best + (size_t)image * k.best_capacity;
    float *rows = k.rows + (size_t)image * k.keep * COLUMNS;
    for (unsigned i = threadIdx.x; i < found; i += BLOCK)
        write_row(k, image, (unsigned)best[i], rows + i * COLUMNS);
    for (unsigned i = found * COLUMNS + threadIdx.x; i < k.keep * COLUMNS; i += BLOCK)
        rows[i] = 0;
    if (k.row_counts && threadIdx.x == 0)
        k.row_counts[image] = found;
}

/* ---- hooks ---- */

static enum status check(const struct kernel_query *q, struct error *why)
{
    TRY(plain_supported(q, why));
    for (int k = 0; k < q->in_count; k++)
        if (q->in[k].dtype != DTYPE_F32)
            return REFUSE(why, "only f32");
    if (!output_wanted(q, 0) || shape_count(&q->in[LOCATIONS].shape) == 0)
        return REFUSE(why, "no boxes, or output 0 is not wanted");
    return STATUS_OK;
}

static void read_query(const struct kernel_query *q, struct detection *k)
{
    const int64_t *scores = q->in[SCORES].shape.dim;
    const struct node *node = q->node;
    int64_t top_k = cuda_host->node_int(node, "top_k", 400);
    k->images = (unsigned)scores[0];
    k->count = (unsigned)scores[1];
    k->classes = (unsigned)scores[2];
    k->labels = k->classes - 1;
    k->top_k = (unsigned)(top_k < scores[1] ? top_k : scores[1]);
    k->keep = (unsigned)cuda_host->node_int(node, "keep", 200);
    k->least = (float)cuda_host->node_float(node, "score_threshold", 0.01);
    k->iou = (float)cuda_host->node_float(node, "iou_threshold", 0.45);
    k->variance_xy = (float)cuda_host->node_float(node, "variance_xy", 0.1);
    k->variance_size = (float)cuda_host->node_float(node, "variance_size", 0.2);
}

/* The steps between the kernels above. */
struct steps {
    struct suppression lines;
    struct rank_lists images;
};

static void plan_steps(const struct kernel_query *q, const struct detection *k, struct steps *s)
{
    struct rank_lists *lines = &s->lines.ranked;
    lines->first = {NULL, DTYPE_F32, k->classes, k->count, true, false, true, k->least};
    lines->lists = s->lines.lines = k->images * k->labels;
    lines->inner = s->lines.lines_each = k->labels;
    lines->outer_step = k->count * k->classes;
    lines->k = s->lines.count = s->lines.limit = k->top_k;
    s->lines.boxes_each = k->count;
    s->lines.iou = k->iou;
    rank_plan(lines, q);
    suppress_plan(&s->lines);
    unsigned all = k->labels * k->top_k;
    s->images.first = {NULL, DTYPE_F32, 1, all, true, false, true, k->least};
    s->images.lists = k->images;
    s->images.inner = 1;
    s->images.outer_step = all;
    s->images.k = k->keep;
    rank_plan(&s->images, q);
}

/* Puts the parts of the workspace into k and s; returns how long it is. Images are ranked where
 * lines were. */
static size_t lay_out(struct detection *k, struct steps *s, char *memory)
{
    int64_t kept = (int64_t)k->images * k->labels * k->top_k;
    size_t at = padded_bytes((int64_t)k->images * k->count, sizeof(float4));
    k->boxes = (float4 *)memory;
    s->lines.boxes = k->boxes;
    k->kept_scores = (float *)(memory + at);
    s->images.first.x = k->kept_scores;
    at += padded_bytes(kept, sizeof(float));
    at += suppress_lay_out(&s->lines, memory + at);
    k->kept = s->lines.kept;
    k->counts = s->lines.counts;
    size_t lines = rank_lay_out(&s->lines.ranked, memory + at);
    size_t images = rank_lay_out(&s->images, memory + at);
    return at + (lines > images ? lines : images);
}

struct kernel_state {
    struct detection k; /* pointers are left open, also in steps */
    struct steps steps;
    size_t workspace;
    unsigned wanted;
    struct cuda_grid boxes, kept;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(check(q, why));
    struct detection *k = &s->k;
    read_query(q, k);
    plan_steps(q, k, &s->steps);
    s->workspace = lay_out(k, &s->steps, NULL);
    s->wanted = outputs_wanted(q);
    s->boxes = grid_for(q, (int64_t)k->images * k->count);
    s->kept = grid_for(q, (int64_t)k->images * k->labels * k->top_k);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    return state->workspace;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct detection k = state->k;
    struct steps s = state->steps;
    lay_out(&k, &s, (char *)args->workspace);
    k.locations = (const float *)args->in[LOCATIONS];
    k.scores = (const float *)args->in[SCORES];
    k.priors = (const float *)args->in[PRIORS];
    k.rows = (float *)args->out[0];
    k.row_counts = (int64_t *)output_of(args, state->wanted, 1);
    s.lines.ranked.first.x = k.scores + 1; /* class 0 is the background */
    LAUNCH(detection_boxes, state->boxes, cuda_size(BLOCK), 0, &k, args);
    rank_launch(&s.lines.ranked, args);
    suppress_launch(&s.lines, args);
    LAUNCH(detection_kept, state->kept, cuda_size(BLOCK), 0, &k, args);
    rank_launch(&s.images, args);
    k.best = s.images.keys;
    k.best_capacity = s.images.capacity;
    k.best_counts = s.images.lengths;
    LAUNCH(detection_rows, cuda_size(k.images), cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"DetectionOutput", NULL};

CUDA_KERNEL(detection) = {CUDA_NAME(detection), .ops = ops, CUDA_PLAN, CUDA_HOOK(workspace),
                          CUDA_HOOK(launch)};
