/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/graph/kernel.h"

#include <stdlib.h>
#include <string.h>
#if BUILT_ISAS > 1
#include <cpuid.h>
#endif

#include "base/numbers/integers.h"
#include "engine/graph/op.h"

bool kernel_computes(const struct kernel *kernel, const struct op *op)
{
    if (kernel->elementwise)
        return op_is_expression(op);
    for (const char *const *name = kernel->ops; name && *name; name++)
        if (strcmp(*name, op->name) == 0)
            return true;
    return !kernel->ops;
}

/* ---- calling them ---- */

/* Cleared; a state of no bytes is NULL. */
static enum status state_new(size_t size, struct kernel_state **state, struct error *err)
{
    size_t padded = round_up(size, ALIGN_TENSOR);
    *state = size ? aligned_alloc(ALIGN_TENSOR, padded) : NULL;
    if (!*state)
        return size ? FAIL_NO_MEMORY(err) : STATUS_OK;
    memset(*state, 0, padded);
    return STATUS_OK;
}

enum status kernel_plan(const struct kernel *kernel, const struct kernel_query *q, int variant,
                        struct kernel_state **state, struct error *why)
{
    TRY(state_new(kernel->state_size, state, why));
    enum status status = kernel->plan(q, variant, *state, why);
    if (status == STATUS_OK)
        return STATUS_OK;
    free(*state);
    *state = NULL;
    return status;
}

enum status kernel_accepts(const struct kernel *kernel, const struct kernel_query *q,
                           struct error *why)
{
    struct kernel_state *state;
    TRY(kernel_plan(kernel, q, 0, &state, why));
    kernel_release(kernel, state);
    return STATUS_OK;
}

int kernel_variants(const struct kernel *kernel, const struct kernel_state *state)
{
    return kernel->variants ? kernel->variants(state) : 1;
}

void kernel_describe(const struct kernel *kernel, const struct kernel_state *state, char *text,
                     size_t size)
{
    text[0] = '\0';
    if (kernel->describe)
        kernel->describe(state, text, size);
}

size_t kernel_workspace(const struct kernel *kernel, const struct kernel_state *state)
{
    return kernel->workspace ? kernel->workspace(state) : 0;
}

enum status kernel_prepare(const struct kernel *kernel, const struct kernel_query *q,
                           struct kernel_state *state, size_t *bytes, struct error *err)
{
    size_t packed = 0;
    if (kernel->prepare)
        TRY(kernel->prepare(q, state, &packed, err));
    *bytes = kernel->state_size + packed;
    if (kernel->pack && !kernel_packs_each_time(kernel, q))
        kernel->pack(state, &(struct kernel_args){.in = q->fixed});
    return STATUS_OK;
}

static bool has_form(const struct kernel *kernel, const struct kernel_query *q, int input)
{
    return input < q->node->op_inputs && input < 32 && (kernel->packs >> input & 1);
}

bool kernel_packs_each_time(const struct kernel *kernel, const struct kernel_query *q)
{
    for (int k = 0; kernel->pack && k < q->in_count; k++)
        if (has_form(kernel, q, k) && query_in(q, k) && !query_fixed(q, k))
            return true;
    return false;
}

bool kernel_reads(const struct kernel *kernel, const struct kernel_query *q, int input)
{
    return !has_form(kernel, q, input) || !query_fixed(q, input) ||
           kernel_packs_each_time(kernel, q);
}

void kernel_launch(const struct kernel *kernel, const struct kernel_query *q,
                   struct kernel_state *state, const struct kernel_args *args)
{
    if (kernel_packs_each_time(kernel, q))
        kernel->pack(state, args);
    kernel->launch(state, args);
}

void kernel_release(const struct kernel *kernel, struct kernel_state *state)
{
    if (state && kernel->release)
        kernel->release(state);
    free(state);
}

#if BUILT_ISAS > 1
enum { LEAF_FEATURES = 7, AVX_VNNI_BIT = 4 };

static enum isa isa_of_cpu(void)
{
    __builtin_cpu_init();
    if (BUILT_ISAS > 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return ISA_AVX2;
    return ISA_SCALAR;
}

bool cpu_has_vnni(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512vnni");
}

bool cpu_has_bf16(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512bf16");
}

/* Not every compiler that can use it knows the name. */
bool cpu_has_avx_vnni(void)
{
    unsigned a, b, c, d;
    return isa_of_cpu() >= ISA_AVX2 && __get_cpuid_count(LEAF_FEATURES, 1, &a, &b, &c, &d) &&
           (a >> AVX_VNNI_BIT & 1);
}
#else
static enum isa isa_of_cpu(void)
{
    return ISA_SCALAR;
}

bool cpu_has_vnni(void)
{
    return false;
}

bool cpu_has_bf16(void)
{
    return false;
}

bool cpu_has_avx_vnni(void)
{
    return false;
}
#endif

const char *isa_name(enum isa isa)
{
    static const char *const names[ISA_COUNT] = {"scalar", "avx2", "avx512"};
    return names[isa];
}

/* ISA_COUNT: none has this name. */
static enum isa isa_named(const char *name)
{
    int k = 0;
    while (k < ISA_COUNT && strcmp(name, isa_name((enum isa)k)) != 0)
        k++;
    return (enum isa)k;
}

enum isa isa_detect(void)
{
    enum isa best = isa_of_cpu();
    const char *wanted = getenv("RIDGE_ISA");
    enum isa isa = wanted ? isa_named(wanted) : best;
    return isa < best ? isa : best;
}

enum status isa_check(struct error *err)
{
    const char *wanted = getenv("RIDGE_ISA");
    enum isa isa = wanted ? isa_named(wanted) : ISA_SCALAR, best = isa_of_cpu();
    if (isa == ISA_COUNT)
        return FAIL(err, STATUS_FAILED, "RIDGE_ISA is \"%s\": say scalar, avx2 or avx512", wanted);
    if (isa > best)
        return FAIL(err, STATUS_FAILED, "RIDGE_ISA is %s; this CPU and build have %s at most",
                    wanted, isa_name(best));
    return STATUS_OK;
}

bool query_all_dtype(const struct kernel_query *q, enum dtype dtype)
{
    for (int k = 0; k < q->in_count; k++)
        if (q->in[k].dtype != DTYPE_NONE && q->in[k].dtype != dtype)
            return false;
    for (int k = 0; k < q->out_count; k++)
        if (q->out[k].dtype != DTYPE_NONE && q->out[k].dtype != dtype)
            return false;
    return true;
}

enum status query_plain_f32(const struct kernel_query *q, struct error *why)
{
    if (!query_all_dtype(q, DTYPE_F32))
        return UNSUPPORTED(why, "only f32");
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    for (int k = 0; k < q->in_count; k++)
        if (q->in[k].dtype != DTYPE_NONE && !desc_is_plain(&q->in[k]))
            return UNSUPPORTED(why, "input %d is not plain", k);
    for (int k = 0; k < q->out_count; k++)
        if (q->out[k].dtype != DTYPE_NONE && !desc_is_plain(&q->out[k]))
            return UNSUPPORTED(why, "output %d is not plain", k);
    return STATUS_OK;
}
