/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of few queries, as when text is generated token by token: a block has a stretch of the
 * keys of one head and all queries of all heads that share it, so that keys and values are read
 * once and one long sequence keeps all multiprocessors busy. A second launch joins the stretches
 * (Dao et al., "Flash-Decoding", 2023).
 *
 * The lanes of a team read a key, 16 bytes each, and the next ones while they multiply; when they
 * add up what each has, they share the scores out among them. Scores of a stretch are in shared
 * memory, so that no register holds queries and results at the same time, and each weight is
 * computed once.
 *
 * On an H200 memory brings a multiprocessor 16 bytes for each of a warp's lanes every 25 clocks, in
 * which it issues 100 instructions. Those 16 bytes cost 41 of them in f32 and four rows, 65 in 16
 * bits (8 conversions, 32 multiply-adds): memory is the limit. For eight rows it is 66 and 110: in
 * 16 bits issue is the limit, at nine tenths of memory's rate. */
#include "engine/kernels/cuda/lib/attention.h"

enum {
    THREADS = 128,
    WARPS = THREADS / WARP,
    CHUNK = 16,    /* bytes of a load */
    LOADS = 4,     /* of a lane and step: while they arrive those before are used */
    SUMS = 16,     /* of a lane, of which it shares out the scores at once */
    ROUND_TO = 64, /* keys: no block takes more in a step */
};

struct rows_attention {
    struct attention a;
    unsigned rows; /* queries of the heads that share keys: head by head */
    unsigned row_blocks;
    unsigned stretch, stretches; /* keys of a block; blocks of a head */
    unsigned room;               /* keys whose scores have a place: `stretch`, or all rounded up */
    unsigned pitch;              /* floats of a row in sums */
    struct divisor queries;
    float *sums;    /* [batch, head, query][stretch][pitch], if there are several stretches */
    float *numbers; /* the same [2]: largest score, total of the weights */
};

/* whole: rows begin and end at multiples of 16 bytes. Others are read element by element, whatever
 * type they are of, and are floats from there on. */
template <class type, unsigned columns, unsigned rows, bool whole> struct sizes {
    using element = type;
    static constexpr bool WHOLE = whole;
    static constexpr unsigned COLUMNS = columns, ROWS = rows;
    static constexpr unsigned WIDTH = (unsigned)CHUNK / sizeof(type);
    /* Lanes of a team, chunks and columns of a lane. */
    static constexpr unsigned LANES = columns / WIDTH < WARP ? columns / WIDTH : (unsigned)WARP;
    static constexpr unsigned CHUNKS = columns / WIDTH / LANES, EACH = CHUNKS * WIDTH;
    /* Keys that a lane reads in a step, and a warp. */
    static constexpr unsigned TEAMS = WARP / LANES, KEYS = (unsigned)LOADS / CHUNKS;
    static constexpr unsigned STEP = TEAMS * KEYS;
    /* As many as registers allow: the more, the more bytes are on their way. */
    static constexpr unsigned BLOCKS = rows > 4 ? 3 : 4;
};

/* Keys or values of the block. */
template <class L> struct lines {
    const void *data;
    unsigned start, row;  /* the element where the first one begins; from one to the next */
    unsigned count, size; /* keys; elements of one */
    int type;
};

template <class L> struct chunks {
    uint4 v[L::KEYS][L::CHUNKS];
};

/* What a block has of the whole. */
struct task {
    unsigned batch, head; /* of keys and values */
    unsigned row0, key0, count;
};

/* ---- what lies where ---- */

template <class L>
static __device__ __forceinline__ struct task task_of(const struct rows_attention &t)
{
    struct task task;
    task.batch = blockIdx.z;
    task.head = blockIdx.y / t.row_blocks;
    task.row0 = blockIdx.y % t.row_blocks * L::ROWS;
    task.key0 = blockIdx.x * t.stretch;
    task.count = min(t.stretch, t.a.keys - task.key0);
    return task;
}

