/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of the cuDNN plug-in without a GPU: on faked functions (what they are given, and what
 * happens when any of them fails), and on cuDNN itself as far as it goes without a device. What it
 * supports is asked by tests/gpu/support.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/kernels/cudnn/lib/device.h"
#include "engine/kernels/cudnn/lib/engines.h"
#include "tests/gpu/chips.h"
#include "tests/gpu/fake_cudnn.h"
#include "tests/gpu/fake_device.h"
#include "tests/gpu/one_node.h"
#include "tests/lib/lowered.h"

enum { MEMORY = 1 << 16, CALLS_MAX = 4000 };

#define X(name) extern const struct kernel kernel_cudnn_##name;
#include "cudnn_list.inc"
#undef X

static const struct kernel *const kernels[] = {
#define X(name) &kernel_cudnn_##name,
#include "cudnn_list.inc"
#undef X
};

struct subject {
    const char *name, *kernel, *op;
    void (*make)(struct graph *g);
    int variants; /* in f32 without tf32, by the fake's three engines */
    int tensors;  /* that a launch gives addresses of; 0: not through the graph API */
    const char *text;
};

static const struct subject subjects[] = {
    {"conv", "cudnn_conv", "Conv", one_conv, 1, 5, "engine 1 stages 4"},
    {"conv of one dimension", "cudnn_conv", "Conv", one_conv_1d, 1, 5, "engine 1 stages 4"},
    {"conv_transpose", "cudnn_conv_transpose", "ConvTranspose", one_conv_transpose, 1, 3,
     "engine 1 stages 4"},
    {"pool", "cudnn_pool", "MaxPool", one_pool, 2, 2, "engine 0 stages 4"},
    {"batch_norm", "cudnn_batch_norm", "BatchNormalization", one_batch_norm, 2, 4,
     "engine 0 stages 4"},
    {"layer_norm", "cudnn_norm_rows", "LayerNormalization", one_layer_norm, 2, 5,
     "engine 0 stages 4"},
    {"attention", "cudnn_attention", "Attention", one_attention, 1, 5, "engine 1 stages 4"},
    {"attention with a mask", "cudnn_attention", "Attention", one_masked, 1, 6,
     "engine 1 stages 4"},
    {"matmul", "cudnn_matmul", "MatMul", one_matmul, 1, 5, "engine 1 stages 4"},
    {"gemm", "cudnn_matmul", "Gemm", one_gemm, 1, 5, "engine 1 stages 4"},
    {"matmul as a convolution", "cudnn_matmul_conv", "MatMul", one_matmul, 1, 5,
     "engine 1 stages 4"},
    {"lstm", "cudnn_rnn", "LSTM", one_lstm, 4, 0, "standard"},
    {"gru", "cudnn_rnn", "GRU", one_gru, 4, 0, "standard"},
    {"softmax", "cudnn_softmax", "Softmax", one_softmax, 0, 0, NULL},
};

/* ---- one kernel on one node ---- */

struct bench {
    struct lowered lowered;
    struct kernel_query query;
    const struct kernel *kernel;
    struct device device;
    char *memory[8];
    const void *in[8];
    void *out[4];
    struct error err; /* of launches */
    struct kernel_args args;
};

static const struct kernel *find_kernel(const char *name)
{
    for (int k = 0; k < ARRAY_COUNT(kernels); k++)
        if (strcmp(kernels[k]->name, name) == 0)
            return kernels[k];
    return NULL;
}

static void bench_open(struct bench *b, const struct subject *s)
{
    struct error err = {0};
    *b = (struct bench){.kernel = find_kernel(s->kernel)};
    struct graph *g = graph_new("one node");
    assert_non_null(g);
    s->make(g);
    if (lowered_open(&b->lowered, g, PRECISION_F32, &err) != STATUS_OK ||
        lowered_materialise(&b->lowered, &err) != STATUS_OK)
        fail_msg("%s: %s", s->name, err.message);
    for (int k = 0; k < lowered_count(&b->lowered); k++)
        if (strcmp(lowered_step(&b->lowered, k)->query.node->op->name, s->op) == 0)
            b->query = lowered_step(&b->lowered, k)->query;
    assert_non_null(b->query.node);
    fake_device(&b->device);
    b->query.device = &b->device;
    b->query.tf32 = false;
    for (int k = 0; k < ARRAY_COUNT(b->memory); k++)
        assert_non_null(b->memory[k] = calloc(1, MEMORY));
    for (int k = 0; k < ARRAY_COUNT(b->in); k++)
        b->in[k] = b->memory[k];
    for (int k = 0; k < b->query.out_count; k++)
        b->out[k] = b->memory[7 - k];
    b->args = (struct kernel_args){.in = b->in,
                                   .out = b->out,
                                   .workspace = b->memory[5],
                                   .stream = b->memory[4],
                                   .err = &b->err};
}

