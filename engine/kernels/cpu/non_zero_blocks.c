/* SPDX-License-Identifier: Apache-2.0
 *
 * NonZero of plain memory. Blocks of elements are counted, from which follows where the indices of
 * each begin; then each block writes its own, and its share of the zeros behind all indices: for
 * every axis as many numbers as it has elements. Indices are collected without a branch, which for
 * masks without a pattern would be missed half the time. */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/kernels/lib/simd.h"

enum { BLOCK = 4096 };

/* Of n elements, where those are that are not zero, counted from `first`; returns how many. */
typedef int64_t collect_fn(const void *x, int64_t n, int64_t first, int64_t *at);
typedef int64_t count_fn(const void *x, int64_t n);

#define LOOPS(suffix, type)                                                                        \
    static int64_t count_##suffix(const void *x, int64_t n)                                        \
    {                                                                                              \
        const type *element = x;                                                                   \
        int32_t found = 0; /* BLOCK at most */                                                     \
        for (int64_t k = 0; k < n; k++)                                                            \
            found += element[k] != 0;                                                              \
        return found;                                                                              \
    }                                                                                              \
    static int64_t collect_##suffix(const void *x, int64_t n, int64_t first, int64_t *at)          \
    {                                                                                              \
        const type *element = x;                                                                   \
        int64_t found = 0;                                                                         \
        for (int64_t k = 0; k < n; k++) {                                                          \
            at[found] = first + k;                                                                 \
            found += element[k] != 0;                                                              \
        }                                                                                          \
        return found;                                                                              \
    }

LOOPS(1, uint8_t)
LOOPS(4, uint32_t)
LOOPS(8, uint64_t)
LOOPS(f32, float)

struct kernel_state {
    struct shape shape;
    int64_t count, blocks;
    int64_t row, size; /* the last dimension; bytes of an element */
    bool counts;       /* output 1 is wanted */
    count_fn *count_block;
    collect_fn *collect;
};

static enum status find(const struct kernel_query *q, struct kernel_state *s, struct error *why)
{
    static const struct {
        enum dtype dtype;
        count_fn *count;
        collect_fn *collect;
    } types[] = {
        {DTYPE_BOOL, count_1, collect_1},    {DTYPE_U8, count_1, collect_1},
        {DTYPE_I32, count_4, collect_4},     {DTYPE_I64, count_8, collect_8},
        {DTYPE_F32, count_f32, collect_f32},
    };
    for (int k = 0; k < ARRAY_COUNT(types); k++) {
        if (types[k].dtype == q->in[0].dtype) {
            s->count_block = types[k].count;
            s->collect = types[k].collect;
            return STATUS_OK;
        }
    }
    return UNSUPPORTED(why, "elements of type %s", dtype_name(q->in[0].dtype));
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    TRY(find(q, s, why));
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_plain(&q->in[0]))
        return UNSUPPORTED(why, "input 0 is not plain");
    TRY(query_plain_results(q, why));
    if (q->in[0].shape.rank == 0)
        return UNSUPPORTED(why, "a scalar");
    if (q->out[0].dtype == DTYPE_NONE)
        return UNSUPPORTED(why, "only the number is wanted");
    s->shape = q->in[0].shape;
    s->count = shape_count(&s->shape);
    s->blocks = divide_up(s->count, BLOCK);
    s->row = s->shape.dim[s->shape.rank - 1];
    s->size = (int64_t)dtype_size(q->in[0].dtype);
    s->counts = q->out_count > 1 && q->out[1].dtype != DTYPE_NONE;
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)(s->blocks + 1) * sizeof(int64_t);
}

struct job {
    const struct kernel_state *state;
    const char *x;
    int64_t *y;
    int64_t *starts; /* per block: the first of its indices among all; at the end their number */
};

static void count_block(void *context, int64_t block, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t first = block * BLOCK, n = smaller(BLOCK, s->count - first);
    (void)thread;
    job->starts[block] = s->count_block(job->x + first * s->size, n);
}

static int64_t find_starts(const struct job *job)
{
    int64_t next = 0;
    for (int64_t block = 0; block < job->state->blocks; block++) {
        int64_t found = job->starts[block];
        job->starts[block] = next;
        next += found;
    }
    return job->starts[job->state->blocks] = next;
}

static void fill(int64_t *y, int64_t value, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        y[k] = value;
}

/* Indices of n elements of one row, from element `first` on; `to`: the place of the next index. */
static int64_t write_row(const struct job *job, int64_t first, int64_t n, int64_t to)
{
    const struct kernel_state *s = job->state;
    int64_t at[BLOCK];
    int64_t found = s->collect(job->x + first * s->size, n, first % s->row, at);
    int64_t *y = job->y + (s->shape.rank - 1) * s->count + to, rest = first / s->row;
    if (found == 0)
        return to;
    for (int64_t k = 0; k < found; k++)
        y[k] = at[k];
    for (int d = s->shape.rank - 2; d >= 0; d--) {
        fill(job->y + d * s->count + to, rest % s->shape.dim[d], found);
        rest /= s->shape.dim[d];
    }
    return to + found;
}

static void write_block(void *context, int64_t block, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t first = block * BLOCK, end = smaller(first + BLOCK, s->count);
    int64_t to = job->starts[block], found = job->starts[block + 1] - to;
    int64_t behind = job->starts[s->blocks] + first - to; /* zeros of the blocks before it */
    (void)thread;
    for (int64_t k = first, n; k < end; k += n) {
        n = smaller(s->row - k % s->row, end - k);
        to = write_row(job, k, n, to);
    }
    for (int d = 0; d < s->shape.rank; d++)
        fill(job->y + d * s->count + behind, 0, end - first - found);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {s, args->in[0], args->out[0], args->workspace};
    pool_run(args->pool, s->blocks, count_block, &job);
    int64_t found = find_starts(&job);
    if (s->counts)
        *(int64_t *)args->out[1] = found;
    pool_run(args->pool, s->blocks, write_block, &job);
}

REGISTER_KERNEL(non_zero_blocks) = {
    NATIVE(non_zero_blocks),
    .ops = OPS("NonZero"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
