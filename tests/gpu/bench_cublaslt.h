/* SPDX-License-Identifier: Apache-2.0
 *
 * A kernel of the cuBLASLt plug-in on one case of its operator, over a faked device and library. */
#ifndef TESTS_GPU_BENCH_CUBLASLT_H
#define TESTS_GPU_BENCH_CUBLASLT_H

#include "tests/gpu/fake_cublaslt.h"
#include "tests/gpu/fake_device.h"
#include "tests/gpu/hooks.h"
#include "tests/lib/subject.h"

enum { OPERANDS_MAX = 8, SCORES_MAX = 1 << 18 /* bytes, of attention */ };

/* One node with its tensors, plain. */
struct bench {
    const struct kernel *kernel;
    struct subject subject;
    struct device device;
    struct kernel_query query;
    struct desc in_desc[OPERANDS_MAX], out_desc[1];
    const void *in[OPERANDS_MAX], *fixed[OPERANDS_MAX];
    void *out[1];
    _Alignas(ALIGN_DEVICE) char workspace[SCORES_MAX + FAKE_LT_WORKSPACE];
    struct error err; /* of launches */
    struct kernel_args args;
};

/* Of either domain. */
const struct op *any_op(const char *name);
const char *first_case(const char *op);

/* false: the case bears no such epilogue; subject_close it then. */
bool bench_open_in(struct bench *b, const char *op, const char *name, int posts, enum dtype floats);
bool bench_open(struct bench *b, const char *op, const char *name, int posts);
void bench_close(struct bench *b);
/* The bench's tensors become plain ones of these shapes, filled anew, none of them fixed. */
void bench_reshape(struct bench *b, enum dtype type, const struct shape *left,
                   const struct shape *right, const struct shape *result);
/* Everything that an executable does with a kernel, to the first failure. */
enum status run_through(struct bench *b, struct error *err);

/* Of each test (cmocka): the plug-in calls the fake, nothing fails yet. */
int bench_set_up(void **state);
int bench_tear_down(void **state);

#endif
