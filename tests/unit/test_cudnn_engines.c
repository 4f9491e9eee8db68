/* SPDX-License-Identifier: Apache-2.0
 *
 * Which engines of cuDNN become variants, on faked functions and on cuDNN itself as far as it goes
 * without a device. */
#include <stdlib.h>
#include <string.h>

#include "engine/kernels/cudnn/lib/offers.h"
#include "tests/gpu/bench_cudnn.h"
#include "tests/gpu/chips.h"
#include "tests/lib/unit.h"

enum { CALLS_MAX = 4000 };

/* ---- variants ---- */

/* f32 stays exact unless tf32 is asked for; what gives other bits in each run never counts. */
TEST(test_precision)
{
    struct bench b;
    bench_open(&b, subject("conv"));
    assert_int_equal(hooks_variants(b.kernel, &b.query), 2);
    b.query.tf32 = true;
    assert_int_equal(hooks_variants(b.kernel, &b.query), 3);
    bench_close(&b);
}

/* Configurations of one engine that differ in one knob are variants, each known by its text and
 * each launched. */
TEST(test_knobs)
{
    static const char *const texts[] = {EXACT, "engine 1 " KNOBS "5"};
    struct bench b;
    bench_open(&b, subject("conv"));
    for (int v = 0; v < ARRAY_COUNT(texts); v++) {
        char text[ENGINE_TEXT] = "";
        hooks_describe(b.kernel, &b.query, v, text, sizeof(text));
        assert_string_equal(text, texts[v]);
        struct kernel_state *made = hooks_prepare(b.kernel, &b.query, v, NULL);
        b.kernel->launch(made, &b.args);
        assert_int_equal(fake_launch.configuration, 1 + v);
        kernel_release(b.kernel, made);
    }
    bench_close(&b);
}

/* One answer of the heuristics that fails costs one configuration, or one of the two lists. */
TEST(test_one_answer_fails)
{
    int failed = 0;
    struct bench b;
    bench_open(&b, subject("conv"));
    b.query.tf32 = true;
    for (int n = 1; n < CALLS_MAX; n++) {
        struct error err = {0};
        struct kernel_state *planned;
        fake_reset(n);
        enum status status = kernel_plan(b.kernel, &b.query, 0, &planned, &err);
        const char *call = fake.failed;
        if (!call)
            break;
        if (strcmp(call, "cudnnBackendGetAttribute") == 0) {
            if (status != STATUS_OK)
                fail_msg("answer %d: %s", n, err.message);
            fake_reset(n);
            assert_int_equal(kernel_variants(b.kernel, planned), 3);
            failed++;
        }
        kernel_release(b.kernel, planned);
        forget_device();
    }
    assert_true(failed > 10);
    bench_close(&b);
}

/* Of nodes that are alike a plan is compiled once; it lives until the last of them is gone. */
TEST(test_shared_plan)
{
    enum { FIRST, TWIN, OTHER_VARIANT, OTHER_NODE, STATES };
    struct bench b, wide;
    struct kernel_state *made[STATES];
    bench_open(&b, subject("conv"));
    bench_open(&wide, subject("conv of one dimension"));
    for (int k = 0; k < STATES; k++) {
        struct bench *own = k == OTHER_NODE ? &wide : &b;
        made[k] = hooks_prepare(own->kernel, &own->query, k == OTHER_VARIANT, NULL);
    }
    assert_int_equal(fake_launch.plans, 3);
    kernel_release(b.kernel, made[FIRST]);
    b.kernel->launch(made[TWIN], &b.args);
    assert_int_equal(b.err.code, STATUS_OK);
    for (int k = TWIN; k < STATES; k++)
        kernel_release(b.kernel, made[k]);
    made[0] = hooks_prepare(b.kernel, &b.query, 0, NULL);
    assert_int_equal(fake_launch.plans, 4);
    kernel_release(b.kernel, made[0]);
    bench_close(&b);
    bench_close(&wide);
    forget_device();
    assert_int_equal(fake.live, 0);
}

/* To ask for the engines of a graph takes long, and a kernel's variants are asked for one by one.
 */
TEST(test_asked_once)
{
    struct bench b;
    bench_open(&b, subject("conv"));
    fake_launch.questions = 0;
    assert_int_equal(hooks_variants(b.kernel, &b.query), 2);
    int questions = fake_launch.questions;
    for (int v = 0; v < 2; v++)
        kernel_release(b.kernel, hooks_prepare(b.kernel, &b.query, v, NULL));
    assert_int_equal(fake_launch.questions, questions);
    b.query.tf32 = true; /* another rule, for which not all of the same fit */
    assert_int_equal(hooks_variants(b.kernel, &b.query), 3);
    assert_true(fake_launch.questions > questions);
    bench_close(&b);
    forget_device();
    assert_int_equal(fake.live, 0);
}

/* What the tuner tried is prepared again to be run: it need not be compiled again. */
TEST(test_compiled_plans_stay)
{
    struct bench b;
    bench_open(&b, subject("conv"));
    fake_launch.plans = 0;
    for (int compiled = 0; compiled <= 1; compiled++) {
        fake_launch.compiled = compiled;
        offers_release();
        for (int k = 0; k < 3; k++)
            kernel_release(b.kernel, hooks_prepare(b.kernel, &b.query, 0, NULL));
        assert_int_equal(fake_launch.plans, compiled ? 3 + 1 : 3);
    }
    fake_launch.compiled = false;
    bench_close(&b);
    forget_device();
    assert_int_equal(fake.live, 0);
}

