/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that only move elements (Transpose, Concat, Slice, Reorder ...): strided copies, one
 * launch per part. Loops are joined as far as the strides allow. A run that lies together on both
 * sides is copied by up to 16 bytes a thread; where rows of one side are columns of the other,
 * squares go through shared memory, so that both sides are read and written along rows. Where the
 * destination's rows are short (the colours of an image), a thread writes a row of them. */
#include "engine/kernels/cuda/lib/query.h"

enum { LOOPS = MOVE_LOOPS, SQUARE = 32, SQUARE_ROWS = BLOCK / SQUARE, SHORT = 8 };

struct copy {
    const char *from;
    char *to;
    int rank;      /* of the loops, outermost first */
    int unit;      /* bytes that a thread copies: 1, 2, 4, 8 or 16; in squares 2 or 4 */
    unsigned work; /* units, or squares */
    struct divisor dim[LOOPS];
    int64_t in[LOOPS], out[LOOPS]; /* bytes */
    /* Squares: rows lie together in the source, columns in the destination. */
    unsigned rows, columns;
    int64_t row_out, column_in;  /* column_in, columns: of short rows, too */
    struct divisor across, down; /* squares */
};

struct places {
    int64_t in, out;
};

static __device__ __forceinline__ struct places places_of(const struct copy &c, unsigned index)
{
    struct places at = {0, 0};
    for (int d = c.rank - 1; d >= 0; d--) {
        unsigned next = divide(index, c.dim[d]);
        int64_t i = index - next * c.dim[d].d;
        at.in += i * c.in[d];
        at.out += i * c.out[d];
        index = next;
    }
    return at;
}

template <class T>
static __device__ __forceinline__ void copy_unit(const struct copy &c, unsigned k)
{
    struct places at = places_of(c, k);
    *(T *)(c.to + at.out) = *(const T *)(c.from + at.in);
}

template <class T>
__global__ void __launch_bounds__(BLOCK) copy_units(const __grid_constant__ struct copy c)
{
    KERNEL_BEGIN();
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < c.work; k += gridDim.x * BLOCK)
        copy_unit<T>(c, k);
}

/* A row of c.columns units that lie together in the destination. */
template <class T>
__global__ void __launch_bounds__(BLOCK) copy_short(const __grid_constant__ struct copy c)
{
    KERNEL_BEGIN();
    for (unsigned k = blockIdx.x * BLOCK + threadIdx.x; k < c.work; k += gridDim.x * BLOCK) {
        struct places at = places_of(c, k);
        T row[SHORT];
#pragma unroll
        for (unsigned j = 0; j < SHORT; j++)
            if (j < c.columns)
                row[j] = *(const T *)(c.from + at.in + j * c.column_in);
#pragma unroll
        for (unsigned j = 0; j < SHORT; j++)
            if (j < c.columns)
                ((T *)(c.to + at.out))[j] = row[j];
    }
}

/* A square: (row, column) from column_in * column + size row to row_out * row + size column. */
template <class word>
__global__ void __launch_bounds__(BLOCK) copy_squares(const __grid_constant__ struct copy c)
{
    KERNEL_BEGIN();
    __shared__ unsigned square[SQUARE][SQUARE + 1];
    unsigned x = threadIdx.x % SQUARE, y = threadIdx.x / SQUARE;
    for (unsigned k = blockIdx.x; k < c.work; k += gridDim.x) {
        unsigned line = divide(k, c.across), outer = divide(line, c.down);
        unsigned column0 = (k - line * c.across.d) * SQUARE;
        unsigned row0 = (line - outer * c.down.d) * SQUARE;
        struct places at = places_of(c, outer);
        for (unsigned j = y; j < SQUARE; j += SQUARE_ROWS)
            if (row0 + x < c.rows && column0 + j < c.columns)
                square[j][x] = *(const word *)(c.from + at.in + (column0 + j) * c.column_in +
                                               (row0 + x) * (int64_t)sizeof(word));
        __syncthreads();
        for (unsigned j = y; j < SQUARE; j += SQUARE_ROWS)
            if (row0 + j < c.rows && column0 + x < c.columns)
                *(word *)(c.to + at.out + (row0 + j) * c.row_out +
                          (column0 + x) * (int64_t)sizeof(word)) = (word)square[x][j];
        __syncthreads();
    }
}

/* ---- planning ---- */

