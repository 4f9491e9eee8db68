/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of the cuDNN plug-in without a GPU: on faked functions (what they are given, and what
 * happens when any of them fails). Engines: test_cudnn_engines.c. What cuDNN itself supports is
 * asked by tests/gpu/support.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/kernels/cudnn/lib/engines.h"
#include "tests/gpu/bench_cudnn.h"
#include "tests/lib/unit.h"

enum { CALLS_MAX = 4000 };

extern const struct kernel kernel_cudnn_conv_depthwise, kernel_cudnn_conv_padded;

/* ---- what the library is given ---- */

TEST(test_kernels)
{
    for (int k = 0; k < subject_count; k++) {
        const struct subject *s = &subjects[k];
        struct bench b;
        struct error err = {0};
        char text[ENGINE_TEXT] = "";
        print_message("%s\n", s->name);
        bench_open(&b, s);
        fake_launch = (struct fake_launch){.count = 0};
        if (run_through(&b, &err) != STATUS_OK)
            fail_msg("%s: %s", s->name, err.message);
        assert_int_equal(fake_launch.count, 2 * s->plans);
        assert_ptr_equal(fake_launch.launched_on, b.memory[4]);
        assert_null(fake_launch.stream); /* which may end now; the handle stays */
        assert_int_equal(fake_launch.packs,
                         s->tensors ? s->plans : 0); /* the same addresses: one list */
        assert_int_equal(fake_launch.tensor_count, s->tensors);
        if (b.kernel->variants)
            assert_int_equal(hooks_variants(b.kernel, &b.query), s->variants);
        if (s->text) {
            hooks_describe(b.kernel, &b.query, 0, text, sizeof(text));
            assert_string_equal(text, s->text);
        }
        bench_close(&b);
        forget_device();
        assert_int_equal(fake.live, 0);
    }
}

/* Where images have the channels last, the weights arrive as [O, kh, kw, I]; addresses are those of
 * the tensors; other addresses are used at once. */
TEST(test_conv_memory)
{
    struct bench b;
    size_t bytes;
    bench_open(&b, subject("conv"));
    assert_int_equal(hooks_workspace(b.kernel, &b.query, 0), FAKE_WORKSPACE);
    struct kernel_state *made = hooks_prepare(b.kernel, &b.query, 0, &bytes);
    assert_int_equal(bytes, 8 * 16 * 9 * sizeof(float));
    b.kernel->launch(made, &b.args);
    assert_int_equal(b.err.code, STATUS_OK);
    assert_ptr_equal(fake_launch.memory[0], b.in[0]);
    const float *packed = fake_launch.memory[1], *plain = b.query.fixed[1];
    for (int o = 0; o < 8; o++)
        for (int i = 0; i < 16; i++)
            for (int t = 0; t < 9; t++)
                assert_true(packed[(o * 9 + t) * 16 + i] == plain[(o * 16 + i) * 9 + t]);
    assert_ptr_equal(fake_launch.memory[2], b.in[3]); /* the residual goes before the bias */
    assert_ptr_equal(fake_launch.memory[3], b.in[2]);
    assert_ptr_equal(fake_launch.memory[4], b.out[0]);
    assert_ptr_equal(fake_launch.workspace, b.memory[5]);
    assert_int_equal(fake_launch.packs, 1);
    b.in[0] = b.memory[6];
    b.kernel->launch(made, &b.args);
    assert_ptr_equal(fake_launch.memory[0], b.memory[6]);
    assert_int_equal(fake_launch.packs, 2);
    kernel_release(b.kernel, made);
    bench_close(&b);
}

/* The subject conv with its images in memory as said. */
static void place_images(struct bench *b, struct desc *in, struct desc *out, enum layout x,
                         enum layout y)
{
    memcpy(in, b->query.in, (size_t)b->query.in_count * sizeof(*in));
    in[0] = desc_dense(in[0].dtype, &in[0].shape, x);
    in[3] = desc_dense(in[3].dtype, &in[3].shape, y);
    out[0] = desc_dense(b->query.out[0].dtype, &b->query.out[0].shape, y);
    b->query.in = in;
    b->query.out = out;
}