static void bench_close(struct bench *b)
{
    for (int k = 0; k < ARRAY_COUNT(b->memory); k++)
        free(b->memory[k]);
    lowered_close(&b->lowered);
}

/* Everything that an executable does with a kernel, to the first failure. */
static enum status run_through(struct bench *b, struct error *err)
{
    struct kernel_state *state = NULL;
    size_t bytes;
    char text[48] = "";
    b->err = (struct error){0};
    TRY(b->kernel->supports(&b->query, err));
    int variants = b->kernel->variants ? b->kernel->variants(&b->query) : 1;
    if (b->kernel->describe)
        b->kernel->describe(&b->query, variants - 1, text, sizeof(text));
    if (b->kernel->workspace)
        b->kernel->workspace(&b->query, variants - 1);
    TRY(b->kernel->prepare(&b->query, variants - 1, &state, &bytes, err));
    b->kernel->launch(state, &b->query, &b->args);
    b->kernel->launch(state, &b->query, &b->args);
    b->kernel->release(state);
    *err = b->err;
    return b->err.code;
}

static void forget_device(void)
{
    device_handles_release();
    device_chips_release();
}

static int set_up(void **state)
{
    (void)state;
    cudnn_host = plugin_host();
    fake_reset(0);
    fake_cudnn(&cudnn);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    forget_device();
    return 0;
}

/* ---- what the library is given ---- */

static void test_kernels(void **state)
{
    (void)state;
    for (int k = 0; k < ARRAY_COUNT(subjects); k++) {
        const struct subject *s = &subjects[k];
        struct bench b;
        struct error err = {0};
        char text[48] = "";
        print_message("%s\n", s->name);
        bench_open(&b, s);
        fake_launch = (struct fake_launch){.count = 0};
        if (run_through(&b, &err) != STATUS_OK)
            fail_msg("%s: %s", s->name, err.message);
        assert_int_equal(fake_launch.count, 2);
        assert_ptr_equal(fake_launch.stream, b.memory[4]);
        assert_int_equal(fake_launch.packs, s->tensors ? 1 : 0); /* the same addresses: one list */
        assert_int_equal(fake_launch.tensor_count, s->tensors);
        if (b.kernel->variants)
            assert_int_equal(b.kernel->variants(&b.query), s->variants);
        if (s->text) {
            b.kernel->describe(&b.query, 0, text, sizeof(text));
            assert_string_equal(text, s->text);
        }
        bench_close(&b);
        forget_device();
        assert_int_equal(fake.live, 0);
    }
}

static const struct subject *subject(const char *name)
{
    for (int k = 0; k < ARRAY_COUNT(subjects); k++)
        if (strcmp(subjects[k].name, name) == 0)
            return &subjects[k];
    fail_msg("no subject %s", name);
    return NULL;
}

/* The weights arrive as [O, kh, kw, I]; addresses are those of the tensors; other addresses are
 * used at once. */
static void test_conv_memory(void **state)
{
    (void)state;
    struct bench b;
    struct error err = {0};
    struct kernel_state *made;
    size_t bytes;
    bench_open(&b, subject("conv"));
    assert_int_equal(b.kernel->workspace(&b.query, 0), FAKE_WORKSPACE);
    assert_int_equal(b.kernel->prepare(&b.query, 0, &made, &bytes, &err), STATUS_OK);
    assert_int_equal(bytes, 8 * 16 * 9 * sizeof(float));
    b.kernel->launch(made, &b.query, &b.args);
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
    b.kernel->launch(made, &b.query, &b.args);
    assert_ptr_equal(fake_launch.memory[0], b.memory[6]);
    assert_int_equal(fake_launch.packs, 2);
    b.kernel->release(made);
    bench_close(&b);
}

/* B [8, 16] arrives as [16, 8], and the residual before the row. */
static void test_matmul_as_conv(void **state)
{
    (void)state;
    struct bench b;
    struct error err = {0};
    struct kernel_state *made;
    size_t bytes;
    bench_open(&b, subject("matmul as a convolution"));
    assert_int_equal(b.kernel->prepare(&b.query, 0, &made, &bytes, &err), STATUS_OK);
    b.kernel->launch(made, &b.query, &b.args);
    const float *packed = fake_launch.memory[1], *plain = b.query.fixed[1];
    for (int n = 0; n < 16; n++)
        for (int k = 0; k < 8; k++)
            assert_true(packed[n * 8 + k] == plain[k * 16 + n]);
    assert_ptr_equal(fake_launch.memory[2], b.in[3]);
    assert_ptr_equal(fake_launch.memory[4], b.in[2]); /* behind the result, which ends the chain */
    b.kernel->release(made);
    bench_close(&b);
}