enum way { UNITS, SQUARES, SHORT_ROWS };

struct part {
    struct copy c;
    int input, output;
    int64_t in_start, out_start; /* bytes */
    enum way way;
    struct cuda_grid grid;
};

struct loop {
    int64_t extent, in, out;
};

/* By the destination's strides, outermost first; a loop of one round is none. */
static int sorted_loops(const struct flat_move *flat, int elem, struct loop *loops)
{
    int count = 0;
    for (int k = 0; k < flat->loop_count; k++) {
        struct loop l = {flat->loops[k].extent, flat->loops[k].in_stride * elem,
                         flat->loops[k].out_stride * elem};
        int at = count;
        if (l.extent == 1)
            continue;
        for (; at > 0 && loops[at - 1].out < l.out; at--)
            loops[at] = loops[at - 1];
        loops[at] = l;
        count++;
    }
    return count;
}

/* An outer loop that goes on where the inner one ends, on both sides, is the same loop. */
static int joined_loops(struct loop *loops, int count)
{
    int kept = 0;
    for (int k = 0; k < count; k++) {
        struct loop *last = kept ? &loops[kept - 1] : NULL;
        if (last && last->in == loops[k].in * loops[k].extent &&
            last->out == loops[k].out * loops[k].extent)
            *last = {last->extent * loops[k].extent, loops[k].in, loops[k].out};
        else
            loops[kept++] = loops[k];
    }
    return kept;
}

/* The largest unit that runs, strides and starts are multiples of. */
static int unit_of(const struct part *p, const struct loop *loops, int count, int64_t run)
{
    int unit = 16;
    for (; unit > 1; unit /= 2) {
        bool fits = run % unit == 0 && p->in_start % unit == 0 && p->out_start % unit == 0;
        for (int k = 0; k < count; k++)
            fits = fits && loops[k].in % unit == 0 && loops[k].out % unit == 0;
        if (fits)
            break;
    }
    return unit;
}

static void add_loops(struct copy *c, const struct loop *loops, int count)
{
    for (int k = 0; k < count; k++) {
        c->dim[c->rank] = divisor_of(loops[k].extent);
        c->in[c->rank] = loops[k].in;
        c->out[c->rank++] = loops[k].out;
        c->work *= (unsigned)loops[k].extent;
    }
}

/* The loop along which the source lies together, if the destination does along the last one. */
static int source_loop(const struct loop *loops, int count, int elem)
{
    int last = count - 1;
    if (count < 2 || (elem != 2 && elem != 4) || loops[last].out != elem ||
        loops[last].in == elem || loops[last].in % elem != 0 || loops[last].extent < 4)
        return -1;
    for (int k = last - 1; k >= 0; k--)
        if (loops[k].in == elem && loops[k].extent >= 4)
            return k;
    return -1;
}

static void plan_squares(struct part *p, struct loop *loops, int count, int row)
{
    struct copy *c = &p->c;
    struct loop rows = loops[row], columns = loops[count - 1];
    p->way = SQUARES;
    c->unit = (int)columns.out;
    c->rows = (unsigned)rows.extent;
    c->columns = (unsigned)columns.extent;
    c->row_out = rows.out;
    c->column_in = columns.in;
    c->across = divisor_of(div_up(columns.extent, SQUARE));
    c->down = divisor_of(div_up(rows.extent, SQUARE));
    memmove(loops + row, loops + row + 1, (size_t)(count - row - 1) * sizeof(*loops));
    c->work = c->across.d * c->down.d;
    add_loops(c, loops, count - 2);
}

static bool is_run(const struct loop *loop, int elem)
{
    return loop->in == elem && loop->out == elem;
}

static bool rows_are_short(const struct loop *loops, int count, int elem)
{
    const struct loop *last = &loops[count - 1];
    return count > 1 && last->out == elem && last->extent <= SHORT && !is_run(last, elem);
}

static void plan_short(struct part *p, const struct loop *loops, int count, int elem)
{
    struct copy *c = &p->c;
    p->way = SHORT_ROWS;
    c->unit = elem;
    c->columns = (unsigned)loops[count - 1].extent;
    c->column_in = loops[count - 1].in;
    c->work = 1;
    add_loops(c, loops, count - 1);
}

