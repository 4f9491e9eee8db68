/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxPool and AveragePool of images, one to three dimensions, channels-last or plain: a thread
 * per result, neighbours along the dimension that lies together. Where as many channels as fit into
 * 16 bytes lie together on both sides, a thread has that many results, and reads nine taps of its
 * window before it uses one: what a network pools is bound by memory, if not by the arithmetic of
 * places and by taking numbers of 16 bits apart. So there is no division but by divisors that the
 * launch knows, and maxima are of two such numbers at once. */
#include "engine/kernels/cuda/lib/query.h"

enum { ROWS = 3, TAPS = 3 }; /* of a window, read together */

struct pool_window {
    const void *x;
    void *y;
    unsigned count;
    bool average, count_pads, channels_last;
    struct divisor groups, out[SPATIAL_MAX]; /* groups of channels */
    int kernel[SPATIAL_MAX], stride[SPATIAL_MAX], pad[SPATIAL_MAX];
    struct divisor dilation[SPATIAL_MAX];
    int in[SPATIAL_MAX], end[SPATIAL_MAX]; /* end: of the padded input */
    int x_image, x_group, x_at[SPATIAL_MAX];
};

struct place {
    int x; /* image and channel */
    int at[SPATIAL_MAX];
};

static __device__ __forceinline__ unsigned take(unsigned *index, const struct divisor &by)
{
    unsigned next = divide(*index, by), rest = *index - next * by.d;
    *index = next;
    return rest;
}

/* Of group k of results in memory order. */
static __device__ __forceinline__ struct place place_of(const struct pool_window &p, unsigned k)
{
    struct place r = {0, {0, 0, 0}};
    unsigned channel = p.channels_last ? take(&k, p.groups) : 0;
    for (int d = SPATIAL_MAX - 1; d >= 0; d--)
        r.at[d] = (int)take(&k, p.out[d]);
    if (!p.channels_last)
        channel = take(&k, p.groups);
    r.x = (int)k * p.x_image + (int)channel * p.x_group;
    return r;
}

/* Taps [first, last) inside the input, and how many are inside the padded one. */
struct span {
    int first, last, at, padded;
};

/* Taps that begin in the next `length` elements: none if it is negative. */
static __device__ __forceinline__ int taps_in(int length, const struct divisor &dilation)
{
    return length > 0 ? (int)divide((unsigned)length + dilation.d - 1, dilation) : 0;
}

/* padded: of an average only. */
static __device__ __forceinline__ struct span span_of(const struct pool_window &p, int d, int out,
                                                      bool average)
{
    const struct divisor &dilation = p.dilation[d];
    struct span s = {0, p.kernel[d], out * p.stride[d] - p.pad[d], 0};
    s.first = taps_in(-s.at, dilation);
    s.last = max(min(s.last, taps_in(p.in[d] - s.at, dilation)), s.first);
    if (average)
        s.padded = min(p.kernel[d], taps_in(p.end[d] - s.at, dilation));
    return s;
}

#define GROUP(element) ((int)(16 / sizeof(element)))

/* What a thread reads at once: 16 bytes, or one element. */
template <class element, int width> struct tap {
    uint4 words;
};

template <class element> struct tap<element, 1> {
    element words;
};

template <int width>
static __device__ __forceinline__ struct group<width> floats_of(const struct tap<float, width> &t) {
    return {{__int_as_float((int)t.words.x), __int_as_float((int)t.words.y),
             __int_as_float((int)t.words.z), __int_as_float((int)t.words.w)}};
}

template <class element, int width>
static __device__ __forceinline__ struct group<width>
floats_of(const struct tap<element, width> &t) {
    const unsigned pair[4] = {t.words.x, t.words.y, t.words.z, t.words.w};
    struct group<width> r;
    for (int i = 0; i < 4; i++) {
        r.v[2 * i] = to_float(element{(uint16_t)pair[i]});
        r.v[2 * i + 1] = to_float(element{(uint16_t)(pair[i] >> 16)});
    }
    return r;
}

template <class element>
static __device__ __forceinline__ struct group<1> floats_of(const struct tap<element, 1> &t) {
    return {{to_float(t.words)}};
}

static __device__ __forceinline__ struct group<1>
floats_of(const struct tap<float, 1> &t) {
    return {{t.words}};
}

