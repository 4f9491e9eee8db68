/* SPDX-License-Identifier: Apache-2.0
 *
 * NonMaxSuppression in three steps: corners of all boxes; per image and class a block that sorts
 * and suppresses (lib/suppress.h); the rows of the result, one class behind the other. */
#include "engine/kernels/cuda/lib/suppress.h"

enum { BOXES, SCORES, MOST, IOU, LEAST_SCORE };

struct nms {
    const float *boxes, *scores, *iou, *least; /* iou, least: one number, or NULL */
    const int64_t *most;                       /* the same */
    int64_t *y, *found;                        /* may be NULL */
    float4 *corners;
    rank_key *keys; /* room for each line's; NULL: shared memory is enough */
    unsigned *kept, *counts;
    unsigned lines, classes, count, most_max, rows, room; /* count: boxes of an image */
    unsigned all;                                         /* of all images */
    bool center;
};

__global__ void __launch_bounds__(BLOCK) nms_corners(const __grid_constant__ struct nms k)
{
    unsigned step = gridDim.x * BLOCK;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < k.all; i += step) {
        const float *at = k.boxes + (size_t)i * 4;
        float a = at[0], b = at[1], c = at[2], d = at[3];
        k.corners[i] = k.center ? make_float4(b - d / 2, a - c / 2, b + d / 2, a + c / 2)
                                : make_float4(fminf(a, c), fminf(b, d), fmaxf(a, c), fmaxf(b, d));
    }
}

__global__ void __launch_bounds__(RANK_THREADS) nms_lines(const __grid_constant__ struct nms k)
{
    __shared__ rank_key few[RANK_SHARED];
    __shared__ struct rank_memory ranking;
    __shared__ struct suppress_memory memory;
    unsigned line = blockIdx.x;
    int64_t wanted = k.most ? *k.most : 0;
    rank_key *keys = k.keys ? k.keys + (size_t)line * k.room : few;
    struct candidates c = {
        k.scores + (size_t)line * k.count, DTYPE_F32, 1, k.count, true, false, k.least != NULL,
        k.least ? *k.least : 0.0f};
    struct suppression s = {keys,
                            0,
                            k.most_max,
                            k.corners + (size_t)(line / k.classes) * k.count,
                            k.iou ? *k.iou : 0.0f,
                            k.kept + (size_t)line * k.most_max};
    if (wanted < s.most)
        s.most = wanted < 0 ? 0 : (unsigned)wanted;
    s.count = rank_best(c, k.count, keys, k.room, &ranking);
    unsigned kept = suppress(s, &memory);
    if (threadIdx.x == 0)
        k.counts[line] = kept;
}

/* A block per line; its rows come behind those of the lines before. */
__global__ void __launch_bounds__(BLOCK) nms_rows(const __grid_constant__ struct nms k)
{
    __shared__ unsigned before, all;
    unsigned line = blockIdx.x;
    if (threadIdx.x == 0)
        before = all = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < k.lines; i += BLOCK) {
        atomicAdd(&all, k.counts[i]);
        if (i < line)
            atomicAdd(&before, k.counts[i]);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; k.y && i < k.counts[line]; i += BLOCK) {
        int64_t *row = k.y + (size_t)(before + i) * 3;
        row[0] = line / k.classes;
        row[1] = line % k.classes;
        row[2] = k.kept[(size_t)line * k.most_max + i];
    }
    unsigned step = gridDim.x * BLOCK, end = k.rows * 3;
    for (unsigned i = all * 3 + line * BLOCK + threadIdx.x; k.y && i < end; i += step)
        k.y[i] = 0;
    if (k.found && line == 0 && threadIdx.x == 0)
        *k.found = all;
}

/* ---- hooks ---- */

static bool has_number(const struct kernel_query *q, int input)
{
    return input_given(q, input) && shape_count(&q->in[input].shape) > 0;
}

static enum status supports(const struct kernel_query *q, struct error *why)
{
    TRY(plain_supported(q, why));
    if (q->in[BOXES].dtype != DTYPE_F32 || q->in[SCORES].dtype != DTYPE_F32)
        return REFUSE(why, "only f32");
    if (has_number(q, MOST) && q->in[MOST].dtype != DTYPE_I64)
        return REFUSE(why, "the limit of boxes is not i64");
    if (!output_wanted(q, 0))
        return REFUSE(why, "output 0 is not wanted");
    if (shape_count(&q->in[SCORES].shape) == 0)
        return REFUSE(why, "no boxes");
    return STATUS_OK;
}

static void read_query(const struct kernel_query *q, struct nms *k)
{
    const int64_t *scores = q->in[SCORES].shape.dim;
    *k = (struct nms){};
    k->classes = (unsigned)scores[1];
    k->lines = (unsigned)(scores[0] * scores[1]);
    k->count = (unsigned)scores[2];
    k->all = (unsigned)(scores[0] * scores[2]);
    k->rows = (unsigned)q->out[0].shape.dim[0];
    k->most_max = k->rows / k->lines;
    k->room = power_of_two_from(scores[2]);
    k->center = cuda_host->node_int(q->node, "center_point_box", 0) != 0;
}

/* Puts the parts of the workspace into k; returns how long it is. */
static size_t lay_out(struct nms *k, char *memory)
{
    size_t at = 0;
    k->corners = (float4 *)(memory + at);
    at += padded_bytes(k->all, sizeof(float4));
    k->keys = k->room <= RANK_SHARED ? NULL : (rank_key *)(memory + at);
    at += k->room <= RANK_SHARED ? 0 : padded_bytes((int64_t)k->lines * k->room, sizeof(rank_key));
    k->counts = (unsigned *)(memory + at);
    at += padded_bytes(k->lines, sizeof(unsigned));
    k->kept = (unsigned *)(memory + at);
    return at + padded_bytes(k->rows, sizeof(unsigned));
}

static size_t workspace(const struct kernel_query *q, int variant)
{
    (void)variant;
    struct nms k;
    read_query(q, &k);
    return lay_out(&k, NULL);
}

static void launch(const struct kernel_state *state, const struct kernel_query *q,
                   const struct kernel_args *args)
{
    (void)state;
    struct nms k;
    read_query(q, &k);
    lay_out(&k, (char *)args->workspace);
    k.boxes = (const float *)args->in[BOXES];
    k.scores = (const float *)args->in[SCORES];
    k.most = has_number(q, MOST) ? (const int64_t *)args->in[MOST] : NULL;
    k.iou = has_number(q, IOU) ? (const float *)args->in[IOU] : NULL;
    k.least = has_number(q, LEAST_SCORE) ? (const float *)args->in[LEAST_SCORE] : NULL;
    k.y = (int64_t *)args->out[0];
    k.found = output_wanted(q, 1) ? (int64_t *)args->out[1] : NULL;
    LAUNCH(nms_corners, grid_for(q, k.all), cuda_size(BLOCK), 0, &k, args);
    LAUNCH(nms_lines, cuda_size(k.lines), rank_threads(k.count), 0, &k, args);
    LAUNCH(nms_rows, cuda_size(k.lines), cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"NonMaxSuppression", NULL};

CUDA_KERNEL(nms) = {CUDA_NAME(nms), .ops = ops, .supports = supports, .workspace = workspace,
                    .launch = launch};
