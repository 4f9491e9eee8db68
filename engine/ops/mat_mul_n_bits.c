/* SPDX-License-Identifier: Apache-2.0
 * MatMulNBits (com.microsoft): A, a matrix or many, times the transpose of N rows of K weights in
 * 4 or 8 bits (engine/ops/lib/block_codes.h), plus a bias. Language models are stored so; the
 * weights are a few bits in memory, but numbers in the product: sums are of floats. accuracy_level
 * allows others to round A to bytes; here nobody does. */
#include "engine/ops/compute/ref_gemm.h"
#include "engine/ops/lib/block_codes.h"

enum { A, CODES, SCALES, ZEROS, ORDER, BIAS };

static const char *const attrs[] = {
    "K", "N", "accuracy_level", "bits", "block_size", "weight_prepacked", NULL};

static enum status codes_of(const struct node *node, struct block_codes *codes, struct error *err)
{
    return block_codes_from(node, node_int(node, "N", 0), node_int(node, "K", 0), codes, err);
}

static enum status check_operands(const struct infer *c, const struct block_codes *codes,
                                  struct error *err)
{
    char text[96];
    const struct shape *a = &c->in[A]->shape, *b = &c->in[CODES]->shape;
    if (!dtype_is_float(c->in[A]->dtype) || c->in[CODES]->dtype != DTYPE_U8)
        return FAIL(err, STATUS_FAILED, "MatMulNBits: %s times %s", dtype_name(c->in[A]->dtype),
                    dtype_name(c->in[CODES]->dtype));
    if (a->rank < 1 || a->dim[a->rank - 1] != codes->k)
        return FAIL(err, STATUS_FAILED, "MatMulNBits: A is %s, K is %lld", shape_text(a, text),
                    (long long)codes->k);
    if (shape_count(b) != codes->rows * codes->row_bytes)
        return FAIL(err, STATUS_FAILED, "MatMulNBits: B is %s, not %lld x %lld bytes",
                    shape_text(b, text), (long long)codes->rows, (long long)codes->row_bytes);
    if (infer_has(c, ORDER))
        return UNSUPPORTED(err, "MatMulNBits with g_idx: blocks of elements out of turn");
    if (infer_has(c, BIAS) && shape_count(&c->in[BIAS]->shape) != codes->rows)
        return FAIL(err, STATUS_FAILED, "MatMulNBits: the bias is not of N numbers");
    return STATUS_OK;
}

static enum status infer(const struct infer *c, struct error *err)
{
    struct block_codes codes;
    if (node_int(c->node, "weight_prepacked", 0))
        return UNSUPPORTED(err, "MatMulNBits with weights packed for one kind of machine");
    TRY(codes_of(c->node, &codes, err));
    TRY(check_operands(c, &codes, err));
    TRY(block_codes_check(&codes, c, SCALES, ZEROS, err));
    struct shape y = c->in[A]->shape;
    y.dim[y.rank - 1] = codes.rows;
    infer_set(c, 0, c->in[A]->dtype, &y);
    return STATUS_OK;
}

static void cost(const struct infer *c, struct cost *cost)
{
    double results = (double)shape_count(&c->out[0]->shape);
    cost->macs = results * (double)node_int(c->node, "K", 0);
    cost->elementwise = infer_has(c, BIAS) ? results : 0;
}

/* What the packing of the product reads. */
struct weights {
    struct block_codes codes;
    struct block_code_tensors in;
};

static void pack(const struct ref_gemm *g, int64_t k0, int64_t count_k, int64_t n0, int64_t count_n,
                 double *panel)
{
    const struct weights *w = g->source;
    for (int64_t n = 0; n < count_n; n++)
        for (int64_t k = 0; k < count_k; k++)
            panel[k * REF_GEMM_COLUMNS + n] = block_codes_value(&w->codes, &w->in, n0 + n, k0 + k);
}

static const struct ref_tensor *input(const struct ref_call *call, int k)
{
    return k < call->in_count ? call->in[k] : NULL;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    struct weights w = {.in = {call->in[CODES], call->in[SCALES], input(call, ZEROS)}};
    TRY(codes_of(call->node, &w.codes, err));
    const struct ref_tensor *bias = input(call, BIAS);
    double *y = call->out[0]->f;
    int64_t n = w.codes.rows, m = call->out[0]->count / n;
    for (int64_t i = 0; bias && i < m * n; i++)
        y[i] = bias->f[i % n];
    struct ref_gemm product = {.m = m,
                               .n = n,
                               .k = w.codes.k,
                               .a = call->in[A]->f,
                               .a_row = w.codes.k,
                               .a_col = 1,
                               .c = y,
                               .c_row = n,
                               .pack = pack,
                               .source = &w};
    ref_gemm_run(call->pool, &product, 1);
    return STATUS_OK;
}

