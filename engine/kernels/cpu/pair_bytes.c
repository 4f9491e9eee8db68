/* SPDX-License-Identifier: Apache-2.0
 *
 * AddBytes and MulBytes: bytes become floats, and bytes again, in registers. The second operand
 * lies like the first, is one number, or is a line that each line of an image or matrix meets. */
#include <string.h>

#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd.h"
#include "engine/kernels/lib/simd_dot.h"
#include "engine/ops/family/rescale.h"
#include "engine/ops/lib/op_args.h"
#include "engine/ops/lib/strided.h"

enum { TILE = 32768 };

/* How bytes become floats: each less `zero`, times `scale`. */
struct operand {
    bool is_signed;
    int32_t zero;
    float scale;
};

struct kernel_state {
    struct rescale rescale;
    struct operand a, b;
    bool product;
    float last;          /* added to a sum, or multiplied with a product */
    int64_t lines, line; /* elements of one; lines cut into tiles where there is one */
    int64_t lines_per_tile;
    struct strided space; /* of a, operand 0, and b, operand 1 */
    int64_t step;         /* of b along a line: 0 or 1 */
};

struct job {
    const struct kernel_state *state;
    const unsigned char *a, *b;
    char *y;
};

static struct operand operand_of(const struct kernel_query *q, int k)
{
    static const char *const zeros[] = {"a_zero", "b_zero"}, *const scales[] = {"a_scale",
                                                                                "b_scale"};
    return (struct operand){.is_signed = q->in[k].dtype == DTYPE_I8,
                            .zero = (int32_t)node_int(q->node, zeros[k], 0),
                            .scale = (float)node_float(q->node, scales[k], 1)};
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    const struct desc *descs[] = {&q->in[0], &q->in[1]};
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_dense(&q->out[0]) || !desc_same_memory(&q->in[0], &q->out[0]))
        return UNSUPPORTED(why, "input and result do not lie alike");
    s->product = strcmp(q->node->op->name, "MulBytes") == 0;
    s->rescale = rescale_of(q->node);
    s->a = operand_of(q, 0);
    s->b = operand_of(q, 1);
    s->last =
        (float)(s->product ? node_float(q->node, "scale", 1) : node_float(q->node, "offset", 0));
    strided_init(&s->space, descs, 2);
    s->step = s->space.stride[1][s->space.rank - 1];
    if (s->space.row > 1 && s->step != 0 && s->step != 1)
        return UNSUPPORTED(why, "lines of the second operand have gaps");
    s->lines = s->space.rows;
    s->line = s->space.row;
    s->lines_per_tile = s->line ? divide_up(TILE, s->line) : 1;
    return STATUS_OK;
}

/* ---- a line ---- */

/* What is the same for all elements. */
struct constants {
    vf a_scale, b_scale, last, low, high;
    vi a_zero, b_zero, zero;
};

static struct constants constants_of(const struct kernel_state *s)
{
    return (struct constants){vf_set1(s->a.scale),     vf_set1(s->b.scale),      vf_set1(s->last),
                              vf_set1(s->rescale.low), vf_set1(s->rescale.high), vi_set1(s->a.zero),
                              vi_set1(s->b.zero),      vi_set1(s->rescale.zero)};
}

SIMD_INLINE vf load(const unsigned char *from, int64_t left, bool is_signed, vi zero, vf scale)
{
    vi codes = is_signed ? vi_load_i8(from, left) : vi_load_u8(from, left);
    return vf_mul(vf_from_vi(vi_sub(codes, zero)), scale);
}

/* How operands are read: constants, so that a loop has no questions. */
struct reading {
    bool a_signed, b_signed, one; /* one: b is a number for all */
};

SIMD_INLINE void run_vector(const struct kernel_state *s, const struct constants *c,
                            struct reading r, vf all, const unsigned char *a,
                            const unsigned char *b, int64_t left, char *y)
{
    vf x = load(a, left, r.a_signed, c->a_zero, c->a_scale);
    vf other = r.one ? all : load(b, left, r.b_signed, c->b_zero, c->b_scale);
    vf value = s->product ? vf_mul(vf_mul(x, other), c->last) : vf_add(vf_add(x, other), c->last);
    value = vf_min(vf_max(value, c->low), c->high);
    if (s->rescale.to == DTYPE_F32)
        vf_store_m((float *)(void *)y, vm_first(left), value);
    else
        vi_store_bytes((uint8_t *)y, left, vi_add(vi_from_vf(value), c->zero));
}

SIMD_INLINE void run_elements(const struct kernel_state *s, struct reading r,
                              const unsigned char *a, const unsigned char *b, int64_t n, char *y)
{
    struct constants c = constants_of(s);
    int64_t element = s->rescale.to == DTYPE_F32 ? (int64_t)sizeof(float) : 1, i = 0;
    int code = r.b_signed ? (int8_t)*b : *b;
    vf all = vf_set1((float)(code - s->b.zero) * s->b.scale);
    for (; i + VL <= n; i += VL)
        run_vector(s, &c, r, all, a + i, b + i, VL, y + i * element);
    if (i < n)
        run_vector(s, &c, r, all, a + i, b + i, n - i, y + i * element);
}

static void run_row(const struct kernel_state *s, const unsigned char *a, const unsigned char *b,
                    int64_t n, char *y)
{
    if (s->step == 0)
        run_elements(s, (struct reading){s->a.is_signed, s->b.is_signed, true}, a, b, n, y);
    else if (s->a.is_signed && s->b.is_signed)
        run_elements(s, (struct reading){true, true, false}, a, b, n, y);
    else if (s->a.is_signed)
        run_elements(s, (struct reading){true, false, false}, a, b, n, y);
    else if (s->b.is_signed)
        run_elements(s, (struct reading){false, true, false}, a, b, n, y);
    else
        run_elements(s, (struct reading){false, false, false}, a, b, n, y);
}

/* Elements [first, last) of a line. */
static void run_part(const struct job *job, int64_t line, int64_t first, int64_t last)
{
    const struct kernel_state *s = job->state;
    int64_t element = s->rescale.to == DTYPE_F32 ? (int64_t)sizeof(float) : 1;
    int64_t a = line * s->line + first, b = strided_at(&s->space, 1, line) + first * s->step;
    run_row(s, job->a + a, job->b + b, last - first, job->y + a * element);
}

static void run_tile(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    const struct kernel_state *s = job->state;
    (void)thread;
    if (s->lines == 1) {
        run_part(job, 0, tile * TILE, smaller((tile + 1) * TILE, s->line));
        return;
    }
    int64_t first = tile * s->lines_per_tile, last = smaller(first + s->lines_per_tile, s->lines);
    for (int64_t line = first; line < last; line++)
        run_part(job, line, 0, s->line);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {s, args->in[0], args->in[1], args->out[0]};
    int64_t tiles =
        s->lines == 1 ? divide_up(s->line, TILE) : divide_up(s->lines, s->lines_per_tile);
    if (s->line > 0)
        pool_run(args->pool, tiles, run_tile, &job);
}

REGISTER_KERNEL(pair_bytes) = {
    NATIVE(pair_bytes),
    .ops = OPS("AddBytes", "MulBytes"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