/* The compiled engine for pooling reads outside of its image in bf16 (on an H200, with 9.19). */
TEST(test_pool_is_not_compiled)
{
    struct bench b;
    struct desc in, out;
    struct error err = {0};
    bench_open(&b, subject("pool"));
    fake_launch.compiled = true;
    assert_int_equal(kernel_accepts(b.kernel, &b.query, &err), STATUS_OK);
    in = b.query.in[0];
    out = b.query.out[0];
    in.dtype = out.dtype = DTYPE_BF16;
    b.query.in = &in;
    b.query.out = &out;
    assert_int_equal(kernel_accepts(b.kernel, &b.query, &err), STATUS_UNSUPPORTED);
    assert_string_equal(err.message, "none of the 8 engines that cuDNN offers is compiled already");
    fake_launch.compiled = false;
    assert_int_equal(kernel_accepts(b.kernel, &b.query, &err), STATUS_OK);
    bench_close(&b);
}

/* cuDNN offers engines for attention in f32, too, of which 9.19's writes outside its memory. */
TEST(test_attention_is_narrow)
{
    struct bench b;
    struct desc in[4];
    struct error err = {0};
    bench_open(&b, subject("attention"));
    assert_int_equal(kernel_accepts(b.kernel, &b.query, &err), STATUS_OK);
    for (int k = 0; k < b.query.in_count; k++) {
        in[k] = b.query.in[k];
        in[k].dtype = DTYPE_F32;
    }
    b.query.in = in;
    assert_int_equal(kernel_accepts(b.kernel, &b.query, &err), STATUS_UNSUPPORTED);
    assert_string_equal(err.message, "only f16 and bf16");
    bench_close(&b);
}

/* 9.8 was said to do, which has no operation of attention. */
TEST(test_version)
{
    static const size_t old[] = {8907, 90800, 91300, 100000};
    for (int k = 0; k < ARRAY_COUNT(old); k++) {
        struct error why = {0};
        assert_int_equal(cudnn_version_check(old[k], &why), STATUS_UNSUPPORTED);
        assert_non_null(strstr(why.message, "9.13.1 or newer is needed"));
    }
    assert_int_equal(cudnn_version_check(91301, NULL), STATUS_OK);
    assert_int_equal(cudnn_version_check(92600, NULL), STATUS_OK);
}

/* Engines that are compiled at run time fail without NVRTC, which nothing else said. */
TEST(test_missing_compiler)
{
    char text[64];
    setenv("RIDGE_NVRTC", "/nonexistent.so", 1);
    cudnn_version_text(&cudnn, text, sizeof(text));
    unsetenv("RIDGE_NVRTC");
    assert_non_null(strstr(text, " without libnvrtc.so.13"));
    assert_int_equal(strncmp(text, "9.", 2), 0);
    setenv("RIDGE_NVRTC", "libdl.so.2", 1); /* any library that is there */
    cudnn_version_text(&cudnn, text, sizeof(text));
    unsetenv("RIDGE_NVRTC");
    assert_null(strstr(text, "without"));
}

/* ---- cuDNN itself, without a device ---- */

/* Under a sanitizer it is left alone: it leaks, in modules that are gone when leaks are looked for.
 */
static void open_or_skip(void)
{
    struct error err = {0};
    const char *vendors = getenv("RIDGE_TEST_VENDORS");
    if (vendors && strcmp(vendors, "0") == 0)
        skip();
    if (cudnn_api_open(&cudnn, &err) != STATUS_OK) {
        print_message("%s\n", err.message);
        skip();
    }
}

TEST(test_real_engines)
{
    struct device chips[CHIP_COUNT];
    struct bench b;
    struct error err = {0};
    open_or_skip();
    bench_open(&b, subject("conv"));
    chips_describe(chips);
    for (int c = 0; c < CHIP_COUNT; c++) {
        char json[1024], text[ENGINE_TEXT];
        chip_json(c, json, sizeof(json));
        MUST(device_chip_from_json, c, json);
        b.query.device = &chips[c];
        b.query.tf32 = false;
        if (kernel_accepts(b.kernel, &b.query, &err) != STATUS_OK)
            fail_msg("%s: %s", chip_name(c), err.message);
        int exact = hooks_variants(b.kernel, &b.query);
        b.query.tf32 = true;
        int rounding = hooks_variants(b.kernel, &b.query);
        hooks_describe(b.kernel, &b.query, 0, text, sizeof(text));
        print_message("%s: %d engines in f32, %d with tf32, the first of them %s\n", chip_name(c),
                      exact, rounding, text);
        assert_true(exact > 0 && rounding > exact);
        assert_int_equal(strncmp(text, "engine ", 7), 0);
    }
    bench_close(&b);
}

/* A graph that cuDNN rejects: its own words are in the message. */
TEST(test_real_refusal)
{
    struct opgraph g;
    struct error err = {0};
    struct tensor x = {.type = CUDNN_DATA_FLOAT, .rank = 4, .dim = {1, 2, 3, 4}};
    open_or_skip();
    opgraph_begin(&g);
    x.dim[1] = -1;
    opgraph_unary(&g, CUDNN_POINTWISE_RELU_FWD, opgraph_tensor(&g, &x, NULL), NULL);
    assert_int_not_equal(opgraph_end(&g, &err), STATUS_OK);
    assert_non_null(strstr(err.message, "cudnnBackend"));
    assert_non_null(strstr(err.message, "CUDNN_STATUS_BAD_PARAM"));
    opgraph_free(&g);
}

const struct unit_fixture unit_fixture = {.before_each = bench_set_up,
                                          .after_each = bench_tear_down};
