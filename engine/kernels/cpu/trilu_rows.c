/* SPDX-License-Identifier: Apache-2.0
 *
 * Trilu of any element type: of each row one part is copied, the other filled with zeros. What is
 * not copied is not read, either. */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/kernels/lib/copy_bytes.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/kernels/lib/tiles.h"

enum { TILE_BYTES = 32 << 10, ROW_BYTES = 64 /* what beginning a row costs, as bytes of a copy */ };

struct kernel_state {
    int64_t rows, columns; /* of a matrix */
    int64_t lines;         /* rows in all; 0 where they are empty */
    int64_t size, pitch;   /* bytes of an element; from row to row of the result */
    int64_t lines_per_tile;
    bool upper, shifts, wide; /* shifts: the diagonal is given, wide: as i64 */
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    const struct shape *x = &q->in[0].shape;
    const struct desc *diagonal = query_in(q, 1);
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_plain(&q->in[0]))
        return UNSUPPORTED(why, "input 0 is not plain");
    if (diagonal && diagonal->dtype != DTYPE_I32 && diagonal->dtype != DTYPE_I64)
        return UNSUPPORTED(why, "a diagonal of type %s", dtype_name(diagonal->dtype));
    TRY(row_pitch(&q->out[0], 1, &s->pitch, why));
    s->size = (int64_t)dtype_size(q->in[0].dtype);
    s->pitch *= s->size;
    s->rows = x->dim[x->rank - 2];
    s->columns = x->dim[x->rank - 1];
    s->lines = s->columns ? shape_span(x, 0, x->rank - 1) : 0;
    s->upper = node_int(q->node, "upper", 1) != 0;
    s->shifts = diagonal != NULL;
    s->wide = diagonal && diagonal->dtype == DTYPE_I64;
    s->lines_per_tile =
        rows_of_tile(s->lines, s->columns * s->size + ROW_BYTES, TILE_BYTES, q->threads);
    return STATUS_OK;
}

struct job {
    const struct kernel_state *state;
    const char *x;
    char *y;
    int64_t shift; /* of the diagonal to the right */
};

static void run_tile(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    int64_t line = tile * s->lines_per_tile, end = smaller(line + s->lines_per_tile, s->lines);
    int64_t row = line % s->rows;
    (void)thread;
    for (; line < end; line++, row = row + 1 == s->rows ? 0 : row + 1) {
        const char *x = job->x + line * s->columns * s->size;
        char *y = job->y + line * s->pitch;
        int64_t cut = row + job->shift + (s->upper ? 0 : 1); /* columns before it are below */
        cut = smaller(larger(cut, 0), s->columns);
        int64_t below = cut * s->size, above = (s->columns - cut) * s->size;
        if (s->upper) {
            memset(y, 0, (size_t)below);
            copy_run(y + below, x + below, above);
        } else {
            copy_run(y, x, below);
            memset(y + below, 0, (size_t)above);
        }
    }
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {.state = s, .x = args->in[0], .y = args->out[0]};
    if (s->shifts)
        job.shift = s->wide ? *(const int64_t *)args->in[1] : *(const int32_t *)args->in[1];
    job.shift = smaller(larger(job.shift, -s->rows), s->columns);
    pool_run(args->pool, divide_up(s->lines, s->lines_per_tile), run_tile, &job);
}

REGISTER_KERNEL(trilu_rows) = {
    NATIVE(trilu_rows), .ops = OPS("Trilu"), .state_size = sizeof(struct kernel_state),
    .plan = plan,       .launch = launch,
};
