/* SPDX-License-Identifier: Apache-2.0
 * Products of bytes, bf16 and f8: the passes that take transpositions and conversions away, and
 * results of many passes and chunks against the reference, for every instruction set. */

#include <math.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/compile/stages.h"
#include "engine/reference/reference.h"
#include "engine/run/exe.h"
#include "harness/roofs/peak.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"

enum { M = 130, N = 300, K = 5003 };

struct product {
    int64_t perm[2]; /* of the right operand */
    bool also_output, zero_points;
    bool row_of_zeros; /* one per column of b, as a matrix [1, N] */
};

static int bytes(struct graph *g, const char *name, enum dtype dtype, struct shape shape)
{
    double low = dtype == DTYPE_I8 ? -128 : 0;
    return graph_input(g, name, dtype, shape,
                       (struct fill){.kind = FILL_INDEX, .a = low, .b = low + 256});
}

static struct graph *graph_of(const struct product *p)
{
    struct graph *g = graph_new("bytes");
    bool turned = p->perm[0] == 1;
    int a = bytes(g, "a", DTYPE_U8, shape_of(M, K));
    int b = bytes(g, "b", DTYPE_I8, turned ? shape_of(N, K) : shape_of(K, N));
    int turn = graph_node(g, "Transpose", "turn", INPUTS(b), ATTRS(attr_ints("perm", 2, p->perm)));
    int zero_a = NONE, zero_b = NONE;
    if (p->zero_points) {
        zero_a = bytes(g, "zero_a", DTYPE_U8, shape_of(M));
        zero_b = bytes(g, "zero_b", DTYPE_I8, shape_of(N));
    }
    if (p->row_of_zeros)
        zero_b = bytes(g, "zero_b", DTYPE_I8, shape_of(1, N));
    int y = graph_node(g, "MatMulInteger", "y", INPUTS(a, turn, zero_a, zero_b), NO_ATTRS);
    graph_output(g, y);
    if (p->also_output)
        graph_output(g, turn);
    return g;
}

static void expect_transposes(const struct product *p, int before, int after)
{
    struct exe_options options = {.threads = 1};
    struct graph *g = graph_of(p);
    assert_int_equal(count_ops(g, "Transpose"), before);
    MUST(passes_run, g, &options, NULL, NULL);
    assert_int_equal(count_ops(g, "Transpose"), after);
    assert_int_equal(count_ops(g, "MatMulInteger"), 1);
    graph_free(g);
}

TEST(transpositions_are_taken_away)
{
    expect_transposes(&(struct product){.perm = {1, 0}}, 1, 0);
    expect_transposes(&(struct product){.perm = {1, 0}, .zero_points = true}, 1, 0);
    expect_transposes(&(struct product){.perm = {1, 0}, .also_output = true}, 1, 1);
}

TEST(a_matrix_of_zero_points_keeps_its_transposition)
{
    expect_transposes(&(struct product){.perm = {1, 0}, .row_of_zeros = true}, 1, 1);
}

/* The largest error of output 0, the native kernel being used. */
static double error_of(struct graph *g, enum isa isa, int threads, const char *kernel)
{
    struct exe *exe;
    struct exe_options options = {.threads = threads,
                                  .isa = isa,
                                  .no_tune = true,
                                  .only_variant = NONE,
                                  .providers = "native"};
    struct ref_tensor expected[2], got;
    const struct value *v = &g->values[g->outputs[0]];
    MUST(exe_new, g, &options, &exe);
    int used = 0;
    for (int s = 0; s < exe_step_count(exe); s++)
        used += strstr(exe_step_at(exe, s).kernel->name, kernel) != NULL;
    assert_int_equal(used, 1);
    MUST(reference_run, g, NULL, expected, exe_pool(exe));
    exe_run(exe);
    exe_run(exe);
    MUST(ref_from_data, &got, v->dtype, &v->shape, exe_output(exe, 0));
    double error = ref_rel_error(&got, &expected[0]);
    ref_release(&got);
    for (int k = 0; k < g->output_count; k++)
        ref_release(&expected[k]);
    exe_free(exe);
    return error;
}