/* Of plain images the weights arrive as they are. */
TEST(test_conv_weights_plain)
{
    struct bench b;
    struct desc in[4], out[1];
    size_t bytes;
    bench_open(&b, subject("conv"));
    assert_int_equal(b.query.in_count, ARRAY_COUNT(in));
    place_images(&b, in, out, LAYOUT_PLAIN, LAYOUT_PLAIN);
    struct kernel_state *made = hooks_prepare(b.kernel, &b.query, 0, &bytes);
    b.kernel->launch(made, &b.args);
    assert_memory_equal(fake_launch.memory[1], b.query.fixed[1], bytes);
    kernel_release(b.kernel, made);
    bench_close(&b);
}

/* On an H200 cuDNN's engines for tensor cores read an image of one order as if it had the other,
 * where both occur in one convolution. */
TEST(test_conv_of_mixed_orders)
{
    struct bench b;
    struct desc in[4], out[1];
    struct error err = {0};
    bench_open(&b, subject("conv"));
    place_images(&b, in, out, LAYOUT_PLAIN, LAYOUT_NHWC);
    assert_int_equal(kernel_accepts(b.kernel, &b.query, &err), STATUS_OK);
    b.query.tf32 = true;
    assert_int_equal(kernel_accepts(b.kernel, &b.query, &err), STATUS_UNSUPPORTED);
    assert_string_equal(err.message, "the image and the result lie in different orders");
    const void *none[4] = {NULL};
    b.query.fixed = none;
    place_images(&b, in, out, LAYOUT_NHWC, LAYOUT_NHWC);
    assert_int_equal(kernel_accepts(b.kernel, &b.query, &err), STATUS_UNSUPPORTED);
    assert_string_equal(err.message, "the image and the weights lie in different orders");
    bench_close(&b);
}

/* What is convolved goes after the plans' own scratch, and from there through the epilogue. */
TEST(test_depthwise)
{
    struct bench b;
    struct error err = {0};
    size_t bytes, convolved = 2 * 8 * 4 * 3 * sizeof(float);
    bench_open(&b, subject("depthwise"));
    assert_int_equal(hooks_workspace(b.kernel, &b.query, 0), FAKE_WORKSPACE + convolved);
    struct kernel_state *made = hooks_prepare(b.kernel, &b.query, 0, &bytes);
    assert_int_equal(bytes, 8 * 9 * sizeof(float));
    b.kernel->launch(made, &b.args);
    assert_int_equal(b.err.code, STATUS_OK);
    assert_ptr_equal(fake_launch.memory[0], b.memory[5] + FAKE_WORKSPACE);
    assert_ptr_equal(fake_launch.memory[2], b.out[0]); /* after the bias */
    kernel_release(b.kernel, made);
    bench_close(&b);
    bench_open(&b, subject("conv"));
    b.kernel = &kernel_cudnn_conv_depthwise;
    assert_int_equal(kernel_accepts(b.kernel, &b.query, &err), STATUS_UNSUPPORTED);
    assert_string_equal(err.message, "not depthwise");
    bench_close(&b);
}

