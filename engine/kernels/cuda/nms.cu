/* SPDX-License-Identifier: Apache-2.0
 *
 * NonMaxSuppression: corners of all boxes; per image and class the candidates in order
 * (lib/ranking_lists.h), then those that stay (lib/suppress.h); the rows of the result, one class
 * after the other. */
#include "engine/kernels/cuda/lib/suppress.h"

enum { BOXES, SCORES, LIMIT, IOU, LEAST_SCORE };

struct nms {
    const float *boxes;
    int64_t *y, *found; /* may be NULL */
    float4 *corners;
    const unsigned *kept, *counts;
    unsigned lines, classes, count, limit_max, rows; /* count: boxes of an image */
    unsigned all;                                    /* of all images */
    bool center;
};

__global__ void __launch_bounds__(BLOCK) nms_corners(const __grid_constant__ struct nms k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < k.all; i += step) {
        const float *at = k.boxes + (size_t)i * 4;
        float a = at[0], b = at[1], c = at[2], d = at[3];
        k.corners[i] = k.center ? make_float4(b - d / 2, a - c / 2, b + d / 2, a + c / 2)
                                : make_float4(fminf(a, c), fminf(b, d), fmaxf(a, c), fmaxf(b, d));
    }
}

/* Blocks (line, y) write the rows of a line after those of the lines before; all of them, zeros
 * after the last. */
__global__ void __launch_bounds__(BLOCK) nms_rows(const __grid_constant__ struct nms k)
{
    KERNEL_BEGIN();
    __shared__ unsigned before, all;
    unsigned line = blockIdx.x, t = blockIdx.y * BLOCK + threadIdx.x, each = gridDim.y * BLOCK;
    if (threadIdx.x == 0)
        before = all = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < k.lines; i += BLOCK) {
        atomicAdd(&all, k.counts[i]);
        if (i < line)
            atomicAdd(&before, k.counts[i]);
    }
    __syncthreads();
    for (unsigned i = t; k.y && i < k.counts[line]; i += each) {
        int64_t *row = k.y + (size_t)(before + i) * 3;
        row[0] = line / k.classes;
        row[1] = line % k.classes;
        row[2] = k.kept[(size_t)line * k.limit_max + i];
    }
    unsigned step = gridDim.x * each, end = k.rows * 3;
    for (unsigned i = all * 3 + line * each + t; k.y && i < end; i += step)
        k.y[i] = 0;
    if (k.found && line == 0 && t == 0)
        *k.found = all;
}

/* ---- hooks ---- */

struct kernel_state {
    struct nms k; /* pointers are left open, also in s */
    struct suppression s;
    size_t workspace;
    unsigned numbers, wanted; /* numbers: bit i: input i has one */
    unsigned parts;           /* blocks that write the rows of a line */
    struct cuda_grid corners;
};

static bool has_number(const struct kernel_query *q, int input)
{
    return input_given(q, input) && shape_count(&q->in[input].shape) > 0;
}

static enum status check(const struct kernel_query *q, struct error *why)
{
    TRY(plain_supported(q, why));
    if (q->in[BOXES].dtype != DTYPE_F32 || q->in[SCORES].dtype != DTYPE_F32)
        return REFUSE(why, "only f32");
    if (has_number(q, LIMIT) && q->in[LIMIT].dtype != DTYPE_I64)
        return REFUSE(why, "the limit of boxes is not i64");
    if (!output_wanted(q, 0))
        return REFUSE(why, "output 0 is not wanted");
    if (shape_count(&q->in[SCORES].shape) == 0)
        return REFUSE(why, "no boxes");
    return STATUS_OK;
}

static void read_query(const struct kernel_query *q, struct nms *k, struct suppression *s)
{
    const int64_t *scores = q->in[SCORES].shape.dim;
    k->classes = (unsigned)scores[1];
    k->lines = (unsigned)(scores[0] * scores[1]);
    k->count = (unsigned)scores[2];
    k->all = (unsigned)(scores[0] * scores[2]);
    k->rows = (unsigned)q->out[0].shape.dim[0];
    k->limit_max = k->rows / k->lines;
    k->center = cuda_host->node_int(q->node, "center_point_box", 0) != 0;
    s->ranked.first = {NULL, DTYPE_F32, 1, k->count, true, false, has_number(q, LEAST_SCORE), 0.0f};
    s->ranked.lists = s->lines = k->lines;
    s->ranked.inner = 1;
    s->ranked.outer_step = s->ranked.k = k->count;
    s->count = s->boxes_each = k->count;
    s->lines_each = k->classes;
    s->limit = k->limit_max;
    rank_plan(&s->ranked, q);
    suppress_plan(s);
}

/* Puts the parts of the workspace into k and s; returns how long it is. */
static size_t lay_out(struct nms *k, struct suppression *s, char *memory)
{
    size_t at = padded_bytes(k->all, sizeof(float4));
    k->corners = (float4 *)memory;
    s->boxes = k->corners;
    at += rank_lay_out(&s->ranked, memory + at);
    at += suppress_lay_out(s, memory + at);
    k->kept = s->kept;
    k->counts = s->counts;
    return at;
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(check(q, why));
    read_query(q, &s->k, &s->s);
    s->workspace = lay_out(&s->k, &s->s, NULL);
    s->wanted = outputs_wanted(q);
    for (int i = LIMIT; i <= LEAST_SCORE; i++)
        s->numbers |= (unsigned)has_number(q, i) << i;
    int64_t numbers = (int64_t)s->k.rows * 3 + 1; /* and how many rows were found */
    s->parts = (unsigned)div_up(grid_for(q, numbers).x, s->k.lines);
    s->corners = grid_for(q, s->k.all);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    return state->workspace;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct nms k = state->k;
    struct suppression s = state->s;
    lay_out(&k, &s, (char *)args->workspace);
    k.boxes = (const float *)args->in[BOXES];
    k.y = (int64_t *)args->out[0];
    k.found = (int64_t *)output_of(args, state->wanted, 1);
    s.ranked.first.x = args->in[SCORES];
    s.ranked.least = (const float *)input_of(args, state->numbers, LEAST_SCORE);
    s.wanted = (const int64_t *)input_of(args, state->numbers, LIMIT);
    s.iou_at = (const float *)input_of(args, state->numbers, IOU);
    LAUNCH(nms_corners, state->corners, cuda_size(BLOCK), 0, &k, args);
    rank_launch(&s.ranked, args);
    suppress_launch(&s, args);
    LAUNCH(nms_rows, cuda_size(k.lines, state->parts), cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"NonMaxSuppression", NULL};

CUDA_KERNEL(nms) = {CUDA_NAME(nms), .ops = ops, CUDA_PLAN, CUDA_HOOK(workspace), CUDA_HOOK(launch)};