TEST(bytes_are_exact)
{
    const struct product products[] = {
        {.perm = {1, 0}}, {.perm = {1, 0}, .zero_points = true}, {.perm = {0, 1}}};
    for (int k = 0; k < ARRAY_COUNT(products); k++)
        for (enum isa isa = ISA_SCALAR; isa <= isa_detect(); isa++)
            for (int threads = 1; threads <= 2; threads++) {
                struct graph *g = graph_of(&products[k]);
                assert_true(error_of(g, isa, threads, "matmul_bytes") == 0);
                graph_free(g);
            }
}

/* A vector is a matrix of one column: the rows of the left factor keep their scales. */
TEST(rows_times_a_vector_have_their_own_scales)
{
    enum { ROWS = 3, DEPTH = 8 };
    const struct fill one = {.kind = FILL_CONST, .a = 1};
    struct graph *g = graph_new("vector");
    int a = bytes(g, "a", DTYPE_U8, shape_of(ROWS, DEPTH));
    int b = bytes(g, "b", DTYPE_I8, shape_of(DEPTH));
    int scales = graph_input(g, "scales", DTYPE_F32, shape_of(ROWS), one);
    int scale = graph_input(g, "scale", DTYPE_F32, shape_of(1), one);
    int zero_a = graph_input(g, "zero_a", DTYPE_U8, shape_of(1), one);
    int zero_b = graph_input(g, "zero_b", DTYPE_I8, shape_of(1), one);
    int column = graph_const_i64(g, 2, (const int64_t[]){DEPTH, 1});
    int matrix = graph_node(g, "Reshape", "matrix", INPUTS(b, column), NO_ATTRS);
    const int right[] = {b, matrix};
    for (int k = 0; k < 2; k++) {
        int in[] = {a, scales, zero_a, right[k], scale, zero_b, scale, zero_a};
        graph_output(g, graph_node(g, "QLinearMatMul", NULL, ARRAY_COUNT(in), in, NO_ATTRS));
    }
    struct exe_options options = {.threads = 1, .no_tune = true, .only_variant = NONE};
    struct exe *exe = compiled(g, &options);
    float *of_rows = exe_input_named(exe, "scales");
    for (int k = 0; k < ROWS; k++)
        of_rows[k] = 1e-3f * (float)(1 + k);
    exe_run(exe);
    assert_memory_equal(exe_output(exe, 0), exe_output(exe, 1), ROWS);
    exe_graph_free(exe, g);
}

TEST(bf16_is_rounded_once)
{
    struct fill fill = {.kind = FILL_NORMAL, .a = 0, .b = 1};
    for (enum isa isa = ISA_SCALAR; isa <= isa_detect(); isa++) {
        struct graph *g = graph_new("bf16");
        int a = graph_input(g, "a", DTYPE_BF16, shape_of(M, K), fill);
        int b = graph_input(g, "b", DTYPE_BF16, shape_of(N, K), fill);
        graph_output(g, graph_node(g, "Gemm", "y", INPUTS(a, b), ATTRS(attr_int("transB", 1))));
        double error = error_of(g, isa, 2, "matmul_bf16");
        assert_true(error > 0 && error <= 0x1p-8); /* half a step of the largest binade */
        graph_free(g);
    }
}

/* ---- f8 ---- */

struct f8_product {
    const char *op;
    int to;                    /* of the casts; 0: DequantizeLinear by 0.5 and 0.25 */
    bool turned, bias, kept_a; /* kept_a: the wide form of a is an output, too */
    int zero_point, trans_a;
};

static int factor(struct graph *g, const struct f8_product *p, int v, float scale)
{
    const uint8_t zero = f8_from_float((float)p->zero_point);
    if (p->to)
        return graph_node(g, "Cast", NULL, INPUTS(v), ATTRS(attr_int("to", p->to)));
    int s = graph_const(g, NULL, DTYPE_F32, shape_scalar(), &scale);
    int z = graph_const(g, NULL, DTYPE_F8E4M3, shape_scalar(), &zero);
    return graph_node(g, "DequantizeLinear", NULL, INPUTS(v, s, z), NO_ATTRS);
}