/* Whose row it is: what is beyond the last one counts as the last one, whose results are not stored
 * twice. */
struct whose {
    unsigned head, query;
};

static __device__ __forceinline__ struct whose whose_row(const struct rows_attention &t,
                                                         const struct task &task, unsigned r)
{
    unsigned row = min(task.row0 + r, t.rows - 1), head = divide(row, t.queries);
    return {task.head * t.a.group + head, row - head * t.a.queries};
}

/* The line of sums and numbers. */
static __device__ __forceinline__ size_t line_of(const struct rows_attention &t, unsigned batch,
                                                 struct whose w)
{
    return ((size_t)batch * t.a.heads + w.head) * t.a.queries + w.query;
}

static __device__ __forceinline__ size_t result_of(const struct rows_attention &t, unsigned batch,
                                                   struct whose w)
{
    return (((size_t)batch * t.a.queries + w.query) * t.a.heads + w.head) * t.a.size;
}

template <class L>
static __device__ __forceinline__ struct lines<L>
lines_of(const struct rows_attention &t, const struct task &task, const void *data, int64_t row) {
    unsigned start = (task.batch * t.a.keys + task.key0) * (unsigned)row + task.head * t.a.size;
    return {data, start, (unsigned)row, task.count, t.a.size, t.a.type};
}

/* The first column of a lane's chunk. */
template <class L>
static __device__ __forceinline__ unsigned column_of(unsigned chunk)
{
    return (chunk * L::LANES + threadIdx.x % L::LANES) * L::WIDTH;
}

/* 16 bytes from a column of the row that begins at element `row`; 0 where there are none. */
template <class L>
static __device__ __forceinline__ uint4 chunk_at(const struct lines<L> &from, unsigned row,
                                                 unsigned column)
{
    unsigned words[4] = {};
    if (L::WHOLE && column < from.size)
        return *(const uint4 *)((const typename L::element *)from.data + (row + column));
#pragma unroll
    for (unsigned e = 0; e < 4; e++)
        if (!L::WHOLE && column + e < from.size)
            words[e] =
                (unsigned)__float_as_int(group_as<1>(from.type, from.data, row + column + e).v[0]);
    return make_uint4(words[0], words[1], words[2], words[3]);
}

static __device__ __forceinline__ void take_apart(float, uint4 chunk, float (&x)[4])
{
    x[0] = __int_as_float((int)chunk.x);
    x[1] = __int_as_float((int)chunk.y);
    x[2] = __int_as_float((int)chunk.z);
    x[3] = __int_as_float((int)chunk.w);
}

template <class element>
static __device__ __forceinline__ void take_apart(element, uint4 chunk, float (&x)[8])
{
    const unsigned words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
    for (unsigned i = 0; i < 4; i++) {
        x[2 * i] = to_float(element{(uint16_t)words[i]});
        x[2 * i + 1] = to_float(element{(uint16_t)(words[i] >> 16)});
    }
}

/* A warp's step from key on: a team has every so many keys, those beyond the last one are the last
 * one, and count for nothing. */
template <class L>
static __device__ __forceinline__ void load_step(const struct lines<L> &from, unsigned key,
                                                 struct chunks<L> &to)
{
    key += threadIdx.x % WARP / L::LANES;
#pragma unroll
    for (unsigned k = 0; k < L::KEYS; k++) {
        unsigned at = min(key + k * L::TEAMS, from.count - 1);
#pragma unroll
        for (unsigned c = 0; c < L::CHUNKS; c++)
            to.v[k][c] = chunk_at<L>(from, from.start + at * from.row, column_of<L>(c));
    }
}

template <class L> struct queries {
    uint4 v[L::ROWS][L::CHUNKS];
};

