/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/bench_cublaslt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

extern const struct kernel kernel_cublaslt_matmul, kernel_cublaslt_matmul_f8,
    kernel_cublaslt_matmul_bytes, kernel_cublaslt_attention;
static const struct kernel *const kernels[] = {&kernel_cublaslt_matmul, &kernel_cublaslt_matmul_f8,
                                               &kernel_cublaslt_matmul_bytes,
                                               &kernel_cublaslt_attention};

const struct op *any_op(const char *name)
{
    const struct op *op = op_find(name, NULL);
    return op ? op : op_find(name, "ridge");
}

/* Zeros that lie as memory of a device does. */
static void *device_memory(size_t bytes)
{
    size_t size = (bytes + ALIGN_DEVICE) / ALIGN_DEVICE * ALIGN_DEVICE;
    void *memory = aligned_alloc(ALIGN_DEVICE, size);
    assert_non_null(memory);
    return memset(memory, 0, size);
}

bool bench_open_in(struct bench *b, const char *op, const char *name, int posts, enum dtype floats)
{
    struct error err = {0};
    const struct op *found = any_op(op);
    const struct op_case *c = NULL;
    memset(b, 0, sizeof(*b));
    for (int k = 0; k < ARRAY_COUNT(kernels); k++)
        if (kernel_computes(kernels[k], found))
            b->kernel = kernels[k];
    for (int k = 0; k < found->case_count; k++)
        if (strcmp(found->cases[k].name, name) == 0)
            c = &found->cases[k];
    assert_non_null(c);
    b->subject = (struct subject){.op = found, .c = c, .floats = floats};
    enum status status = subject_open(&b->subject, posts, &err);
    if (status == STATUS_UNSUPPORTED && (posts != NONE || floats != DTYPE_F32))
        return false;
    if (status != STATUS_OK)
        fail_msg("%s/%s: %s", op, name, err.message);
    const struct graph *g = b->subject.g;
    const struct node *node = &g->nodes[0];
    assert_true(node->input_count <= OPERANDS_MAX);
    for (int k = 0; k < node->input_count; k++) {
        if (node->inputs[k] == NONE)
            continue;
        const struct value *value = &g->values[node->inputs[k]];
        b->in_desc[k] = desc_dense(value->dtype, &value->shape, LAYOUT_PLAIN);
        void *data = device_memory(desc_bytes(&b->in_desc[k]));
        value_materialise(value, data);
        b->in[k] = data;
        b->fixed[k] = value_is_fixed(value) ? data : NULL;
    }
    const struct value *result = &g->values[node->outputs[0]];
    b->out_desc[0] = desc_dense(result->dtype, &result->shape, LAYOUT_PLAIN);
    b->out[0] = device_memory(desc_bytes(&b->out_desc[0]));
    memset(b->out[0], 0xFF, desc_bytes(&b->out_desc[0]));
    fake_device(&b->device);
    b->query = (struct kernel_query){.node = node,
                                     .in_count = node->input_count,
                                     .out_count = 1,
                                     .in = b->in_desc,
                                     .out = b->out_desc,
                                     .fixed = b->fixed,
                                     .threads = 1,
                                     .device = &b->device};
    b->args = (struct kernel_args){.in = b->in,
                                   .out = b->out,
                                   .workspace = b->workspace,
                                   .stream = b->workspace,
                                   .err = &b->err};
    return true;
}

bool bench_open(struct bench *b, const char *op, const char *name, int posts)
{
    return bench_open_in(b, op, name, posts, DTYPE_F32);
}

void bench_close(struct bench *b)
{
    for (int k = 0; k < OPERANDS_MAX; k++) {
        void *data;
        memcpy(&data, &b->in[k], sizeof(data));
        free(data);
    }
    free(b->out[0]);
    subject_close(&b->subject);
}

enum status run_through(struct bench *b, struct error *err)
{
    b->err = (struct error){0};
    TRY(hooks_run(b->kernel, &b->query, &b->args, 1, err));
    *err = b->err;
    return b->err.code;
}

void bench_reshape(struct bench *b, enum dtype type, const struct shape *left,
                   const struct shape *right, const struct shape *result)
{
    struct desc *desc[] = {&b->in_desc[0], &b->in_desc[1]};
    const struct shape *shapes[] = {left, right};
    for (int k = 0; k < 2; k++) {
        *desc[k] = desc_dense(type, shapes[k], LAYOUT_PLAIN);
        free((void *)(uintptr_t)b->in[k]);
        char *data = device_memory(desc_bytes(desc[k]));
        for (int64_t i = 0; i < shape_count(shapes[k]); i++) {
            float number = (float)(i * 7 % 11 - 5);
            floats_store(type, &number, data + (size_t)i * dtype_size(type), 1);
        }
        b->in[k] = data;
        b->fixed[k] = NULL;
    }
    b->out_desc[0] = desc_dense(type, result, LAYOUT_PLAIN);
    free(b->out[0]);
    b->out[0] = device_memory(desc_bytes(&b->out_desc[0]));
}

const char *first_case(const char *op)
{
    return any_op(op)->cases[0].name;
}

int bench_set_up(void **state)
{
    (void)state;
    cublaslt_host = plugin_host();
    fake_reset(0);
    fake_cublaslt(&cublaslt);
    return 0;
}

int bench_tear_down(void **state)
{
    (void)state;
    cublaslt_handles_release();
    return fake.live;
}