static struct graph *f8_graph(const struct f8_product *p)
{
    struct graph *g = graph_new("f8");
    struct fill noise = {.kind = FILL_NORMAL, .a = 0, .b = 1};
    bool gemm = strcmp(p->op, "Gemm") == 0;
    int64_t m = 48, n = 32, k = 64;
    int a = graph_input(g, "a", DTYPE_F8E4M3, p->trans_a ? shape_of(k, m) : shape_of(m, k), noise);
    int b = graph_param(g, "b", DTYPE_F8E4M3, p->turned ? shape_of(n, k) : shape_of(k, n), noise);
    int wide_a = factor(g, p, a, 0.5f), wide_b = factor(g, p, b, 0.25f);
    int c = p->bias ? graph_param(g, "c", g->values[wide_a].dtype, shape_of(n), noise) : NONE;
    int y = gemm ? graph_node(g, "Gemm", "y", INPUTS(wide_a, wide_b, c),
                              ATTRS(attr_int("transB", p->turned), attr_int("transA", p->trans_a),
                                    attr_float("alpha", 2)))
                 : graph_node(g, "MatMul", "y", INPUTS(wide_a, wide_b), NO_ATTRS);
    graph_output(g, y);
    if (p->kept_a)
        graph_output(g, wide_a);
    return g;
}

/* How many wide forms and products of codes the pass leaves; results are the same. */
static void expect_f8(const struct f8_product *p, enum precision precision, int wide, int products)
{
    struct exe_options options = {.threads = 1, .precision = precision};
    struct graph *g = f8_graph(p), *as_it_was = f8_graph(p);
    struct ref_tensor want[2], got[2];
    MUST(passes_run, g, &options, NULL, NULL);
    assert_int_equal(count_ops(g, p->to ? "Cast" : "DequantizeLinear"), wide);
    assert_int_equal(count_ops(g, "MatMulF8"), products);
    assert_int_equal(count_ops(g, "Add"), 0); /* Gemm's C is in the epilogue */
    MUST(reference_run, as_it_was, NULL, want, NULL);
    MUST(reference_run, g, NULL, got, NULL);
    assert_int_equal(got[0].dtype, want[0].dtype);
    assert_true(ref_rel_error(&got[0], &want[0]) < 1e-12);
    for (int k = 0; k < g->output_count; k++) {
        ref_release(&want[k]);
        ref_release(&got[k]);
    }
    graph_free(as_it_was);
    graph_free(g);
}

TEST(f8_factors_are_read_as_they_are)
{
    expect_f8(&(struct f8_product){"MatMul", .to = 16}, PRECISION_F8, 0, 1);
    expect_f8(&(struct f8_product){"MatMul", .to = 10}, PRECISION_F8, 0, 1);
    expect_f8(&(struct f8_product){.op = "MatMul"}, PRECISION_F8, 0, 1);
    expect_f8(&(struct f8_product){"MatMul", .kept_a = true}, PRECISION_F8, 1, 1);
    expect_f8(&(struct f8_product){"Gemm", .to = 16, .turned = true}, PRECISION_F8, 0, 1);
    expect_f8(&(struct f8_product){"Gemm", .turned = true, .bias = true}, PRECISION_F8, 0, 1);
    expect_f8(&(struct f8_product){"Gemm", .to = 1, .bias = true}, PRECISION_F8, 0, 1);
    /* Not for others: of b the wide form is folded. */
    expect_f8(&(struct f8_product){"MatMul", .to = 16}, PRECISION_F32, 1, 0);
    expect_f8(&(struct f8_product){"Gemm", .to = 16, .trans_a = 1}, PRECISION_F8, 1, 0);
    expect_f8(&(struct f8_product){"MatMul", .zero_point = 2}, PRECISION_F8, 1, 0);
}

TEST(a_precision_has_its_own_peak)
{
    struct pool *pool;
    MUST(pool_new, 1, &pool);
    assert_true(peak_rate(pool, ISA_SCALAR, PRECISION_F32, 3) > 0);
    assert_string_equal(peak_name(ISA_SCALAR, PRECISION_F32), "f32 multiply-adds");
    assert_null(peak_name(ISA_AVX2, PRECISION_F8));
    assert_true(isnan(peak_rate(pool, ISA_AVX2, PRECISION_F8, 3)));
    /* Where no instruction multiplies bf16, floats do. */
    assert_non_null(strstr(peak_name(ISA_SCALAR, PRECISION_BF16), "f32 multiply-adds"));
    assert_true(peak_rate(pool, ISA_SCALAR, PRECISION_BF16, 3) > 0);
    bool dots = strstr(peak_name(isa_detect(), PRECISION_BF16), "dot products") != NULL;
    assert_true(dots == (isa_detect() == ISA_AVX512 && cpu_has_bf16()));
    pool_free(pool);
}
