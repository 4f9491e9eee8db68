/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of the cuBLASLt plug-in without a GPU: over functions that multiply on the host by
 * what the descriptors say (tests/gpu/fake_cublaslt.h), on every case of their operators with every
 * epilogue; and when any call fails. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/kernels/cublaslt/lib/gemm_roof.h"
#include "engine/reference/reference.h"
#include "tests/gpu/bench_cublaslt.h"
#include "tests/lib/posts.h"
#include "tests/lib/unit.h"

enum { CALLS_MAX = 500 };

/* ---- right numbers ---- */

struct tally {
    int right, refused;
};

static void check_case(const char *op, const char *name, int posts, enum dtype floats,
                       struct tally *tally)
{
    static struct bench b;
    struct error err = {0};
    double part;
    if (!bench_open_in(&b, op, name, posts, floats)) {
        subject_close(&b.subject);
        return;
    }
    enum status status = run_through(&b, &err);
    if (status == STATUS_OK && dtype_size(b.out_desc[0].dtype) == 2)
        assert_int_equal(fake_products.sums, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
    if (status == STATUS_OK)
        status = subject_check(&b.subject, 0, b.out[0], 0, &part, &err);
    if (status == STATUS_UNSUPPORTED)
        tally->refused++;
    else if (status == STATUS_OK)
        tally->right++;
    else
        fail_msg("%s/%s+%s: %s", op, name, posts == NONE ? "" : posts_name(posts), err.message);
    if (status == STATUS_UNSUPPORTED && posts == NONE)
        print_message("refused %s/%s: %s\n", op, name, err.message);
    bench_close(&b);
}

static void check_op(const char *op, enum dtype floats, struct tally *plain, struct tally *fused)
{
    const struct op *found = any_op(op);
    for (int k = 0; k < found->case_count; k++)
        for (int posts = NONE; posts < posts_count(); posts++)
            check_case(op, found->cases[k].name, posts, floats, posts == NONE ? plain : fused);
}

TEST(test_cases)
{
    const enum dtype types[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F16};
    for (int t = 0; t < ARRAY_COUNT(types); t++) {
        struct tally plain = {0}, fused = {0};
        check_op("MatMul", types[t], &plain, &fused);
        check_op("Gemm", types[t], &plain, &fused);
        print_message("%s: plain: %d right, %d refused; with epilogues: %d right, %d refused\n",
                      dtype_name(types[t]), plain.right, plain.refused, fused.right, fused.refused);
        assert_true(plain.right > 4 * plain.refused);
        assert_true(fused.right > 20);
    }
}

TEST(test_bytes)
{
    struct tally plain = {0}, fused = {0};
    check_op("MatMulF8", DTYPE_F32, &plain, &fused);
    print_message("f8: plain: %d right, %d refused; with epilogues: %d right, %d refused\n",
                  plain.right, plain.refused, fused.right, fused.refused);
    assert_int_equal(plain.right, 10);
    assert_int_equal(plain.refused, 2); /* 35 columns; vectors */
    assert_true(fused.right > 20);
    plain = fused = (struct tally){0};
    check_op("MatMulInteger", DTYPE_F32, &plain, &fused);
    print_message("i8: plain: %d right, %d refused\n", plain.right, plain.refused);
    assert_true(plain.right >= 3);
    assert_int_equal(fused.right, 0);
}

/* ---- what the library is asked for ---- */

TEST(test_requests)
{
    static struct bench b;
    char text[128];
    bench_open(&b, "MatMul", first_case("MatMul"), NONE);
    const struct kernel *kernel = b.kernel;
    assert_int_equal(hooks_variants(kernel, &b.query), 2); /* one of three is refused */
    hooks_describe(kernel, &b.query, 1, text, sizeof(text));
    assert_string_equal(text,
                        "algorithm 2 tile 1 stages 6 split 2 sums 4 cluster 8 inner 7 custom 5");
    hooks_describe(kernel, &b.query, 1, text, 48);
    assert_string_equal(text, "algorithm 2 tile 1 stages 6 split 2 sums 4");
    assert_int_equal(hooks_workspace(kernel, &b.query, 0), FAKE_LT_WORKSPACE);
    assert_int_equal(fake_products.workspace_limit, 32 << 20);
    MUST(run_through, &b);
    assert_int_equal(fake_products.compute, CUBLAS_COMPUTE_32F);
    assert_int_equal(fake_products.algorithm, 2);
    assert_ptr_equal(fake_products.stream, b.workspace);
    b.query.tf32 = true;
    b.device.properties.major = 8;
    MUST(run_through, &b);
    assert_int_equal(fake_products.compute, CUBLAS_COMPUTE_32F_FAST_TF32);
    assert_int_equal(fake_products.workspace_limit, 32 << 20);
    b.device.properties.major = 10;
    MUST(run_through, &b);
    assert_int_equal(fake_products.workspace_limit, 64 << 20);
    bench_close(&b);
}

static void expect_refusal(struct bench *b, const char *words)
{
    struct error why = {0};
    assert_int_equal(kernel_accepts(b->kernel, &b->query, &why), STATUS_UNSUPPORTED);
    if (!strstr(why.message, words))
        fail_msg("\"%s\" is not \"%s\"", why.message, words);
}

TEST(test_requests_of_bytes)
{
    static struct bench b;
    size_t bytes;
    bench_open(&b, "MatMulF8", "constant", NONE);
    assert_int_equal(b.kernel->packs, 1 << 1);
    struct kernel_state *made = hooks_prepare(b.kernel, &b.query, 0, &bytes);
    assert_int_equal(bytes, 80 * 32);
    b.in[1] = (free((void *)(uintptr_t)b.in[1]), NULL); /* launch must not need it */
    b.kernel->launch(made, &b.args);
    kernel_release(b.kernel, made);
    assert_int_equal(b.err.code, STATUS_OK);
    assert_int_equal(fake_products.compute, CUBLAS_COMPUTE_32F);
    b.device.properties.major = 8;
    expect_refusal(&b, "need sm_89 or newer (L40, H100); this is sm_80");
    b.device.properties.minor = 9;
    assert_int_equal(kernel_accepts(b.kernel, &b.query, NULL), STATUS_OK);
    b.fixed[1] = NULL;
    expect_refusal(&b, "both factors must lie along the length of the sums");
    bench_close(&b);
    bench_open(&b, "MatMulInteger", "scalars", NONE);
    expect_refusal(&b, "signed bytes");
    bench_close(&b);
    bench_open(&b, "MatMulInteger", "long_sums", NONE);
    expect_refusal(&b, "a zero point that is not 0");
    bench_close(&b);
    bench_open(&b, "MatMulF8", "odd_sizes", NONE);
    b.fixed[1] = b.in[1];
    expect_refusal(&b, "21 columns of sums of 35 bytes: both must be multiples of 16");
    bench_close(&b);
}

static int posts_index(const char *name)
{
    for (int k = 0; k < posts_count(); k++)
        if (strcmp(posts_name(k), name) == 0)
            return k;
    fail_msg("there is no epilogue %s", name);
    return NONE;
}

/* Added in f32, though the library's bias has 8 bits there; launch does not read it. */
TEST(test_row_of_f8)
{
    static struct bench plain, b;
    struct error err = {0};
    bench_open(&plain, "MatMulF8", "f32_alpha", NONE);
    bench_open(&b, "MatMulF8", "f32_alpha", posts_index("add_relu"));
    MUST(run_through, &plain);
    int input = b.query.in_count - 1, columns = (int)plain.out_desc[0].shape.dim[1];
    struct shape shape = shape_of(columns);
    float row[64];
    memcpy(row, b.in[input], (size_t)columns * sizeof(*row));
    b.in_desc[input] = desc_dense(DTYPE_F32, &shape, LAYOUT_PLAIN);
    expect_refusal(&b, "only if it is constant");
    b.fixed[input] = row;
    b.in[input] = (free((void *)(uintptr_t)b.in[input]), NULL);
    cublaslt_handles_release();                   /* before the count of what lives begins anew */
    for (int n = 0; n == 0 || fake.failed; n++) { /* n: the call that fails */
        fake_reset(n);
        enum status status = run_through(&b, &err);
        cublaslt_handles_release();
        assert_int_equal(fake.live, 0);
        const float *y = b.out[0], *product = plain.out[0];
        for (int64_t k = 0; n == 0 && k < shape_count(&plain.out_desc[0].shape); k++) {
            float sum = product[k] + row[k % columns];
            assert_true(status == STATUS_OK && fabsf(y[k] - (sum < 0 ? 0 : sum)) < 1e-5f);
        }
        if (n == 0)
            fake.failed = "nothing yet";
    }
    bench_close(&plain);
    bench_close(&b);
}

/* An activation that the library lacks is the device's second launch, never another function that
 * the library has; where the device has none either, the node is refused. */
TEST(test_activations)
{
    struct device_kind lacking = fake_device_kind;
    int own = 0;
    lacking.activate = NULL;
    for (int posts = 0; posts < posts_count(); posts++) {
        static struct bench b;
        struct error err = {0};
        bool there = bench_open(&b, "MatMul", first_case("MatMul"), posts);
        const struct node *node = there ? b.query.node : NULL;
        const struct post *last = node ? &node->posts[node->post_count - 1] : NULL;
        int before = fake.activations;
        if (last && last->kind == POST_ACT && run_through(&b, &err) == STATUS_OK) {
            bool theirs = last->act == FN_RELU || last->act == FN_GELU_TANH;
            assert_int_equal(fake.activations - before, theirs ? 0 : 1);
            assert_true(theirs == ((int)fake_products.epilogue > 1 &&
                                   fake_products.epilogue != CUBLASLT_EPILOGUE_BIAS));
            own += !theirs;
            b.device.kind = &lacking;
            if (!theirs)
                expect_refusal(&b, "its only activations are relu and gelu by tanh");
        }
        bench_close(&b);
    }
    assert_int_equal(own, 2); /* relu6, sigmoid */
}

TEST(test_gelu_by_erf)
{
    static struct bench plain, b;
    bench_open(&plain, "MatMul", first_case("MatMul"), NONE);
    bench_open(&b, "MatMul", first_case("MatMul"), posts_index("gelu_tanh"));
    b.subject.g->nodes[0].posts[0].act = FN_GELU_ERF;
    MUST(run_through, &plain);
    MUST(run_through, &b);
    const float *x = plain.out[0], *y = b.out[0];
    for (int64_t k = 0; k < shape_count(&b.out_desc[0].shape); k++)
        assert_true(fabs((double)y[k] - function_value(FN_GELU_ERF, 0, 0, (double)x[k], 0)) < 1e-6);
    bench_close(&plain);
    bench_close(&b);
}

/* ---- any call fails ---- */

static void fail_everywhere(const char *op, const char *name, int posts, int *calls)
{
    static struct bench b;
    assert_true(bench_open(&b, op, name, posts));
    cublaslt_handles_release();
    for (int n = 1; n < CALLS_MAX; n++) {
        struct error err = {0};
        fake_reset(n);
        enum status status = run_through(&b, &err);
        cublaslt_handles_release();
        if (fake.live)
            fail_msg("%d things are left when call %d, %s, fails", fake.live, n, fake.failed);
        if (!fake.failed) {
            *calls += n - 1;
            bench_close(&b);
            return;
        }
        if (status == STATUS_OK) /* in describe and workspace, which only tell */
            continue;
        bool named = strstr(err.message, "INTERNAL_ERROR") || strstr(err.message, "scripted");
        if (!strstr(err.message, fake.failed) || !named)
            fail_msg("call %d, %s, fails: \"%s\"", n, fake.failed, err.message);
    }
    fail_msg("more than %d calls", CALLS_MAX);
}

static int fail_op(const char *op)
{
    int calls = 0;
    for (int k = 0; k < any_op(op)->case_count; k++) {
        static struct bench b;
        const char *name = any_op(op)->cases[k].name;
        bench_open(&b, op, name, NONE);
        bool accepted = kernel_accepts(b.kernel, &b.query, NULL) == STATUS_OK;
        bench_close(&b);
        if (accepted)
            fail_everywhere(op, name, NONE, &calls);
    }
    return calls;
}

/* What only tells, or gives back, cannot fail for the caller. */
static void check_all_failed(void)
{
#define X(field, symbol) #symbol,
    static const char *const names[] = {CUBLASLT_CALLS(X)};
#undef X
    for (int k = 0; k < ARRAY_COUNT(names); k++) {
        bool harmless = strstr(names[k], "Destroy") || strstr(names[k], "GetVersion") ||
                        strstr(names[k], "GetStatusName");
        if (!harmless && !fake_has_failed(names[k]))
            fail_msg("%s has failed in no test", names[k]);
    }
}

TEST(test_failures)
{
    int words = fail_op("MatMul"), bytes = fail_op("MatMulF8") + fail_op("MatMulInteger");
    int heads = fail_op("Attention");
    fail_everywhere("MatMul", first_case("MatMul"), posts_index("sigmoid"), &words);
    print_message("%d, %d and %d calls failed once each\n", words, bytes, heads);
    assert_true(words > 500 && bytes > 300 && heads > 300);
    check_all_failed();
}

/* ---- the roofs of large products ---- */

static enum status roof_life(const struct device_roof *roof, struct roof_work *work,
                             struct error *err)
{
    struct device device;
    struct roof_state *state = NULL;
    fake_device(&device);
    device.properties.units = 1;
    TRY(roof->prepare(roof, &device, work, &state, err));
    enum status status = roof->run(state, 2, NULL, err);
    roof->release(state);
    return status;
}

static void check_roof(const struct device_roof *roof)
{
    struct roof_work work = {.amount = 0};
    fake_reset(0);
    int before = fake_products.count;
    MUST(roof_life, roof, &work);
    assert_int_equal(fake_products.count - before, 2 * (1 + 3) + 2); /* two algorithms compared */
    assert_int_equal(fake_products.algorithm, 2);                    /* the faster one */
    assert_true(!strstr(roof->isa, "short sums") == (strcmp(roof->precision, "f8") != 0));
    cublasComputeType_t compute = strcmp(roof->precision, "tf32") == 0
                                      ? CUBLAS_COMPUTE_32F_FAST_TF32
                                  : strcmp(roof->precision, "i8") == 0 ? CUBLAS_COMPUTE_32I
                                                                       : CUBLAS_COMPUTE_32F;
    assert_int_equal(fake_products.compute, compute);
    assert_true(work.amount == 2.0 * 64 * 64 * 64);
    cublaslt_handles_release();
    int n = 1;
    for (; n < CALLS_MAX; n++) {
        struct error why = {0};
        fake_reset(n);
        enum status status = roof_life(roof, &work, &why);
        cublaslt_handles_release();
        if (fake.live)
            fail_msg("%d things are left when call %d, %s, fails", fake.live, n, fake.failed);
        if (!fake.failed)
            break;
        if (status == STATUS_OK || !strstr(why.message, fake.failed))
            fail_msg("call %d, %s, fails: \"%s\"", n, fake.failed, why.message);
    }
    assert_in_range(n, 15, CALLS_MAX - 1);
}

TEST(test_roofs)
{
    assert_int_equal(cublaslt_gemm_roofs.count, 5);
    for (int k = 0; k < cublaslt_gemm_roofs.count; k++)
        check_roof(&cublaslt_gemm_roofs.roofs[k]);
}

const struct unit_fixture unit_fixture = {.before_each = bench_set_up,
                                          .after_each = bench_tear_down};
