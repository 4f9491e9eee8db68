/* SPDX-License-Identifier: Apache-2.0
 *
 * How the cuBLASLt plug-in tells the library what lies where: batches, columns, alignment, weights
 * that are stored otherwise. */
#include <string.h>

#include "engine/kernels/cublaslt/lib/product.h"
#include "tests/gpu/bench_cublaslt.h"
#include "tests/lib/unit.h"

/* The longer of two batch dimensions that no one stride walks is walked by a call, and the promise
 * of alignment is as good as the other one allows: the fake judges addresses by it. */
TEST(test_batches)
{
    enum { B = 6, H = 2, M = 3, K = 8, N = 4 };
    static struct bench b;
    struct product p;
    struct shape left = shape_of(B, H, M, K), right = shape_of(H, K, N);
    struct shape result = shape_of(B, H, M, N);
    bench_open(&b, "MatMul", first_case("MatMul"), NONE);
    bench_reshape(&b, DTYPE_F32, &left, &right, &result);
    MUST(product_from, &b.query, &p);
    assert_int_equal(p.batch, B);
    assert_int_equal(p.calls, H);
    assert_int_equal(p.alignment[LEFT], K * N * sizeof(float));
    assert_int_equal(p.alignment[RIGHT], 32); /* 96 bytes apart */
    assert_int_equal(p.alignment[RESULT], 16);
    int before = fake_products.count;
    MUST(run_through, &b);
    assert_int_equal(fake_products.count - before, H);
    const float *x = b.in[0], *w = b.in[1], *y = b.out[0];
    for (int64_t i = 0; i < shape_count(&result); i++) {
        int64_t row = i / N, head = i / (M * N) % H;
        float sum = 0;
        for (int k = 0; k < K; k++)
            sum += x[row * K + k] * w[(head * K + k) * N + i % N];
        assert_true(y[i] == sum);
    }
    bench_close(&b);
}

/* A dense column is one line of K numbers, not K lines of one. */
TEST(test_column)
{
    static struct bench b;
    struct product p;
    struct shape left = shape_of(3, 16), right = shape_of(16, 1), result = shape_of(3, 1);
    bench_open(&b, "MatMul", first_case("MatMul"), NONE);
    bench_reshape(&b, DTYPE_F32, &left, &right, &result);
    MUST(product_from, &b.query, &p);
    assert_true(p.operand[LEFT].transposed);
    assert_int_equal(p.operand[LEFT].rows, 16);
    assert_int_equal(p.operand[LEFT].ld, 16);
    assert_false(p.operand[RESULT].transposed);
    MUST(run_through, &b);
    const float *x = b.in[0], *w = b.in[1], *y = b.out[0];
    for (int m = 0; m < 3; m++) {
        float sum = 0;
        for (int k = 0; k < 16; k++)
            sum += x[m * 16 + k] * w[k];
        assert_true(y[m] == sum);
    }
    bench_close(&b);
}

/* Weights of 16 bits whose rows have an odd length are stored by columns, to the same result. */
TEST(test_turned_words)
{
    static struct bench b;
    struct product p;
    size_t bytes;
    uint16_t expected[2 * 5];
    struct shape left = shape_of(2, 16), right = shape_of(16, 5), result = shape_of(2, 5);
    bench_open(&b, "MatMul", first_case("MatMul"), NONE);
    bench_reshape(&b, DTYPE_BF16, &left, &right, &result);
    MUST(product_from, &b.query, &p);
    assert_false(p.turn);
    MUST(run_through, &b);
    memcpy(expected, b.out[0], sizeof(expected));
    memset(b.out[0], 0, sizeof(expected));
    b.fixed[1] = b.in[1];
    MUST(product_from, &b.query, &p);
    assert_true(p.turn);
    assert_int_equal(p.operand[LEFT].ld, 16);
    struct kernel_state *made = hooks_prepare(b.kernel, &b.query, 0, &bytes);
    assert_int_equal(bytes, sizeof(uint16_t) * 16 * 5);
    b.kernel->launch(made, &b.args);
    kernel_release(b.kernel, made);
    assert_int_equal(b.err.code, STATUS_OK);
    assert_memory_equal(b.out[0], expected, sizeof(expected));
    bench_close(&b);
}

const struct unit_fixture unit_fixture = {.before_each = bench_set_up,
                                          .after_each = bench_tear_down};