/* What changes nothing. */
template <bool average, class element>
static __device__ __forceinline__ void tap_none(struct tap<element, 1> &t)
{
    float_put(&t.words, average ? 0.0f : -INFINITY);
}

template <bool average, class element, int width>
static __device__ __forceinline__ void tap_none(struct tap<element, width> &t)
{
    union {
        element each[4 / sizeof(element)];
        unsigned word;
    } none;
    for (unsigned i = 0; i < 4 / sizeof(element); i++)
        float_put(&none.each[i], average ? 0.0f : -INFINITY);
    t.words = make_uint4(none.word, none.word, none.word, none.word);
}

/* What has been seen of a window. Maxima of 16 bits stay pairs, as they are in memory. */
template <bool average, class element, int width> struct pooled {
    struct group<width> value;
};

template <class element> struct pooled<false, element, 8> {
    uint4 words;
};

template <bool average, class element, int width>
static __device__ __forceinline__ void pooled_begin(struct pooled<average, element, width> &r)
{
    for (int i = 0; i < width; i++)
        r.value.v[i] = average ? 0.0f : -INFINITY;
}

template <class element>
static __device__ __forceinline__ void pooled_begin(struct pooled<false, element, 8> &r)
{
    struct tap<element, 8> none;
    tap_none<false>(none);
    r.words = none.words;
}

template <bool average, class element, int width>
static __device__ __forceinline__ void pooled_join(struct pooled<average, element, width> &r,
                                                   const struct tap<element, width> &t)
{
    struct group<width> x = floats_of(t);
    for (int i = 0; i < width; i++)
        r.value.v[i] = average ? r.value.v[i] + x.v[i] : max_or_nan(r.value.v[i], x.v[i]);
}

template <class element>
static __device__ __forceinline__ void pooled_join(struct pooled<false, element, 8> &r,
                                                   const struct tap<element, 8> &t)
{
    r.words = make_uint4(max_or_nan_of_pairs(element{}, r.words.x, t.words.x),
                         max_or_nan_of_pairs(element{}, r.words.y, t.words.y),
                         max_or_nan_of_pairs(element{}, r.words.z, t.words.z),
                         max_or_nan_of_pairs(element{}, r.words.w, t.words.w));
}

template <bool average, class element, int width>
static __device__ __forceinline__ void
pooled_store(element *y, struct pooled<average, element, width> &r, int counted)
{
    for (int i = 0; i < width && average; i++)
        r.value.v[i] /= (float)counted;
    group_store(y, r.value);
}

template <class element>
static __device__ __forceinline__ void pooled_store(element *y, struct pooled<false, element, 8> &r,
                                                    int)
{
    *(uint4 *)y = r.words;
}

/* Of the taps of up to ROWS rows all are read before the first is used. Taps outside of the window
 * get a value that changes nothing: remembering which of nine are inside takes more predicates than
 * there are. */
template <bool average, class element, int width>
static __device__ __forceinline__ void join_rows(const struct pool_window &p, const element *first,
                                                 int rows, int taps_left,
                                                 struct pooled<average, element, width> &r)
{
    struct tap<element, width> taps[ROWS][TAPS];
    int row_step = (int)p.dilation[1].d * p.x_at[1], step = (int)p.dilation[2].d * p.x_at[2];
#pragma unroll
    for (int b = 0; b < ROWS; b++)
#pragma unroll
        for (int t = 0; t < TAPS; t++) {
            tap_none<average>(taps[b][t]);
            if (b < rows && t < taps_left)
                taps[b][t] = *(const struct tap<element, width> *)(first + b * row_step + t * step);
        }
#pragma unroll
    for (int b = 0; b < ROWS; b++)
#pragma unroll
        for (int t = 0; t < TAPS; t++)
            pooled_join(r, taps[b][t]);
}

template <bool average, class element, int width>
static __device__ __forceinline__ void pool_one(const struct pool_window &p, unsigned k)
{
    struct place at = place_of(p, k);
    struct span s[SPATIAL_MAX];
    struct pooled<average, element, width> r;
    int counted = 1, begin = at.x, step[SPATIAL_MAX];
    for (int d = 0; d < SPATIAL_MAX; d++) {
        s[d] = span_of(p, d, at.at[d], average);
        counted *= p.count_pads ? s[d].padded : s[d].last - s[d].first;
        begin += s[d].at * p.x_at[d];
        step[d] = (int)p.dilation[d].d * p.x_at[d];
    }
    pooled_begin(r);
    for (int a = s[0].first; a < s[0].last; a++)
        for (int b = s[1].first; b < s[1].last; b += ROWS)
            for (int c = s[2].first; c < s[2].last; c += TAPS) {
                int place = begin + a * step[0] + b * step[1] + c * step[2];
                join_rows(p, (const element *)p.x + place, s[1].last - b, s[2].last - c, r);
            }
    pooled_store((element *)p.y + (int64_t)k * width, r, counted);
}