template <class L>
static __device__ __forceinline__ void load_queries(const struct rows_attention &t,
                                                    const struct task &task, struct queries<L> &to)
{
    struct lines<L> from = {
        t.a.q, 0, 0, 0, t.a.size, t.a.type
    };
#pragma unroll
    for (unsigned r = 0; r < L::ROWS; r++) {
        struct whose w = whose_row(t, task, r);
        unsigned line = task.batch * t.a.queries + w.query;
        unsigned row = line * (unsigned)t.a.q_row + w.head * t.a.size;
#pragma unroll
        for (unsigned c = 0; c < L::CHUNKS; c++)
            to.v[r][c] = chunk_at<L>(from, row, column_of<L>(c));
    }
}

template <class L>
static __device__ __forceinline__ void open_queries(const struct queries<L> &from,
                                                    float (&q)[L::ROWS * L::EACH])
{
#pragma unroll
    for (unsigned i = 0; i < L::ROWS * L::CHUNKS; i++) {
        float x[L::WIDTH];
        take_apart(typename L::element{}, from.v[i / L::CHUNKS][i % L::CHUNKS], x);
#pragma unroll
        for (unsigned e = 0; e < L::WIDTH; e++)
            q[i * L::WIDTH + e] = x[e];
    }
}

/* Sums over lanes whose numbers differ in the bits from `low` to `high`. Each gets its share of
 * them, which begins where those bits say; where there are fewer sums than lanes, some the same. */
template <unsigned high, unsigned low, unsigned count>
static __device__ __forceinline__ void share_sums(float (&v)[count])
{
    unsigned n = count;
#pragma unroll
    for (unsigned with = high; with >= low; with /= 2) {
        if (n == 1) {
            v[0] += __shfl_xor_sync(all_lanes, v[0], (int)with);
            continue;
        }
        n /= 2;
        bool upper = threadIdx.x & with;
#pragma unroll
        for (unsigned i = 0; i < count / 2; i++)
            if (i < n) {
                float own = upper ? v[i + n] : v[i], other = upper ? v[i] : v[i + n];
                v[i] = own + __shfl_xor_sync(all_lanes, other, (int)with);
            }
    }
}

/* ---- scores: [key][row] in shared memory ---- */

/* Where each score begins: its mask, -inf where the query sees no key. Whether a warp's rows see
 * any. A row is that of a warp. */
template <class L>
static __device__ __forceinline__ bool begin_scores(const struct rows_attention &t,
                                                    const struct task &task, float *scores)
{
    const struct attention &a = t.a;
    bool any = false;
#pragma unroll 1
    for (unsigned r = threadIdx.x / WARP; r < L::ROWS; r += WARPS) {
        struct whose w = whose_row(t, task, r);
        unsigned seen = attention_seen(a, w.query), step = (unsigned)a.mask_at[3];
        unsigned end = min(task.key0 + task.count, seen);
        unsigned mask = task.batch * (unsigned)a.mask_at[0] + w.head * (unsigned)a.mask_at[1] +
                        w.query * (unsigned)a.mask_at[2];
        for (unsigned key = threadIdx.x % WARP; key < t.room; key += WARP) {
            unsigned at = task.key0 + key;
            float shift = 0;
            if (a.mask && at < end)
                shift = group_as<1>(a.type, a.mask, mask + at * step).v[0];
            shift = at < end ? shift : -INFINITY;
            scores[key * L::ROWS + r] = shift;
            any |= shift != -INFINITY;
        }
    }
    return any;
}

/* Of some keys of a step, whose sums are in the lanes. A key that is hidden stays so, whatever is
 * in its place. */
template <class L, unsigned count>
static __device__ __forceinline__ void add_scores(float *scores, unsigned key, float scale,
                                                  float (&sums)[count])
{
    const unsigned own = count > L::LANES ? count / L::LANES : 1, same = L::LANES * own / count;
    unsigned lane = threadIdx.x % L::LANES;
    share_sums<L::LANES / 2, 1>(sums);
    if (lane % same)
        return;
#pragma unroll
    for (unsigned i = 0; i < own; i++) {
        unsigned at = lane / same * own + i;
        float *score = &scores[(key + at / L::ROWS * L::TEAMS) * L::ROWS + at % L::ROWS];
        if (*score != -INFINITY)
            *score += scale * sums[i];
    }
}

