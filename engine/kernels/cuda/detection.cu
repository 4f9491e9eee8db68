/* SPDX-License-Identifier: Apache-2.0
 *
 * DetectionOutput in three steps: all boxes decoded; per image and class a block that selects,
 * sorts and suppresses (lib/suppress.h); per image a block that puts the best of all classes in
 * order. */
#include "engine/kernels/cuda/lib/suppress.h"

enum { LOCATIONS, SCORES, PRIORS };
enum { COLUMNS = 7 };

struct detection {
    const float *locations, *scores, *priors;
    float *rows;
    int64_t *row_counts; /* may be NULL */
    float4 *boxes;       /* x1, y1, x2, y2 */
    rank_key *keys;      /* room for each block's; NULL: shared memory is enough */
    unsigned *kept;      /* top_k priors per line */
    float *kept_scores;  /* the same; below every threshold where there is none */
    unsigned images, count, classes, labels, top_k, keep; /* count: priors */
    unsigned line_room, image_room;
    float least, iou, variance_xy, variance_size;
};

static const float no_score = -1; /* thresholds are not below 0 */

__global__ void __launch_bounds__(BLOCK) detection_boxes(const __grid_constant__ struct detection k)
{
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

__global__ void __launch_bounds__(RANK_THREADS)
    detection_lines(const __grid_constant__ struct detection k)
{
    __shared__ rank_key few[RANK_SHARED];
    __shared__ struct rank_memory ranking;
    __shared__ struct suppress_memory memory;
    unsigned line = blockIdx.x, image = line / k.labels, label = line % k.labels + 1;
    rank_key *keys = k.keys ? k.keys + (size_t)line * k.line_room : few;
    const float *scores = k.scores + (size_t)image * k.count * k.classes + label;
    struct candidates c = {scores, DTYPE_F32, k.classes, k.count, true, false, true, k.least};
    struct suppression s = {keys,    0,
                            k.top_k, k.boxes + (size_t)image * k.count,
                            k.iou,   k.kept + (size_t)line * k.top_k};
    s.count = rank_best(c, k.top_k, keys, k.line_room, &ranking);
    unsigned kept = suppress(s, &memory);
    for (unsigned i = threadIdx.x; i < k.top_k; i += blockDim.x)
        k.kept_scores[(size_t)line * k.top_k + i] =
            i < kept ? scores[(size_t)s.kept[i] * k.classes] : no_score;
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

__global__ void __launch_bounds__(RANK_THREADS)
    detection_rows(const __grid_constant__ struct detection k)
{
    __shared__ rank_key few[RANK_SHARED];
    __shared__ struct rank_memory ranking;
    unsigned image = blockIdx.x, all = k.labels * k.top_k;
    rank_key *keys = k.keys ? k.keys + (size_t)image * k.image_room : few;
    struct candidates c = {
        k.kept_scores + (size_t)image * all, DTYPE_F32, 1, all, true, false, true, k.least};
    unsigned found = rank_best(c, k.keep, keys, k.image_room, &ranking);
    float *rows = k.rows + (size_t)image * k.keep * COLUMNS;
    for (unsigned i = threadIdx.x; i < found; i += blockDim.x)
        write_row(k, image, (unsigned)keys[i], rows + i * COLUMNS);
    for (unsigned i = found * COLUMNS + threadIdx.x; i < k.keep * COLUMNS; i += blockDim.x)
        rows[i] = 0;
    if (k.row_counts && threadIdx.x == 0)
        k.row_counts[image] = found;
}

/* ---- hooks ---- */

static enum status supports(const struct kernel_query *q, struct error *why)
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
    *k = (struct detection){};
    k->images = (unsigned)scores[0];
    k->count = (unsigned)scores[1];
    k->classes = (unsigned)scores[2];
    k->labels = k->classes - 1;
    k->top_k = (unsigned)(top_k < scores[1] ? top_k : scores[1]);
    k->keep = (unsigned)cuda_host->node_int(node, "keep", 200);
    k->line_room = power_of_two_from(k->top_k);
    k->image_room = power_of_two_from(k->keep);
    k->least = (float)cuda_host->node_float(node, "score_threshold", 0.01);
    k->iou = (float)cuda_host->node_float(node, "iou_threshold", 0.45);
    k->variance_xy = (float)cuda_host->node_float(node, "variance_xy", 0.1);
    k->variance_size = (float)cuda_host->node_float(node, "variance_size", 0.2);
}

/* Puts the parts of the workspace into k; returns how long it is. Keys of images take the place of
 * those of lines. */
static size_t lay_out(struct detection *k, char *memory)
{
    size_t at = 0;
    int64_t lines = (int64_t)k->images * k->labels;
    int64_t line_keys = lines * k->line_room, image_keys = (int64_t)k->images * k->image_room;
    bool few = k->line_room <= RANK_SHARED && k->image_room <= RANK_SHARED;
    k->boxes = (float4 *)(memory + at);
    at += padded_bytes((int64_t)k->images * k->count, sizeof(float4));
    k->keys = few ? NULL : (rank_key *)(memory + at);
    at += few ? 0 : padded_bytes(line_keys > image_keys ? line_keys : image_keys, sizeof(rank_key));
    k->kept = (unsigned *)(memory + at);
    at += padded_bytes(lines * k->top_k, sizeof(unsigned));
    k->kept_scores = (float *)(memory + at);
    return at + padded_bytes(lines * k->top_k, sizeof(float));
}

static size_t workspace(const struct kernel_query *q, int variant)
{
    (void)variant;
    struct detection k;
    read_query(q, &k);
    return lay_out(&k, NULL);
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    struct detection k;
    read_query(q, &k);
    lay_out(&k, (char *)args->workspace);
    k.locations = (const float *)args->in[LOCATIONS];
    k.scores = (const float *)args->in[SCORES];
    k.priors = (const float *)args->in[PRIORS];
    k.rows = (float *)args->out[0];
    k.row_counts = output_wanted(q, 1) ? (int64_t *)args->out[1] : NULL;
    LAUNCH(detection_boxes, grid_for(q, (int64_t)k.images * k.count), cuda_size(BLOCK), 0, &k,
           args);
    LAUNCH(detection_lines, cuda_size(k.images * k.labels), rank_threads(k.count), 0, &k, args);
    LAUNCH(detection_rows, cuda_size(k.images), rank_threads((int64_t)k.labels * k.top_k), 0, &k,
           args);
}

static const char *const ops[] = {"DetectionOutput", NULL};

CUDA_KERNEL(detection) = {CUDA_NAME(detection), .ops = ops, .supports = supports,
                          .workspace = workspace, .launch = launch};