template <bool average, class element, int width>
__global__ void __launch_bounds__(BLOCK, 3) pool_each(const __grid_constant__ struct pool_window p)
{
    KERNEL_BEGIN();
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < p.count; k += gridDim.x * BLOCK)
        pool_one<average, element, width>(p, k);
}

/* ---- hooks ---- */

struct kernel_state {
    struct pool_window p; /* pointers are left open */
    enum dtype type;
    int width; /* results of a thread */
    struct cuda_grid grid;
};

/* 16 bytes of channels, if they lie together and each position begins with such a group. */
static int width_of(const struct desc *x, bool channels_last)
{
    int width = 16 / element_bytes(x->dtype);
    bool fits = channels_last && x->stride[1] == 1 && x->shape.dim[1] % width == 0;
    for (int k = 0; k < x->shape.rank; k++)
        fits = fits && (k == 1 || x->stride[k] % width == 0);
    return fits ? width : 1;
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    struct pool_window *p = &s->p;
    const struct desc *x = &q->in[0], *y = &q->out[0];
    struct window w;
    TRY(floats_supported(q, 0, 1, why));
    if (output_wanted(q, 1))
        return REFUSE(why, "indices are wanted");
    if (q->node->post_count)
        return REFUSE(why, "no fused epilogue");
    p->channels_last = cuda_host->desc_is_nhwc(y);
    if (!p->channels_last && !cuda_host->desc_is_plain(y))
        return REFUSE(why, "the result is neither channels-last nor plain");
    if (!fits_index(x) || !fits_index(y) || !places_fit_index(x))
        return REFUSE(why, "more than 2^31 elements, or as far apart");
    TRY(window_from_node(q->node, &x->shape, NULL, &w, why));
    for (int d = 0; d < SPATIAL_MAX; d++) {
        int own = d - (SPATIAL_MAX - w.rank);
        bool is = own >= 0;
        p->kernel[d] = is ? (int)w.kernel[own] : 1;
        p->stride[d] = is ? (int)w.stride[own] : 1;
        p->dilation[d] = divisor_of(is ? w.dilation[own] : 1);
        p->pad[d] = is ? (int)w.pad_begin[own] : 0;
        p->in[d] = is ? (int)w.in[own] : 1;
        p->end[d] = is ? (int)(w.in[own] + w.pad_end[own]) : 1;
        p->out[d] = divisor_of(is ? w.out[own] : 1);
        p->x_at[d] = is ? (int)x->stride[own + 2] : 0;
    }
    s->width = width_of(x, p->channels_last);
    p->count = (unsigned)(shape_count(&y->shape) / s->width);
    p->groups = divisor_of(x->shape.dim[1] / s->width);
    p->x_image = (int)x->stride[0];
    p->x_group = (int)x->stride[1] * s->width;
    p->average = strcmp(cuda_host->node_op(q->node), "AveragePool") == 0;
    p->count_pads = cuda_host->node_int(q->node, "count_include_pad", 0) != 0;
    s->type = x->dtype;
    s->grid = grid_for(q, p->count);
    return STATUS_OK;
}

template <bool average>
static void launch_windows(const struct kernel_state *state, struct pool_window *p,
                           const struct kernel_args *args)
{
    if (state->width == 1)
        LAUNCH_FLOATS(state->type, (pool_each<average, element, 1>), state->grid, cuda_size(BLOCK),
                      0, p, args);
    else
        LAUNCH_FLOATS(state->type, (pool_each<average, element, GROUP(element)>), state->grid,
                      cuda_size(BLOCK), 0, p, args);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct pool_window p = state->p;
    p.x = args->in[0];
    p.y = args->out[0];
    if (p.average)
        launch_windows<true>(state, &p, args);
    else
        launch_windows<false>(state, &p, args);
}

static const char *const ops[] = {"MaxPool", "AveragePool", NULL};

CUDA_KERNEL(pool) = {CUDA_NAME(pool), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