template <class L>
static __device__ __forceinline__ void score_step(const struct chunks<L> &keys, unsigned key,
                                                  const float (&q)[L::ROWS * L::EACH], float scale,
                                                  float *scores)
{
    const unsigned most = (unsigned)SUMS / L::ROWS, together = most < L::KEYS ? most : L::KEYS;
    key += threadIdx.x % WARP / L::LANES;
#pragma unroll
    for (unsigned first = 0; first < L::KEYS; first += together) {
        float sums[together * L::ROWS] = {};
#pragma unroll
        for (unsigned i = 0; i < together * L::CHUNKS; i++) {
            unsigned k = i / L::CHUNKS, c = i % L::CHUNKS;
            float x[L::WIDTH];
            take_apart(typename L::element{}, keys.v[first + k][c], x);
#pragma unroll
            for (unsigned e = 0; e < L::WIDTH; e++)
#pragma unroll
                for (unsigned r = 0; r < L::ROWS; r++)
                    sums[k * L::ROWS + r] += q[r * L::EACH + c * L::WIDTH + e] * x[e];
        }
        add_scores<L>(scores, key + first * L::TEAMS, scale, sums);
    }
}

/* next: the warp's first step, which is on its way, and in the end that of the values. Loads stand
 * in no branch: the compiler would put it behind the multiplications. */
template <class L>
static __device__ __forceinline__ void
score_keys(const struct rows_attention &t, const struct task &task, const struct queries<L> &asked,
           const struct lines<L> &keys, const struct lines<L> &values, struct chunks<L> &next,
           float *scores)
{
    const unsigned step = WARPS * L::STEP;
    unsigned first = threadIdx.x / WARP * L::STEP;
    float q[L::ROWS * L::EACH];
    open_queries<L>(asked, q);
#pragma unroll 1
    for (unsigned key = first; key < task.count; key += step) {
        struct chunks<L> now = next;
        bool more = key + step < task.count;
        struct lines<L> from = {
            more ? keys.data : values.data, more ? keys.start : values.start,
                more ? keys.row : values.row, task.count, t.a.size, t.a.type
        };
        load_step<L>(from, more ? key + step : first, next);
        score_step<L>(now, key, q, t.a.scale, scores);
    }
}

/* Scores to weights. numbers: largest and total of each row. */
template <class L>
static __device__ __forceinline__ void soften(const struct rows_attention &t, float *scores,
                                              float (*numbers)[2])
{
    unsigned lane = threadIdx.x % WARP;
#pragma unroll 1
    for (unsigned r = threadIdx.x / WARP; r < L::ROWS; r += WARPS) {
        float largest = -INFINITY, total = 0;
        for (unsigned key = lane; key < t.room; key += WARP)
            largest = fmaxf(largest, scores[key * L::ROWS + r]);
        largest = warp_max(largest);
        float shift = largest == -INFINITY ? 0.0f : largest;
        for (unsigned key = lane; key < t.room; key += WARP) {
            float weight = expf(scores[key * L::ROWS + r] - shift);
            scores[key * L::ROWS + r] = weight;
            total += weight;
        }
        total = warp_sum(total);
        if (lane == 0) {
            numbers[r][0] = largest;
            numbers[r][1] = total;
        }
    }
}

/* ---- weighted values ---- */