static void plan_units(struct part *p, struct loop *loops, int count, int elem)
{
    struct copy *c = &p->c;
    bool run = count > 0 && is_run(&loops[count - 1], elem);
    int64_t bytes = run ? loops[count - 1].extent * elem : elem;
    count -= run;
    c->unit = unit_of(p, loops, count, bytes);
    c->work = 1;
    add_loops(c, loops, count);
    struct loop inner = {bytes / c->unit, c->unit, c->unit};
    add_loops(c, &inner, inner.extent > 1);
}

static enum status plan_part(const struct kernel_query *q, int index, struct part *p,
                             struct error *why)
{
    struct move move;
    struct flat_move flat;
    struct loop loops[LOOPS];
    TRY(move_of_query(q, index, &move, &flat, why));
    p->input = move.input;
    p->output = move.output;
    if (flat.loop_count < 0)
        return STATUS_OK; /* nobody wants it: no work */
    const struct desc *in = &q->in[move.input];
    int elem = element_bytes(in->dtype);
    int64_t total = elem;
    for (int k = 0; k < flat.loop_count; k++)
        total *= flat.loops[k].extent;
    if (total >= INT32_MAX || !fits_index(in) || !fits_index(&q->out[move.output]))
        return REFUSE(why, "more than 2^31 bytes");
    if (total == 0)
        return STATUS_OK;
    p->in_start = flat.in_start * elem;
    p->out_start = flat.out_start * elem;
    int count = joined_loops(loops, sorted_loops(&flat, elem, loops));
    int row = source_loop(loops, count, elem);
    if (rows_are_short(loops, count, elem))
        plan_short(p, loops, count, elem);
    else if (row >= 0)
        plan_squares(p, loops, count, row);
    else
        plan_units(p, loops, count, elem);
    p->grid = grid_for(q, (int64_t)p->c.work * (p->way == SQUARES ? (int)BLOCK : 1));
    return STATUS_OK;
}

/* ---- hooks ---- */

struct kernel_state {
    int count;
    struct part *parts; /* made by prepare: how many there are is the node's to say */
};

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    s->count = move_count_of_query(q);
    for (int k = 0; k < s->count; k++) {
        struct part checked = {};
        TRY(plan_part(q, k, &checked, why));
    }
    return STATUS_OK;
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *s,
                           size_t *packed_bytes, struct error *err)
{
    *packed_bytes = 0;
    s->parts = (struct part *)calloc((size_t)s->count + 1, sizeof(*s->parts));
    if (!s->parts)
        return cuda_host->refuse(err, STATUS_NO_MEMORY, "out of memory");
    for (int k = 0; k < s->count; k++)
        TRY(plan_part(q, k, &s->parts[k], err));
    return STATUS_OK;
}

static void release(struct kernel_state *state)
{
    free(state->parts);
}

static void launch_part(const struct part *p, const struct kernel_args *args)
{
    struct copy c = p->c;
    if (c.work == 0)
        return;
    c.from = (const char *)args->in[p->input] + p->in_start;
    c.to = (char *)args->out[p->output] + p->out_start;
    struct cuda_grid grid = p->grid, block = cuda_size(BLOCK);
    if (p->way == SHORT_ROWS)
        LAUNCH_WORDS(c.unit, copy_short<word>, grid, block, 0, &c, args);
    else if (p->way == SQUARES && c.unit == 4)
        LAUNCH(copy_squares<uint32_t>, grid, block, 0, &c, args);
    else if (p->way == SQUARES)
        LAUNCH(copy_squares<uint16_t>, grid, block, 0, &c, args);
    else if (c.unit == 16)
        LAUNCH(copy_units<uint4>, grid, block, 0, &c, args);
    else
        LAUNCH_WORDS(c.unit, copy_units<word>, grid, block, 0, &c, args);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    for (int k = 0; k < state->count; k++)
        launch_part(&state->parts[k], args);
}

static const char *const ops[] = {
    "Concat", "DepthToSpace", "Dropout", "Expand",  "Flatten",   "Identity", "Reorder",   "Reshape",
    "Slice",  "SpaceToDepth", "Split",   "Squeeze", "Transpose", "Tile",     "Unsqueeze", NULL};

CUDA_KERNEL(copy) = {CUDA_NAME(copy),    .ops = ops,        CUDA_PLAN,
                     CUDA_HOOK(prepare), CUDA_HOOK(launch), CUDA_HOOK(release)};
