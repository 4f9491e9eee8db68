/* SPDX-License-Identifier: Apache-2.0
 *
 * MergeSegments: a block per image. Labels that occur are listed in order; then a warp per label
 * goes over all segments of the image for the sums, and again for the extreme ones, in double as
 * the reference does. Few segments have a label and few labels occur, so that reading the labels
 * once more per box is cheaper than sorting. */
#include "engine/kernels/cuda/lib/query.h"

enum { SEGMENTS, LABELS };
enum { X, Y, WIDTH, HEIGHT, SINE, COSINE, FIELDS, BOX_FIELDS = 5 };
enum { THREADS = 512, WARPS = 16 };

struct merge {
    const float *segments;
    const int64_t *labels;
    float *boxes;
    int64_t *counts; /* may be NULL */
    int *places;     /* [images, 2, n]: whether a label occurs; those that do */
    int n;
};

static __device__ __forceinline__ double warp_total(double x)
{
    for (int with = WARP / 2; with > 0; with /= 2)
        x += __shfl_xor_sync(all_lanes, x, with);
    return x;
}

/* A segment's projection; of equal ones the order of segments decides. */
struct extreme {
    double at;
    int segment; /* -1: none yet */
};

static __device__ __forceinline__ bool is_lower(const struct extreme &a, const struct extreme &b)
{
    return a.segment >= 0 &&
           (b.segment < 0 || a.at < b.at || (a.at == b.at && a.segment < b.segment));
}

static __device__ __forceinline__ bool is_higher(const struct extreme &a, const struct extreme &b)
{
    return a.segment >= 0 &&
           (b.segment < 0 || a.at > b.at || (a.at == b.at && a.segment > b.segment));
}

static __device__ __forceinline__ struct extreme from_lane(const struct extreme &e, int with)
{
    return {__shfl_xor_sync(all_lanes, e.at, with), __shfl_xor_sync(all_lanes, e.segment, with)};
}

/* Means of a label's segments (WIDTH is left out), and its direction. */
struct line {
    double mean[FIELDS], ux, uy;
};

static __device__ __forceinline__ struct line line_of(const struct merge &k, const float *segments,
                                                      const int64_t *labels, int label)
{
    struct line l = {};
    double count = 0;
    for (int i = (int)threadIdx.x % WARP; i < k.n; i += WARP) {
        if (labels[i] != label)
            continue;
        count++;
        for (int f = 0; f < FIELDS; f++)
            l.mean[f] += segments[i * FIELDS + f];
    }
    count = warp_total(count);
    for (int f = 0; f < FIELDS; f++)
        l.mean[f] = warp_total(l.mean[f]) / count;
    bool any = l.mean[SINE] != 0 || l.mean[COSINE] != 0;
    double angle = any ? atan(l.mean[SINE] / l.mean[COSINE]) : 0;
    l.ux = cos(angle);
    l.uy = sin(angle);
    return l;
}

static __device__ __forceinline__ void write_box(const struct merge &k, const float *segments,
                                                 const int64_t *labels, int label, float *box)
{
    struct line l = line_of(k, segments, labels, label);
    struct extreme low = {0, -1}, high = {0, -1};
    for (int i = (int)threadIdx.x % WARP; i < k.n; i += WARP) {
        const float *s = segments + i * FIELDS;
        if (labels[i] != label)
            continue;
        struct extreme e = {(s[X] - l.mean[X]) * l.ux + (s[Y] - l.mean[Y]) * l.uy, i};
        low = is_lower(e, low) ? e : low;
        high = is_higher(e, high) ? e : high;
    }
    for (int with = WARP / 2; with > 0; with /= 2) {
        struct extreme a = from_lane(low, with), b = from_lane(high, with);
        low = is_lower(a, low) ? a : low;
        high = is_higher(b, high) ? b : high;
    }
    if (threadIdx.x % WARP)
        return;
    double middle = (low.at + high.at) / 2;
    double ends = (double)segments[low.segment * FIELDS + WIDTH] +
                  (double)segments[high.segment * FIELDS + WIDTH];
    box[X] = (float)(l.mean[X] + middle * l.ux);
    box[Y] = (float)(l.mean[Y] + middle * l.uy);
    box[WIDTH] = (float)(high.at - low.at + ends / 2);
    box[HEIGHT] = (float)l.mean[HEIGHT];
    box[4] = (float)asin(l.uy);
}

