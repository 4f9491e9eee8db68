/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/graph/kernel.h"

#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "engine/graph/op.h"

bool kernel_computes(const struct kernel *kernel, const struct op *op)
{
    for (const char *const *name = kernel->ops; name && *name; name++)
        if (strcmp(*name, op->name) == 0)
            return true;
    return !kernel->ops;
}

#if defined(__x86_64__)
enum { LEAF_FEATURES = 7, AVX_VNNI_BIT = 4 };

static enum isa isa_of_cpu(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
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

enum isa isa_detect(void)
{
    enum isa best = isa_of_cpu();
    const char *wanted = getenv("RIDGE_ISA");
    for (int k = 0; wanted && k < (int)best; k++)
        if (strcmp(wanted, isa_name((enum isa)k)) == 0)
            return (enum isa)k;
    return best;
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