template <class L>
static __device__ __forceinline__ void weigh_step(const struct chunks<L> &values, unsigned key,
                                                  const float *weights,
                                                  float (&y)[L::ROWS * L::EACH])
{
    key += threadIdx.x % WARP / L::LANES;
#pragma unroll
    for (unsigned k = 0; k < L::KEYS; k++) {
        float p[L::ROWS];
#pragma unroll
        for (unsigned r = 0; r < L::ROWS; r += 4) {
            float4 four = *(const float4 *)&weights[(key + k * L::TEAMS) * L::ROWS + r];
            p[r] = four.x;
            p[r + 1] = four.y;
            p[r + 2] = four.z;
            p[r + 3] = four.w;
        }
#pragma unroll
        for (unsigned c = 0; c < L::CHUNKS; c++) {
            float x[L::WIDTH];
            take_apart(typename L::element{}, values.v[k][c], x);
#pragma unroll
            for (unsigned r = 0; r < L::ROWS; r++)
#pragma unroll
                for (unsigned e = 0; e < L::WIDTH; e++)
                    y[r * L::EACH + c * L::WIDTH + e] += p[r] * x[e];
        }
    }
}

/* Of the warp's keys, into sums: [row][column] of each warp, where the weights were. */
template <class L>
static __device__ __forceinline__ void weigh_values(const struct task &task,
                                                    const struct lines<L> &values,
                                                    struct chunks<L> &next, float *memory)
{
    const unsigned step = WARPS * L::STEP, rows = L::ROWS / L::TEAMS;
    unsigned warp = threadIdx.x / WARP, team = threadIdx.x % WARP / L::LANES;
    float y[L::ROWS * L::EACH] = {};
#pragma unroll 1
    for (unsigned key = warp * L::STEP; key < task.count; key += step) {
        struct chunks<L> now = next;
        load_step<L>(values, key + step, next);
        weigh_step<L>(now, key, memory, y);
    }
    share_sums<WARP / 2, L::LANES>(y);
    __syncthreads();
    float *sums = memory + (warp * L::ROWS + team * rows) * L::COLUMNS;
#pragma unroll
    for (unsigned i = 0; i < rows * L::EACH; i += 4) {
        unsigned column = column_of<L>(i % L::EACH / L::WIDTH) + i % L::WIDTH;
        *(float4 *)&sums[i / L::EACH * L::COLUMNS + column] =
            make_float4(y[i], y[i + 1], y[i + 2], y[i + 3]);
    }
    __syncthreads();
}

/* ---- results ---- */

static __device__ __forceinline__ float *numbers_of(const struct rows_attention &t,
                                                    const struct task &task, unsigned r)
{
    size_t line = line_of(t, task.batch, whose_row(t, task, r));
    return t.numbers + (line * t.stretches + blockIdx.x) * 2;
}

/* Of a stretch that nobody sees: nobody asks for its sums. */
template <class L>
static __device__ __forceinline__ void store_nothing(const struct rows_attention &t,
                                                     const struct task &task)
{
    unsigned r = threadIdx.x;
    if (r >= L::ROWS || task.row0 + r >= t.rows)
        return;
    float *to = numbers_of(t, task, r);
    to[0] = -INFINITY;
    to[1] = 0;
}

template <class L>
static __device__ __forceinline__ void store(const struct rows_attention &t,
                                             const struct task &task, const float *sums,
                                             const float (*numbers)[2])
{
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < L::ROWS * L::COLUMNS; i += THREADS) {
        unsigned r = i / L::COLUMNS, column = i % L::COLUMNS;
        if (task.row0 + r >= t.rows || column >= t.pitch)
            continue;
        struct whose w = whose_row(t, task, r);
        float sum = 0;
#pragma unroll
        for (unsigned warp = 0; warp < WARPS; warp++)
            sum += sums[warp * L::ROWS * L::COLUMNS + i];
        if (t.stretches > 1) {
            size_t line = line_of(t, task.batch, w) * t.stretches + blockIdx.x;
            t.sums[line * t.pitch + column] = sum;
        } else if (column < t.a.size) {
            sum /= attention_divisor(t.a, numbers[r][1]);
            group_store_as<1>(t.a.type, t.a.y, result_of(t, task.batch, w) + column, {{sum}});
        }
    }
    if (t.stretches == 1 || threadIdx.x >= L::ROWS || task.row0 + threadIdx.x >= t.rows)
        return;
    float *to = numbers_of(t, task, threadIdx.x);
    to[0] = numbers[threadIdx.x][0];
    to[1] = numbers[threadIdx.x][1];
}