/* Labels that occur, in order, by the first warp; returns how many. */
static __device__ __forceinline__ int list_labels(const volatile int *occurs, int *list, int n)
{
    int found = 0;
    unsigned lane = threadIdx.x;
    for (int from = 0; from < n; from += WARP) {
        int label = from + (int)lane;
        bool is = label < n && occurs[label];
        unsigned bits = __ballot_sync(all_lanes, is);
        if (is)
            list[found + __popc(bits & ((1u << lane) - 1))] = label;
        found += __popc(bits);
    }
    return found;
}

__global__ void __launch_bounds__(THREADS) segments_images(const __grid_constant__ struct merge k)
{
    KERNEL_BEGIN();
    __shared__ int found;
    const int64_t *labels = k.labels + (size_t)blockIdx.x * (unsigned)k.n;
    const float *segments = k.segments + (size_t)blockIdx.x * (unsigned)k.n * FIELDS;
    float *boxes = k.boxes + (size_t)blockIdx.x * (unsigned)k.n * BOX_FIELDS;
    int *list = k.places + ((size_t)blockIdx.x * 2 + 1) * (unsigned)k.n;
    volatile int *occurs = list - k.n; /* several threads write the same 1 */
    for (int i = (int)threadIdx.x; i < k.n; i += THREADS)
        occurs[i] = 0;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < k.n; i += THREADS)
        if (labels[i] >= 0 && labels[i] < k.n)
            occurs[labels[i]] = 1;
    __syncthreads();
    if (threadIdx.x < WARP) {
        int count = list_labels(occurs, list, k.n);
        if (threadIdx.x == 0)
            found = count;
    }
    __syncthreads();
    for (int b = (int)threadIdx.x / WARP; b < found; b += WARPS)
        write_box(k, segments, labels, list[b], boxes + b * BOX_FIELDS);
    for (int i = found * BOX_FIELDS + (int)threadIdx.x; i < k.n * BOX_FIELDS; i += THREADS)
        boxes[i] = 0;
    if (k.counts && threadIdx.x == 0)
        k.counts[blockIdx.x] = found;
}

/* ---- hooks ---- */

struct kernel_state {
    struct merge k; /* pointers are left open */
    unsigned images, wanted;
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(plain_supported(q, why));
    if (q->in[SEGMENTS].dtype != DTYPE_F32 || q->in[LABELS].dtype != DTYPE_I64)
        return REFUSE(why, "only f32 with i64 labels");
    if (!output_wanted(q, 0))
        return REFUSE(why, "boxes are not wanted");
    s->images = (unsigned)q->in[LABELS].shape.dim[0];
    s->wanted = outputs_wanted(q);
    s->k.n = (int)q->in[LABELS].shape.dim[1];
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *state)
{
    return 2 * (size_t)state->images * (size_t)state->k.n * sizeof(int);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct merge k = state->k;
    k.segments = (const float *)args->in[SEGMENTS];
    k.labels = (const int64_t *)args->in[LABELS];
    k.boxes = (float *)args->out[0];
    k.counts = (int64_t *)output_of(args, state->wanted, 1);
    k.places = (int *)args->workspace;
    LAUNCH(segments_images, cuda_size(state->images), cuda_size(THREADS), 0, &k, args);
}

static const char *const ops[] = {"MergeSegments", NULL};

CUDA_KERNEL(segments) = {CUDA_NAME(segments), .ops = ops, CUDA_PLAN, CUDA_HOOK(workspace),
                         CUDA_HOOK(launch)};