/* Image and weights get a fourth channel of zeros, and are otherwise as they were. */
TEST(test_padded_channels)
{
    enum { N = 2, C = 3, H = 6, W = 5, K = 8, TAPS = 9 };
    struct bench b;
    struct error err = {0};
    size_t bytes, image = (size_t)N * H * W * (C + 1) * sizeof(float);
    bench_open(&b, subject("few channels"));
    assert_int_equal(hooks_workspace(b.kernel, &b.query, 0), FAKE_WORKSPACE + image);
    struct kernel_state *made = hooks_prepare(b.kernel, &b.query, 0, &bytes);
    assert_int_equal(bytes, K * TAPS * (C + 1) * sizeof(float));
    float *x = (float *)(void *)b.memory[0],
          *copy = (float *)(void *)(b.memory[5] + FAKE_WORKSPACE);
    memset(copy, 0xff, image); /* what others left there */
    for (int k = 0; k < N * C * H * W; k++)
        x[k] = (float)(k + 1);
    b.kernel->launch(made, &b.args);
    assert_int_equal(b.err.code, STATUS_OK);
    assert_ptr_equal(fake_launch.memory[0], copy);
    assert_ptr_equal(fake_launch.memory[3], b.out[0]);
    const int64_t *stride = b.query.in[0].stride;
    for (int n = 0; n < N; n++)
        for (int c = 0; c < C + 1; c++)
            for (int p = 0; p < H * W; p++) {
                int64_t at = n * stride[0] + c * stride[1] + p / W * stride[2] + p % W * stride[3];
                assert_true(copy[(n * H * W + p) * (C + 1) + c] == (c < C ? x[at] : 0));
            }
    const float *packed = fake_launch.memory[1], *plain = b.query.fixed[1];
    for (int o = 0; o < K; o++)
        for (int c = 0; c < C + 1; c++)
            for (int t = 0; t < TAPS; t++)
                assert_true(packed[(o * TAPS + t) * (C + 1) + c] ==
                            (c < C ? plain[(o * C + c) * TAPS + t] : 0));
    kernel_release(b.kernel, made);
    b.query.tf32 = false;
    assert_int_equal(kernel_accepts(b.kernel, &b.query, &err), STATUS_UNSUPPORTED);
    assert_string_equal(err.message, "exact f32 is not for tensor cores");
    bench_close(&b);
    bench_open(&b, subject("conv"));
    b.kernel = &kernel_cudnn_conv_padded;
    b.query.tf32 = true;
    assert_int_equal(kernel_accepts(b.kernel, &b.query, &err), STATUS_UNSUPPORTED);
    assert_string_equal(err.message, "no image of fewer than 4 channels");
    bench_close(&b);
}

/* B [8, 16] arrives as [16, 8], and the residual before the row. */
TEST(test_matmul_as_conv)
{
    struct bench b;
    bench_open(&b, subject("matmul as a convolution"));
    struct kernel_state *made = hooks_prepare(b.kernel, &b.query, 0, NULL);
    b.kernel->launch(made, &b.args);
    const float *packed = fake_launch.memory[1], *plain = b.query.fixed[1];
    for (int n = 0; n < 16; n++)
        for (int k = 0; k < 8; k++)
            assert_true(packed[n * 8 + k] == plain[k * 16 + n]);
    assert_ptr_equal(fake_launch.memory[2], b.in[3]);
    assert_ptr_equal(fake_launch.memory[4], b.in[2]); /* after the result, which ends the chain */
    kernel_release(b.kernel, made);
    bench_close(&b);
}

TEST(test_batch_norm_factors)
{
    struct bench b;
    bench_open(&b, subject("batch_norm"));
    struct kernel_state *made = hooks_prepare(b.kernel, &b.query, 0, NULL);
    b.kernel->launch(made, &b.args);
    const float *factor = fake_launch.memory[1], *shift = fake_launch.memory[2];
    const float *scale = b.query.fixed[1], *bias = b.query.fixed[2];
    const float *mean = b.query.fixed[3], *variance = b.query.fixed[4];
    for (int c = 0; c < 3; c++) {
        float y = (2.0f - mean[c]) * factor[c] + mean[c] * factor[c] + shift[c];
        double root = (double)factor[c] / (double)scale[c];
        assert_true(root * root * ((double)variance[c] + 1e-5) - 1 < 1e-5);
        assert_true((double)(y - 2.0f * factor[c] - bias[c] + mean[c] * factor[c]) < 1e-5);
    }
    kernel_release(b.kernel, made);
    bench_close(&b);
}

/* Gates in cuDNN's order i, f, c, o one after another; the second direction after the first; two
 * directions of a batch go through the workspace. */