static void test_batch_norm_factors(void **state)
{
    (void)state;
    struct bench b;
    struct error err = {0};
    struct kernel_state *made;
    size_t bytes;
    bench_open(&b, subject("batch_norm"));
    assert_int_equal(b.kernel->prepare(&b.query, 0, &made, &bytes, &err), STATUS_OK);
    b.kernel->launch(made, &b.query, &b.args);
    const float *factor = fake_launch.memory[1], *shift = fake_launch.memory[2];
    const float *scale = b.query.fixed[1], *bias = b.query.fixed[2];
    const float *mean = b.query.fixed[3], *variance = b.query.fixed[4];
    for (int c = 0; c < 3; c++) {
        float y = (2.0f - mean[c]) * factor[c] + mean[c] * factor[c] + shift[c];
        double root = (double)factor[c] / (double)scale[c];
        assert_true(root * root * ((double)variance[c] + 1e-5) - 1 < 1e-5);
        assert_true((double)(y - 2.0f * factor[c] - bias[c] + mean[c] * factor[c]) < 1e-5);
    }
    b.kernel->release(made);
    bench_close(&b);
}

/* Gates in cuDNN's order i, f, c, o behind each other; the second direction after the first; two
 * directions of a batch go through the workspace. */
static void test_lstm_weights(void **state)
{
    (void)state;
    static const int order[] = {0, 2, 3, 1};
    enum { H = 4, I = 5, GATES = 4 };
    struct bench b;
    struct error err = {0};
    struct kernel_state *made;
    size_t bytes;
    bench_open(&b, subject("lstm"));
    assert_int_equal(b.kernel->workspace(&b.query, 0), 1024 + 3 * 2 * 2 * H * sizeof(float));
    assert_int_equal(b.kernel->prepare(&b.query, 0, &made, &bytes, &err), STATUS_OK);
    b.kernel->launch(made, &b.query, &b.args);
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
    b.kernel->release(made);
    bench_close(&b);
}

/* f32 stays exact unless tf32 is asked for; what gives other bits in each run never counts. */
static void test_precision(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, subject("conv"));
    assert_int_equal(b.kernel->variants(&b.query), 1);
    b.query.tf32 = true;
    assert_int_equal(b.kernel->variants(&b.query), 2);
    bench_close(&b);
}

/* ---- any call fails ---- */

/* A failure in variants, describe or workspace, which have no way to tell, leaves a kernel with
 * less to choose from. */
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

static void test_failures(void **state)
{
    (void)state;
    int calls = 0, survived = 0;
    for (int k = 0; k < ARRAY_COUNT(subjects); k++)
        fail_everywhere(&subjects[k], &calls, &survived);
    print_message("%d calls failed once each, %d of them without harm\n", calls, survived);
    assert_true(calls > 1000 && survived < calls * 3 / 4);
}

/* The first error of a run stays. */
static void test_first_error_stays(void **state)
{
    (void)state;
    struct bench b;
    struct error err = {0};
    struct kernel_state *made;
    size_t bytes;
    bench_open(&b, subject("softmax"));
    assert_int_equal(b.kernel->prepare(&b.query, 0, &made, &bytes, &err), STATUS_OK);
    b.err = (struct error){.code = STATUS_FAILED, .message = "earlier"};
    fake.fail_at = fake.calls + 1;
    b.kernel->launch(made, &b.query, &b.args);
    assert_string_equal(b.err.message, "earlier");
    b.args.err = NULL;
    fake.fail_at = fake.calls + 1;
    b.kernel->launch(made, &b.query, &b.args);
    b.kernel->release(made);
    bench_close(&b);
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

static void test_real_engines(void **state)
{
    (void)state;
    struct device chips[CHIP_COUNT];
    struct bench b;
    struct error err = {0};
    open_or_skip();
    bench_open(&b, subject("conv"));
    chips_describe(chips);
    for (int c = 0; c < CHIP_COUNT; c++) {
        char json[1024], text[48];
        chip_json(c, json, sizeof(json));
        if (device_chip_from_json(c, json, &err) != STATUS_OK)
            fail_msg("%s", err.message);
        b.query.device = &chips[c];
        b.query.tf32 = false;
        if (b.kernel->supports(&b.query, &err) != STATUS_OK)
            fail_msg("%s: %s", chip_name(c), err.message);
        int exact = b.kernel->variants(&b.query);
        b.query.tf32 = true;
        int rounding = b.kernel->variants(&b.query);
        b.kernel->describe(&b.query, 0, text, sizeof(text));
        print_message("%s: %d engines in f32, %d with tf32, the first of them %s\n", chip_name(c),
                      exact, rounding, text);
        assert_true(exact > 0 && rounding > exact);
        assert_int_equal(strncmp(text, "engine ", 7), 0);
    }
    bench_close(&b);
}

/* A graph that cuDNN rejects: its own words are in the message. */
static void test_real_refusal(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kernels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_conv_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_matmul_as_conv, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_batch_norm_factors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lstm_weights, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_precision, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failures, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_first_error_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_real_engines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_real_refusal, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