template <class L>
__global__ void __launch_bounds__(THREADS, L::BLOCKS)
    attention_rows(const __grid_constant__ struct rows_attention t)
{
    KERNEL_BEGIN();
    SHARED_MEMORY(float, memory);
    __shared__ float numbers[L::ROWS][2], any[WARPS];
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    struct task task = task_of<L>(t);
    struct lines<L> keys = lines_of<L>(t, task, t.a.k, t.a.k_row);
    struct lines<L> values = lines_of<L>(t, task, t.a.v, t.a.v_row);
    struct chunks<L> next;
    struct queries<L> asked;
    load_step<L>(keys, warp * L::STEP, next);
    load_queries<L>(t, task, asked);
    float seen = warp_max(begin_scores<L>(t, task, memory) ? 1.0f : 0.0f);
    if (lane == 0)
        any[warp] = seen;
    __syncthreads();
    for (unsigned w = 0; w < WARPS; w++)
        seen = fmaxf(seen, any[w]);
    if (seen == 0 && t.stretches > 1) {
        store_nothing<L>(t, task);
        return;
    }
    score_keys<L>(t, task, asked, keys, values, next, memory);
    __syncthreads();
    soften<L>(t, memory, numbers);
    __syncthreads();
    weigh_values<L>(task, values, next, memory);
    store<L>(t, task, memory, numbers);
}

/* ---- joining stretches: a block per row ---- */

/* The largest score of all stretches, or 0 where no key is seen; each warp for itself. */
static __device__ __forceinline__ float largest_of(const float *numbers, unsigned stretches)
{
    float largest = -INFINITY;
    for (unsigned i = threadIdx.x % WARP; i < stretches; i += WARP)
        largest = fmaxf(largest, numbers[2 * i]);
    largest = warp_max(largest);
    return largest == -INFINITY ? 0.0f : largest;
}

static __device__ __forceinline__ float total_of(const float *numbers, unsigned stretches,
                                                 float shift)
{
    float total = 0;
    for (unsigned i = threadIdx.x % WARP; i < stretches; i += WARP)
        total += expf(numbers[2 * i] - shift) * numbers[2 * i + 1];
    return warp_sum(total);
}

/* Threads have four columns of every so many stretches. */
__global__ void __launch_bounds__(BLOCK)
    attention_join(const __grid_constant__ struct rows_attention t)
{
    KERNEL_BEGIN();
    __shared__ float part[BLOCK * 4];
    unsigned line = blockIdx.x, plane = divide(line, t.queries);
    unsigned fours = t.pitch / 4, teams = BLOCK / fours, team = threadIdx.x / fours;
    unsigned column = threadIdx.x % fours * 4, batch = plane / t.a.heads;
    struct whose w = {plane - batch * t.a.heads, line - plane * t.a.queries};
    const float *numbers = t.numbers + (size_t)line * t.stretches * 2;
    const float *sums = t.sums + (size_t)line * t.stretches * t.pitch + column;
    float shift = largest_of(numbers, t.stretches), y[4] = {};
    float divisor = attention_divisor(t.a, total_of(numbers, t.stretches, shift));
#pragma unroll 4
    for (unsigned i = team; i < t.stretches && team < teams; i += teams) {
        float factor = expf(numbers[2 * i] - shift);
        if (factor == 0)
            continue;
        float4 four = *(const float4 *)&sums[(size_t)i * t.pitch];
        y[0] += factor * four.x;
        y[1] += factor * four.y;
        y[2] += factor * four.z;
        y[3] += factor * four.w;
    }
    if (team < teams)
        *(float4 *)&part[team * t.pitch + column] = make_float4(y[0], y[1], y[2], y[3]);
    __syncthreads();
    if (threadIdx.x >= t.a.size)
        return;
    float sum = 0;
    for (unsigned i = 0; i < teams; i++)
        sum += part[i * t.pitch + threadIdx.x];
    group_store_as<1>(t.a.type, t.a.y, result_of(t, batch, w) + threadIdx.x, {{sum / divisor}});
}

