/* SPDX-License-Identifier: Apache-2.0
 *
 * ScatterND on plain memory. Each task owns a block of the result: it copies the data there and
 * then puts in what falls into its block of the updates, all of which it walks in their order. So
 * of places that are named twice the last one stands, or all are added in that order, on any number
 * of threads, and a block is still in the caches when updates meet it. Where each update goes is
 * found beforehand, since every task asks. Blocks are the larger the more updates there are: single
 * elements are put in by one thread sooner than several pass over each other's. An index outside
 * writes nothing; the reference reports it as an error. */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/kernels/lib/copy_bytes.h"
#include "engine/kernels/lib/index_rows.h"
#include "engine/kernels/lib/tiles.h"

enum {
    BLOCK_BYTES = 64 << 10,
    PASS_BYTES = 32, /* what passing over an update costs, as bytes of a copy: a branch missed now
                        and then */
    FIND_ROWS = 4096
};

struct block;
typedef void block_fn(const struct block *block);

struct kernel_state {
    struct index_rows index;
    int64_t inner, count; /* elements of a run, of the result */
    int64_t block;        /* elements */
    int64_t size;         /* bytes of an element */
    block_fn *update;
};

/* A block of the result, elements [first, end) of it. */
struct block {
    const struct kernel_state *state;
    const int64_t *starts; /* per row: the element of the result where its run begins, or NONE */
    const char *updates;
    char *y;
    int64_t first, end;
};

/* ---- updates ---- */

/* The part [from, to) of the result in which the row's run and the block meet. */
SIMD_INLINE bool meets(const struct block *b, int64_t row, int64_t inner, int64_t *from,
                       int64_t *to)
{
    int64_t start = b->starts[row];
    *from = larger(start, b->first);
    *to = smaller(start + inner, b->end);
    return start != NONE && *from < *to;
}

static void put_runs(const struct block *given)
{
    const struct block b = *given;
    int64_t from, to, size = b.state->size, inner = b.state->inner;
    for (int64_t row = 0; row < b.state->index.rows; row++)
        if (meets(&b, row, inner, &from, &to))
            copy_run(b.y + from * size, b.updates + (row * inner + from - b.starts[row]) * size,
                     (to - from) * size);
}

/* a: what is there; b: the update. */
#define LOOP(name, type, expression)                                                               \
    SIMD_INLINE void name##_loop(const struct block *given, int64_t inner)                         \
    {                                                                                              \
        const struct block block = *given;                                                         \
        int64_t from, to;                                                                          \
        for (int64_t row = 0; row < block.state->index.rows; row++) {                              \
            if (!meets(&block, row, inner, &from, &to))                                            \
                continue;                                                                          \
            const type *restrict updates = (const type *)(const void *)block.updates;              \
            type *restrict y = (type *)(void *)block.y;                                            \
            updates += row * inner - block.starts[row];                                            \
            for (int64_t k = from; k < to; k++) {                                                  \
                type a = y[k], b = updates[k];                                                     \
                (void)a;                                                                           \
                y[k] = expression;                                                                 \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name(const struct block *block)                                                    \
    {                                                                                              \
        if (block->state->inner == 1)                                                              \
            name##_loop(block, 1);                                                                 \
        else                                                                                       \
            name##_loop(block, block->state->inner);                                               \
    }

#define REDUCTIONS(suffix, type, wrapping)                                                         \
    LOOP(add_##suffix, wrapping, a + b)                                                            \
    LOOP(mul_##suffix, wrapping, a *b)                                                             \
    LOOP(max_##suffix, type, b > a ? b : a)                                                        \
    LOOP(min_##suffix, type, b < a ? b : a)

LOOP(put_4, uint32_t, b)
LOOP(put_8, uint64_t, b)
REDUCTIONS(f32, float, float)
REDUCTIONS(i32, int32_t, uint32_t)
REDUCTIONS(i64, int64_t, uint64_t)

static const struct {
    const char *reduction;
    enum dtype dtype;
    block_fn *update;
} updates[] = {
    {"add", DTYPE_F32, add_f32}, {"add", DTYPE_I32, add_i32}, {"add", DTYPE_I64, add_i64},
    {"mul", DTYPE_F32, mul_f32}, {"mul", DTYPE_I32, mul_i32}, {"mul", DTYPE_I64, mul_i64},
    {"max", DTYPE_F32, max_f32}, {"max", DTYPE_I32, max_i32}, {"max", DTYPE_I64, max_i64},
    {"min", DTYPE_F32, min_f32}, {"min", DTYPE_I32, min_i32}, {"min", DTYPE_I64, min_i64},
};

/* ---- hooks ---- */

static block_fn *find_update(const struct kernel_query *q, const struct kernel_state *s)
{
    const char *reduction = node_string(q->node, "reduction", "none");
    if (strcmp(reduction, "none") == 0)
        return s->inner > 1 ? put_runs : s->size == 4 ? put_4 : s->size == 8 ? put_8 : put_runs;
    for (int k = 0; k < ARRAY_COUNT(updates); k++)
        if (updates[k].dtype == q->out[0].dtype && strcmp(updates[k].reduction, reduction) == 0)
            return updates[k].update;
    return NULL;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    const struct shape *x = &q->in[0].shape;
    TRY(index_rows_plan(q, 0, &s->index, why));
    if (q->in[0].dtype != q->out[0].dtype || q->in[2].dtype != q->out[0].dtype)
        return UNSUPPORTED(why, "updates are of another type than the data");
    if (!desc_is_plain(&q->out[0]))
        return UNSUPPORTED(why, "the result is not plain");
    s->count = shape_count(x);
    s->inner = shape_span(x, s->index.depth, x->rank);
    s->size = (int64_t)dtype_size(q->out[0].dtype);
    s->update = find_update(q, s);
    if (!s->update)
        return UNSUPPORTED(why, "reduction \"%s\" of %s", node_string(q->node, "reduction", "none"),
                           dtype_name(q->out[0].dtype));
    int64_t bytes = larger(BLOCK_BYTES, s->index.rows * PASS_BYTES);
    s->block = rows_of_tile(s->count, s->size, bytes, q->threads);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *s)
{
    return (size_t)s->index.rows * sizeof(int64_t);
}

struct job {
    const struct kernel_state *state;
    const char *data, *updates;
    const void *index;
    char *y;
    int64_t *starts;
};

static void find_starts(void *context, int64_t task, int thread)
{
    const struct job *job = context;
    const struct kernel_state s = *job->state;
    int64_t row = task * FIND_ROWS, end = smaller(row + FIND_ROWS, s.index.rows);
    (void)thread;
    for (; row < end; row++) {
        int64_t run = index_rows_at(&s.index, job->index, row);
        job->starts[row] = run == NONE ? NONE : run * s.inner;
    }
}

static void run_block(void *context, int64_t index, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    struct block block = {s, job->starts, job->updates, job->y, .first = index * s->block};
    block.end = smaller(block.first + s->block, s->count);
    (void)thread;
    memcpy(job->y + block.first * s->size, job->data + block.first * s->size,
           (size_t)((block.end - block.first) * s->size));
    s->update(&block);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {s, args->in[0], args->in[2], args->in[1], args->out[0], args->workspace};
    if (s->count == 0)
        return;
    pool_run(args->pool, divide_up(s->index.rows, FIND_ROWS), find_starts, &job);
    pool_run(args->pool, divide_up(s->count, s->block), run_block, &job);
}

REGISTER_KERNEL(scatter_nd_blocks) = {
    NATIVE(scatter_nd_blocks),
    .ops = OPS("ScatterND"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .workspace = workspace,
    .launch = launch,
};