TEST(test_lstm_weights)
{
    static const int order[] = {0, 2, 3, 1};
    enum { H = 4, I = 5, GATES = 4 };
    struct bench b;
    bench_open(&b, subject("lstm"));
    assert_int_equal(hooks_workspace(b.kernel, &b.query, 0), 1024 + 3 * 2 * 2 * H * sizeof(float));
    struct kernel_state *made = hooks_prepare(b.kernel, &b.query, 0, NULL);
    b.kernel->launch(made, &b.args);
    assert_int_equal(b.err.code, STATUS_OK);
    assert_ptr_equal(fake_launch.memory[0], fake_launch.memory[1]);
    const float *packed = fake_launch.memory[2], *w = b.query.fixed[1], *r = b.query.fixed[2];
    const float *bias = b.query.fixed[3];
    size_t layer = (size_t)GATES * H * (I + H);
    for (size_t d = 0; d < 2; d++)
        for (size_t g = 0; g < GATES; g++) {
            size_t from = d * GATES + (size_t)order[g];
            const float *matrix = packed + d * layer;
            assert_memory_equal(matrix + g * H * I, w + from * H * I, H * I * sizeof(float));
            assert_memory_equal(matrix + GATES * H * I + g * H * H, r + from * H * H,
                                H * H * sizeof(float));
            const float *biases = packed + 2 * layer + d * 2 * GATES * H;
            assert_memory_equal(biases + g * H, bias + (d * 2 * GATES + (size_t)order[g]) * H,
                                H * sizeof(float));
            assert_memory_equal(biases + (GATES + g) * H,
                                bias + (d * 2 * GATES + GATES + (size_t)order[g]) * H,
                                H * sizeof(float));
        }
    kernel_release(b.kernel, made);
    bench_close(&b);
}

/* ---- any call fails ---- */

/* A failure in variants, describe or workspace, which have no way to tell, leaves a kernel with
 * less to choose from; so does that of one answer of the heuristics. */
static void fail_everywhere(const struct subject *s, int *calls, int *survived)
{
    struct bench b;
    bench_open(&b, s);
    for (int n = 1; n < CALLS_MAX; n++) {
        struct error err = {0};
        fake_reset(n);
        enum status status = run_through(&b, &err);
        forget_device();
        if (fake.live)
            fail_msg("%s: %d things are left when call %d, %s, fails", s->name, fake.live, n,
                     fake.failed);
        if (!fake.failed) {
            assert_int_equal(status, STATUS_OK);
            *calls += n - 1;
            bench_close(&b);
            return;
        }
        *survived += status == STATUS_OK;
        if (status != STATUS_OK && !strstr(err.message, fake.failed))
            fail_msg("%s: call %d, %s, fails: \"%s\"", s->name, n, fake.failed, err.message);
        if (status != STATUS_OK && !strstr(err.message, "scripted"))
            fail_msg("%s: call %d, %s: no cause in \"%s\"", s->name, n, fake.failed, err.message);
    }
    fail_msg("%s: more than %d calls", s->name, CALLS_MAX);
}

/* What only tells, or gives back, cannot fail for the caller. */
static void check_all_failed(void)
{
#define X(field, symbol) #symbol,
    static const char *const names[] = {CUDNN_CALLS(X)};
#undef X
    for (int k = 0; k < ARRAY_COUNT(names); k++) {
        bool harmless = strstr(names[k], "Destroy") || strstr(names[k], "Version") ||
                        strstr(names[k], "ErrorString");
        if (!harmless && !fake_has_failed(names[k]))
            fail_msg("%s has failed in no test", names[k]);
    }
}

TEST(test_failures)
{
    int calls = 0, survived = 0;
    for (int k = 0; k < subject_count; k++)
        fail_everywhere(&subjects[k], &calls, &survived);
    print_message("%d calls failed once each, %d of them without harm\n", calls, survived);
    assert_true(calls - survived > 1000);
    check_all_failed();
}

/* The first error of a run stays. */
TEST(test_first_error_stays)
{
    struct bench b;
    bench_open(&b, subject("softmax"));
    struct kernel_state *made = hooks_prepare(b.kernel, &b.query, 0, NULL);
    b.err = (struct error){.code = STATUS_FAILED, .message = "earlier"};
    fake.fail_at = fake.calls + 1;
    b.kernel->launch(made, &b.args);
    assert_string_equal(b.err.message, "earlier");
    b.args.err = NULL;
    fake.fail_at = fake.calls + 1;
    b.kernel->launch(made, &b.args);
    kernel_release(b.kernel, made);
    bench_close(&b);
}

const struct unit_fixture unit_fixture = {.before_each = bench_set_up,
                                          .after_each = bench_tear_down};
