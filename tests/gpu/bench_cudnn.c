/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/bench_cudnn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/kernels/cudnn/lib/offers.h"
#include "engine/kernels/cudnn/lib/plans.h"

enum { MEMORY = 1 << 16 };

#define X(name) extern const struct kernel kernel_cudnn_##name;
#include "cudnn_list.inc"
#undef X

static const struct kernel *const kernels[] = {
#define X(name) &kernel_cudnn_##name,
#include "cudnn_list.inc"
#undef X
};

const struct subject subjects[] = {
    {"conv", "cudnn_conv", "Conv", one_conv, 2, 5, EXACT, 1},
    {"conv of one dimension", "cudnn_conv", "Conv", one_conv_1d, 2, 5, EXACT, 1},
    {"depthwise", "cudnn_conv_depthwise", "Conv", one_depthwise, 2, 3, EXACT, 2},
    {"few channels", "cudnn_conv_padded", "Conv", one_stem, 3, 4, ROUNDING, 1},
    {"conv_transpose", "cudnn_conv_transpose", "ConvTranspose", one_conv_transpose, 2, 3, EXACT, 1},
    {"pool", "cudnn_pool", "MaxPool", one_pool, 3, 2, ROUNDING, 1},
    {"batch_norm", "cudnn_batch_norm", "BatchNormalization", one_batch_norm, 3, 4, ROUNDING, 1},
    {"layer_norm", "cudnn_norm_rows", "LayerNormalization", one_layer_norm, 3, 5, ROUNDING, 1},
    {"attention", "cudnn_attention", "Attention", one_attention, 3, 5, ROUNDING, 1},
    {"attention with a mask", "cudnn_attention", "Attention", one_masked, 3, 6, ROUNDING, 1},
    {"matmul", "cudnn_matmul", "MatMul", one_matmul, 3, 5, ROUNDING, 1},
    {"gemm", "cudnn_matmul", "Gemm", one_gemm, 3, 5, ROUNDING, 1},
    {"matmul as a convolution", "cudnn_matmul_conv", "MatMul", one_matmul, 2, 5, EXACT, 1},
    {"lstm", "cudnn_rnn", "LSTM", one_lstm, 4, 0, "standard", 1},
    {"gru", "cudnn_rnn", "GRU", one_gru, 4, 0, "standard", 1},
    {"softmax", "cudnn_softmax", "Softmax", one_softmax, 0, 0, NULL, 1},
};

const int subject_count = ARRAY_COUNT(subjects);

const struct subject *subject(const char *name)
{
    for (int k = 0; k < subject_count; k++)
        if (strcmp(subjects[k].name, name) == 0)
            return &subjects[k];
    fail_msg("no subject %s", name);
    return NULL;
}

static const struct kernel *find_kernel(const char *name)
{
    for (int k = 0; k < ARRAY_COUNT(kernels); k++)
        if (strcmp(kernels[k]->name, name) == 0)
            return kernels[k];
    return NULL;
}

void bench_open(struct bench *b, const struct subject *s)
{
    struct error err = {0};
    *b = (struct bench){.kernel = find_kernel(s->kernel)};
    struct graph *g = graph_new("one node");
    assert_non_null(g);
    s->make(g);
    bool attention = strcmp(s->kernel, "cudnn_attention") == 0; /* it refuses f32 */
    struct exe_options options = {
        .threads = 1, .device = "cuda", .precision = attention ? PRECISION_BF16 : PRECISION_F32};
    if (lowered_open_with(&b->lowered, g, &options, &err) != STATUS_OK ||
        lowered_materialise(&b->lowered, &err) != STATUS_OK)
        fail_msg("%s: %s", s->name, err.message);
    for (int k = 0; k < lowered_count(&b->lowered); k++)
        if (strcmp(lowered_step(&b->lowered, k)->query.node->op->name, s->op) == 0)
            b->query = lowered_step(&b->lowered, k)->query;
    assert_non_null(b->query.node);
    fake_device(&b->device);
    b->query.device = &b->device;
    b->query.tf32 = strcmp(s->kernel, "cudnn_conv_padded") == 0 || /* they refuse exact products */
                    strcmp(s->kernel, "cudnn_matmul") == 0;
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

void bench_close(struct bench *b)
{
    for (int k = 0; k < ARRAY_COUNT(b->memory); k++)
        free(b->memory[k]);
    lowered_close(&b->lowered);
}

enum status run_through(struct bench *b, struct error *err)
{
    b->err = (struct error){0};
    TRY(hooks_run(b->kernel, &b->query, &b->args, 2, err));
    *err = b->err;
    return b->err.code;
}

void forget_device(void)
{
    plans_release();
    offers_release();
    device_handles_release();
    device_chips_release();
}

int bench_set_up(void **state)
{
    (void)state;
    cudnn_host = plugin_host();
    fake_reset(0);
    fake_cudnn(&cudnn);
    return 0;
}

int bench_tear_down(void **state)
{
    (void)state;
    forget_device();
    return 0;
}