/* ---- hooks ---- */

enum {
    ROWS_FEW = 4,
    ROWS_MANY = 8,
    ROWS_MOST = 32,
    SIZE_FEW = 64,
    SIZE_MANY = 128,
    SIZE_MOST = BLOCK
};

static const unsigned stretch_of[] = {ROUND_TO, 128, 256, 1024};

struct kernel_state {
    struct attention_call call;
    struct rows_attention t; /* the call's part is left open */
    bool whole;
    int stretches; /* how many of stretch_of are worth a trial */
    int64_t lines, batch, kv_heads;
};

static unsigned rows_of(const struct kernel_state *s, bool whole)
{
    bool many = whole && s->t.rows > ROWS_FEW && s->call.a.size <= SIZE_MANY;
    return many ? (unsigned)ROWS_MANY : (unsigned)ROWS_FEW;
}

/* The longest stretch of which there are three blocks for each multiprocessor; else the shortest.
 */
static int stretch_for(const struct kernel_query *q, const struct kernel_state *s)
{
    int64_t heads = s->batch * s->kv_heads * div_up(s->t.rows, rows_of(s, s->whole));
    int k = s->stretches - 1;
    while (k > 0 && heads * div_up(s->call.a.keys, stretch_of[k]) < 3 * q->device->properties.units)
        k--;
    return k;
}

static void cut(const struct kernel_query *q, int variant, struct kernel_state *s)
{
    struct rows_attention *t = &s->t;
    int64_t keys = s->call.a.keys;
    while (s->stretches < ARRAY_COUNT(stretch_of) &&
           (s->stretches == 0 || stretch_of[s->stretches - 1] < keys))
        s->stretches++;
    t->stretch = stretch_of[(stretch_for(q, s) + variant) % s->stretches];
    t->stretches = (unsigned)div_up(keys, t->stretch);
    int64_t all = div_up(keys, ROUND_TO) * ROUND_TO;
    t->room = all < t->stretch ? (unsigned)all : t->stretch;
}

/* Whether all rows of a tensor begin at multiples of a chunk. */
static bool whole_lines(const struct attention_call *c, int which, int64_t row)
{
    int64_t size = element_bytes((enum dtype)c->a.type);
    return c->start[which] % CHUNK == 0 && row * size % CHUNK == 0;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    TRY(attention_plan(q, 1, SIZE_MOST, &s->call, why));
    const struct attention *a = &s->call.a;
    int64_t rows = (int64_t)a->queries * a->group, size = element_bytes((enum dtype)a->type);
    if (rows > ROWS_MOST)
        return REFUSE(why, "more than %d queries of heads that share keys", (int)ROWS_MOST);
    s->batch = s->call.grid.z;
    s->kv_heads = a->heads / a->group;
    s->lines = s->batch * a->heads * a->queries;
    s->whole = a->size * size % CHUNK == 0 && whole_lines(&s->call, 0, a->q_row) &&
               whole_lines(&s->call, 1, a->k_row) && whole_lines(&s->call, 2, a->v_row);
    s->t.rows = (unsigned)rows;
    s->t.pitch = (unsigned)div_up(a->size, 4) * 4;
    s->t.queries = divisor_of(a->queries);
    if (s->kv_heads * div_up(rows, ROWS_FEW) > GRID_YZ)
        return REFUSE(why, "more heads than a grid has");
    cut(q, variant, s);
    return STATUS_OK;
}

static int variants(const struct kernel_state *s)
{
    return s->stretches;
}