static const struct op_case cases[] = {
    {.name = "one_row",
     .inputs = "f32[1,128] u8[24,4,16]{0:256}! f32[24,4]{0.1:0.2}!",
     .attrs = "K=128 N=24 bits=4 block_size=32"},
    {.name = "rows",
     .inputs = "f32[2,3,256] u8[37,8,16]{0:256}! f32[296]{0.1:0.2}!",
     .attrs = "K=256 N=37 bits=4 block_size=32"},
    {.name = "many_rows",
     .inputs = "f32[3,17,320] u8[70,10,16]{0:256}! f32[70,10]{0.1:0.2}!",
     .attrs = "K=320 N=70 bits=4 block_size=32"},
    {.name = "bytes",
     .inputs = "f32[4,192] u8[33,6,32]{0:256}! f32[33,6]{0.001:0.02}!",
     .attrs = "K=192 N=33 bits=8 block_size=32"},
    {.name = "bytes_many_rows",
     .inputs = "f32[29,192] u8[33,6,32]{0:256}! f32[33,6]{0.001:0.02}!",
     .attrs = "K=192 N=33 bits=8 block_size=32"},
    {.name = "bytes_blocks_of_128",
     .inputs = "f32[2,640] u8[19,5,128]{0:256}! f32[19,5]{0.001:0.02}!",
     .attrs = "K=640 N=19 bits=8 block_size=128"},
    {.name = "blocks_of_16",
     .inputs = "f32[3,48] u8[21,3,8]{0:256}! f32[21,3]!",
     .attrs = "K=48 N=21 bits=4 block_size=16"},
    {.name = "bytes_blocks_of_16",
     .inputs = "f32[3,112] u8[21,7,16]{0:256}! f32[21,7]!",
     .attrs = "K=112 N=21 bits=8 block_size=16"},
    {.name = "blocks_of_64",
     .inputs = "f32[5,576] u8[22,9,32]{0:256}! f32[22,9]!",
     .attrs = "K=576 N=22 bits=4 block_size=64"},
    {.name = "blocks_of_128",
     .inputs = "f32[1,1152] u8[44,9,64]{0:256}! f32[44,9]!",
     .attrs = "K=1152 N=44 bits=4"},
    {.name = "blocks_of_256",
     .inputs = "f32[6,768] u8[9,3,128]{0:256}! f32[9,3]!",
     .attrs = "K=768 N=9 bits=4 block_size=256"},
    {.name = "block_longer_than_a_row",
     .inputs = "f32[2,40] u8[9,1,64]{0:256}! f32[9,1]!",
     .attrs = "K=40 N=9 bits=4 block_size=128"},
    {.name = "last_block_not_full",
     .inputs = "f32[3,101] u8[13,4,16]{0:256}! f32[13,4]!",
     .attrs = "K=101 N=13 bits=4 block_size=32"},
    {.name = "last_block_not_full_many_rows",
     .inputs = "f32[21,101] u8[40,4,32]{0:256}! f32[40,4]{0.001:0.02}!",
     .attrs = "K=101 N=40 bits=8 block_size=32"},
    {.name = "zero_points",
     .inputs = "f32[3,160] u8[26,5,16]{0:256}! f32[26,5]! u8[26,3]{0:256}!",
     .attrs = "K=160 N=26 bits=4 block_size=32"},
    {.name = "zero_points_many_rows",
     .inputs = "f32[2,11,160] u8[26,5,16]{0:256}! f32[26,5]! u8[26,3]{0:256}!",
     .attrs = "K=160 N=26 bits=4 block_size=32"},
    {.name = "zero_points_of_bytes",
     .inputs = "f32[2,96] u8[18,3,32]{0:256}! f32[18,3]{0.001:0.02}! u8[18,3]{0:256}!",
     .attrs = "K=96 N=18 bits=8 block_size=32"},
    {.name = "zero_points_of_blocks_of_16",
     .inputs = "f32[5,304] u8[11,19,8]{0:256}! f32[11,19]! u8[11,10]{0:256}!",
     .attrs = "K=304 N=11 bits=4 block_size=16"},
    {.name = "zero_points_of_blocks_of_128",
     .inputs = "f32[1,640] u8[14,5,64]{0:256}! f32[14,5]! u8[14,3]{0:256}!",
     .attrs = "K=640 N=14 bits=4 block_size=128"},
    {.name = "zero_points_of_blocks_of_64",
     .inputs = "f32[2,640] u8[14,10,32]{0:256}! f32[14,10]! u8[14,5]{0:256}!",
     .attrs = "K=640 N=14 bits=4 block_size=64"},
    {.name = "zero_points_of_bytes_in_blocks_of_16",
     .inputs = "f32[3,112] u8[21,7,16]{0:256}! f32[21,7]! u8[21,7]{0:256}!",
     .attrs = "K=112 N=21 bits=8 block_size=16"},
    {.name = "zero_points_at_the_ends",
     .inputs = "f32[2,256]{-1000:1000} u8[12,8,32]{0:256}! f32[12,8]! u8[12,8]=255",
     .attrs = "K=256 N=12 bits=8 block_size=32"},
    {.name = "bias",
     .inputs = "f32[2,64] u8[35,2,16]{0:256}! f32[35,2]! - - f32[35]!",
     .attrs = "K=64 N=35 bits=4 block_size=32"},
    {.name = "bias_many_rows",
     .inputs = "f32[19,64] u8[35,2,16]{0:256}! f32[35,2]! - - f32[35]!",
     .attrs = "K=64 N=35 bits=4 block_size=32"},
    {.name = "vector",
     .inputs = "f32[96] u8[20,3,16]{0:256}! f32[20,3]!",
     .attrs = "K=96 N=20 bits=4 block_size=32"},
    {.name = "large_and_small",
     .inputs = "f32[8,128]{-1000000000:1000000000} u8[12,4,16]{0:256}! f32[12,4]{0.0001:0.0002}!",
     .attrs = "K=128 N=12 bits=4 block_size=32"},
    {.name = "large_and_small_bytes",
     .inputs = "f32[8,128]{-1000000000:1000000000} u8[12,4,32]{0:256}! f32[12,4]{0.0001:0.0002}!",
     .attrs = "K=128 N=12 bits=8 block_size=32"},
    {.name = "tiny",
     .inputs =
         "f32[2,64]{-0.000000000000000000000000000000001:0.000000000000000000000000000000001} "
         "u8[12,2,16]{0:256}! f32[12,2]{1000:2000}!",
     .attrs = "K=64 N=12 bits=4 block_size=32"},
    {.name = "zeros",
     .inputs = "f32[2,128]=0 u8[12,4,16]{0:256}! f32[12,4]!",
     .attrs = "K=128 N=12 bits=4 block_size=32"},
    {.name = "largest_codes",
     .inputs = "f32[2,512]=1 u8[12,16,32]=0 f32[12,16]=0.01",
     .attrs = "K=512 N=12 bits=8 block_size=32"},
    {.name = "weights_given_late",
     .inputs = "f32[3,128] u8[12,4,16]{0:256} f32[12,4]",
     .attrs = "K=128 N=12 bits=4 block_size=32"},
    {.name = "deep",
     .inputs = "f32[1,8192] u8[48,256,16]{0:256}! f32[48,256]{0.01:0.02}!",
     .attrs = "K=8192 N=48 bits=4 block_size=32"},
    {.name = "deep_many_rows",
     .inputs = "f32[33,2048] u8[100,64,16]{0:256}! f32[100,64]{0.01:0.02}!",
     .attrs = "K=2048 N=100 bits=4 block_size=32"},
};

REGISTER(op, mat_mul_n_bits) = {
    .name = "MatMulNBits",
    .domain = "com.microsoft",
    .inputs_min = 3,
    .inputs_max = 6,
    .attrs = attrs,
    .narrow = NARROW_WORK,
    .narrow_roundings = 2, /* the weights, where a kernel makes floats of them */
    .buffers = 1u << SCALES | 1u << ZEROS,
    .packed_inputs = 1u << CODES,
    .epilogue = true,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "quantised networks are not trained",
    OP_CASES(cases),
};
