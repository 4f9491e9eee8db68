/* SPDX-License-Identifier: Apache-2.0
 * MatMul: numpy.matmul, also for integers. transA and transB (the last two axes of a matrix, or of
 * a stack of them, are exchanged) are ours: passes set them, files never have them. */
#include "engine/ops/compute/ref_matmul.h"
#include "engine/ops/family/gradient.h"
#include "engine/ops/lib/matmul_shape.h"

static const char *const attrs[] = {"transA", "transB", NULL};

static enum status infer(const struct infer *c, struct error *err)
{
    struct shape y;
    if (c->in[0]->dtype != c->in[1]->dtype)
        return FAIL(err, STATUS_FAILED, "MatMul: %s times %s", dtype_name(c->in[0]->dtype),
                    dtype_name(c->in[1]->dtype));
    TRY(matmul_infer(c->node, &c->in[0]->shape, &c->in[1]->shape, &y, err));
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

static struct matmul_shape shape_of_call(const struct ref_call *call)
{
    struct desc a = desc_dense(DTYPE_F64, &call->in[0]->shape, LAYOUT_PLAIN);
    struct desc b = desc_dense(DTYPE_F64, &call->in[1]->shape, LAYOUT_PLAIN);
    struct desc c = desc_dense(DTYPE_F64, &call->out[0]->shape, LAYOUT_PLAIN);
    return matmul_shape_from(call->node, &a, &b, &c);
}

/* Unsigned arithmetic, so that overflow wraps; the caller cuts to the type's width. */
static void multiply_ints(const struct ref_call *call, const struct matmul_shape *s)
{
    for (int64_t t = 0; t < s->batch; t++) {
        struct matmul_offset at = matmul_offset_of(s, t);
        const int64_t *a = call->in[0]->i + at.a, *b = call->in[1]->i + at.b;
        for (int64_t i = 0; i < s->m * s->n; i++) {
            int64_t row = i / s->n, column = i % s->n;
            uint64_t sum = 0;
            for (int64_t k = 0; k < s->k; k++)
                sum += (uint64_t)a[row * s->a_row + k * s->a_col] *
                       (uint64_t)b[k * s->b_row + column * s->b_col];
            call->out[0]->i[at.c + row * s->c_row + column * s->c_col] = (int64_t)sum;
        }
    }
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *a = call->in[0], *b = call->in[1];
    if (!dtype_is_float(a->dtype)) {
        struct matmul_shape s = shape_of_call(call);
        multiply_ints(call, &s);
        return STATUS_OK;
    }
    struct ref_matrix left = {&a->shape, a->f}, right = {&b->shape, b->f};
    return ref_matmul(call, &left, &right, call->out[0]->f, err);
}

/* Vectors as matrices of one row or column, and where one matrix b multiplies a stack, the stack as
 * one matrix: its gradient then is one product instead of the sum of many. */
static void as_matrices(struct graph *g, int *a, int *b, int *dy)
{
    struct shape as = gradient_shape(g, *a), bs = gradient_shape(g, *b), y = gradient_shape(g, *dy);
    if (bs.rank == 1) {
        bs = shape_of(bs.dim[0], 1);
        y.dim[y.rank++] = 1;
    }
    if (as.rank == 1) {
        as = shape_of(1, as.dim[0]);
        y.dim[y.rank] = y.dim[y.rank - 1];
        y.dim[y.rank - 1] = 1;
        y.rank++;
    }
    if (bs.rank == 2 && as.rank > 2) {
        as = shape_of(shape_span(&as, 0, as.rank - 1), as.dim[as.rank - 1]);
        y = shape_of(as.dim[0], bs.dim[1]);
    }
    *a = make_reshaped(g, *a, &as);
    *b = make_reshaped(g, *b, &bs);
    *dy = make_reshaped(g, *dy, &y);
}

static int turned_if(struct graph *g, bool turned, int x)
{
    return turned ? make_transposed(g, x) : x;
}

/* Of matrices (and stacks of them): dA = dC B', dB = A' dC. */
static enum status gradient(const struct gradient_call *c, struct error *err)
{
    struct graph *g = c->g;
    bool turn_a = node_int(gradient_node(c), "transA", 0) != 0;
    bool turn_b = node_int(gradient_node(c), "transB", 0) != 0;
    int a = turned_if(g, turn_a, gradient_in(c, 0)), b = turned_if(g, turn_b, gradient_in(c, 1));
    int dy = c->dy[0];
    struct shape as = gradient_shape(g, a), bs = gradient_shape(g, b);
    (void)err;
    as_matrices(g, &a, &b, &dy);
    if (c->wanted[0]) {
        int da = make_sum_to(g, make_mat_mul(g, dy, make_transposed(g, b)), a);
        c->dx[0] = turned_if(g, turn_a, make_reshaped(g, da, &as));
    }
    if (c->wanted[1]) {
        int db = make_sum_to(g, make_mat_mul(g, make_transposed(g, a), dy), b);
        c->dx[1] = turned_if(g, turn_b, make_reshaped(g, db, &bs));
    }
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "2d", .inputs = "f32[33,70] f32[70,45]!"},
    {.name = "2d_both_at_run_time", .inputs = "f32[16,32] f32[32,48]"},
    {.name = "one_row", .inputs = "f32[1,130] f32[130,67]!"},
    {.name = "one_column", .inputs = "f32[65,130] f32[130,1]!"},
    {.name = "long_sums", .inputs = "f32[6,1031] f32[1031,40]!"},
    {.name = "one_wide_row", .inputs = "f32[1,70] f32[70,1500]!"},
    {.name = "two_wide_rows", .inputs = "f32[2,3] f32[3,9000]!"},
    {.name = "k_is_1", .inputs = "f32[9,1] f32[1,20]!"},
    {.name = "wide", .inputs = "f32[128,64] f32[64,512]!"},
    {.name = "blocks", .inputs = "f32[150,200] f32[200,136]"},
    {.name = "odd_blocks", .inputs = "f32[67,45] f32[45,131]"},
    {.name = "batch", .inputs = "f32[3,2,17,20] f32[3,2,20,9]"},
    {.name = "batch_by_constant_matrix", .inputs = "f32[2,7,24] f32[24,36]!"},
    {.name = "broadcast_batches", .inputs = "f32[4,1,5,6] f32[3,6,7]"},
    {.name = "matrix_by_batch", .inputs = "f32[5,6] f32[3,6,7]"},
    {.name = "vector_by_vector", .inputs = "f32[19] f32[19]"},
    {.name = "vector_by_matrix", .inputs = "f32[19] f32[19,6]!"},
    {.name = "matrix_by_vector", .inputs = "f32[7,19] f32[19]"},
    {.name = "vector_by_batch", .inputs = "f32[6] f32[2,6,5]"},
    {.name = "batch_by_vector", .inputs = "f32[2,5,6] f32[6]"},
    {.name = "batches_by_vector", .inputs = "f32[4,1,5,6] f32[6]"},
    {.name = "bf16", .inputs = "bf16[33,70] bf16[70,45]!", .tolerance = 8e-3},
    {.name = "bf16_odd_k", .inputs = "bf16[14,33] bf16[33,50]", .tolerance = 8e-3},
    {.name = "bf16_one_row", .inputs = "bf16[1,130] bf16[130,67]!", .tolerance = 8e-3},
    {.name = "bf16_one_column", .inputs = "bf16[65,130] bf16[130,1]", .tolerance = 8e-3},
    {.name = "bf16_batch", .inputs = "bf16[3,2,17,20] bf16[3,2,20,9]", .tolerance = 8e-3},
    {.name = "bf16_broadcast_batches", .inputs = "bf16[4,1,5,6] bf16[3,6,7]", .tolerance = 8e-3},
    {.name = "bf16_vectors", .inputs = "bf16[19] bf16[19]", .tolerance = 8e-3},
    {.name = "bf16_many_columns", .inputs = "bf16[40,1100] bf16[1100,300]", .tolerance = 8e-3},
    {.name = "transB", .inputs = "f32[35,70] f32[45,70]!", .attrs = "transB=1"},
    {.name = "transA", .inputs = "f32[70,37] f32[70,45]", .attrs = "transA=1"},
    {.name = "transA_long_sums", .inputs = "f32[1100,67] f32[1100,129]", .attrs = "transA=1"},
    {.name = "transA_one_row", .inputs = "f32[130,1] f32[130,67]!", .attrs = "transA=1"},
    {.name = "transA_one_column", .inputs = "f32[130,65] f32[130,1]!", .attrs = "transA=1"},
    {.name = "transA_transB_batch",
     .inputs = "f32[3,2,20,17] f32[3,2,9,20]",
     .attrs = "transA=1 transB=1"},
    {.name = "transA_many_batches", .inputs = "f32[7,33,18] f32[7,33,50]", .attrs = "transA=1"},
    {.name = "transB_by_matrix", .inputs = "f32[2,7,24] f32[36,24]!", .attrs = "transB=1"},
    {.name = "transA_by_matrix", .inputs = "f32[4,24,19] f32[24,36]!", .attrs = "transA=1"},
    {.name = "transA_by_vector", .inputs = "f32[2,6,5] f32[6]", .attrs = "transA=1"},
    {.name = "bf16_transA_batch",
     .inputs = "bf16[3,31,21] bf16[3,31,18]",
     .attrs = "transA=1",
     .tolerance = 8e-3},
    {.name = "transB_integers", .inputs = "i32[4,5]{-9:9} i32[3,5]{-9:9}", .attrs = "transB=1"},
    {.name = "integers", .inputs = "i32[4,5]{-9:9} i32[5,3]{-9:9}"},
};

REGISTER(op, mat_mul) = {
    .name = "MatMul",
    .narrow = NARROW_WORK,
    .inputs_min = 2,
    .attrs = attrs,
    .epilogue = true,
    .packs = true,
    .infer = infer,
    .cost = matmul_cost,
    .reference = reference,
    .gradient = gradient,
    OP_CASES(cases),
};