static void describe(const struct kernel_state *s, char *text, size_t size)
{
    snprintf(text, size, "stretches of %u keys", s->t.stretch);
}

static size_t sums_bytes(const struct kernel_state *s)
{
    return padded_bytes(s->lines * s->t.stretches * s->t.pitch, sizeof(float));
}

static size_t workspace(const struct kernel_state *s)
{
    int64_t lines = s->lines * s->t.stretches;
    return s->t.stretches > 1 ? sums_bytes(s) + padded_bytes(lines * 2, sizeof(float)) : 0;
}

/* A stretch's scores, and then the sums of its warps. */
static size_t shared_bytes(const struct rows_attention *t, unsigned columns, unsigned rows)
{
    unsigned each = t->room > WARPS * columns ? t->room : WARPS * columns;
    return (size_t)each * rows * sizeof(float);
}

template <class L>
static void launch_rows(const struct kernel_state *s, struct rows_attention *t,
                        const struct kernel_args *args)
{
    t->row_blocks = (unsigned)div_up(t->rows, L::ROWS);
    struct cuda_grid grid = cuda_size(s->lines && t->a.size ? t->stretches : 0,
                                      (unsigned)s->kv_heads * t->row_blocks, (unsigned)s->batch);
    LAUNCH(attention_rows<L>, grid, cuda_size(THREADS), shared_bytes(t, L::COLUMNS, L::ROWS), t,
           args);
}

template <unsigned columns, unsigned rows>
static void launch_floats(const struct kernel_state *s, struct rows_attention *t,
                          const struct kernel_args *args)
{
    if (t->a.type == DTYPE_F32)
        launch_rows<struct sizes<float, columns, rows, true>>(s, t, args);
    else if (t->a.type == DTYPE_F16)
        launch_rows<struct sizes<struct half, columns, rows, true>>(s, t, args);
    else
        launch_rows<struct sizes<struct bfloat, columns, rows, true>>(s, t, args);
}

template <unsigned columns>
static void launch_columns(const struct kernel_state *s, struct rows_attention *t,
                           const struct kernel_args *args)
{
    if (rows_of(s, true) == ROWS_MANY)
        launch_floats<columns, ROWS_MANY>(s, t, args);
    else
        launch_floats<columns, ROWS_FEW>(s, t, args);
}

/* Few rows have a kernel of their own, which multiplies half as much; so have sizes of heads, which
 * decide how many lanes read a key. The largest heads, and rows that begin anywhere, which few
 * networks have, have one of few rows: others read keys a second time, from the second cache. */
static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct rows_attention t = s->t;
    t.a = attention_resolve(&s->call, args);
    t.sums = (float *)args->workspace;
    t.numbers = (float *)((char *)args->workspace + sums_bytes(s));
    uintptr_t places = (uintptr_t)t.a.q | (uintptr_t)t.a.k | (uintptr_t)t.a.v;
    if (!s->whole || places % CHUNK)
        launch_rows<struct sizes<float, SIZE_MOST, ROWS_FEW, false>>(s, &t, args);
    else if (t.a.size <= SIZE_FEW)
        launch_columns<SIZE_FEW>(s, &t, args);
    else if (t.a.size <= SIZE_MANY)
        launch_columns<SIZE_MANY>(s, &t, args);
    else
        launch_floats<SIZE_MOST, ROWS_FEW>(s, &t, args);
    if (t.stretches > 1)
        LAUNCH(attention_join, cuda_size(t.a.size ? (unsigned)s->lines : 0), cuda_size(BLOCK), 0,
               &t, args);
}

static const char *const ops[] = {"Attention", NULL};

CUDA_KERNEL(attention_rows) = {CUDA_NAME(attention_rows), .ops = ops,          CUDA_PLAN,
                               CUDA_HOOK(variants),       CUDA_HOOK(describe), CUDA_HOOK(workspace),
                               CUDA_HOOK(launch)};
