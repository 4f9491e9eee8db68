/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/step_product.h"

#include <string.h>

#include "base/memory.h"

struct step_product step_product_plan(int64_t rows, int64_t n, int64_t k, int threads)
{
    struct gemm_size size = {.batch = 1, .m = rows, .n = n, .taps = 1, .k = k, .threads = threads};
    return (struct step_product){.plan = gemm_variant(&size, k, false, 0)};
}

bool step_product_alloc(struct step_product *p, bool biased, size_t *bytes)
{
    size_t panels = (size_t)gemm_packed_floats(&p->plan) * sizeof(float);
    size_t bias = (size_t)gemm_bias_floats(&p->plan) * sizeof(float);
    p->packed = memory_alloc(panels);
    p->bias = biased ? memory_alloc(bias) : NULL;
    if (p->bias)
        memset(p->bias, 0, bias);
    *bytes += panels + (biased ? bias : 0);
    return p->packed && (p->bias || !biased);
}

void step_product_pack(const struct step_product *p, const float *weights, int64_t row,
                       int64_t column, struct pool *pool)
{
    struct gemm_source_b from = {.b = weights, .row = row, .column = column, .scale = 1};
    gemm_pack(&p->plan, &from, pool, p->packed);
}

static void rows_of(const struct gemm_rows *rows, const float **to, int64_t step)
{
    const struct step_rows *from = rows->source;
    (void)step;
    for (int64_t m = 0; m < rows->count; m++)
        to[m] = from->a + (rows->row + m) * from->a_row;
}

void step_product_run(const struct step_product *p, const struct step_rows *rows, void *workspace,
                      struct pool *pool)
{
    struct gemm_call call = {.rows = rows_of,
                             .source = rows,
                             .b = p->packed,
                             .bias = p->bias,
                             .c = rows->c,
                             .c_row = rows->c_row,
                             .workspace = workspace};
    gemm_run(&p->plan, &call, pool);
}

void step_product_release(struct step_product *p)
{
    memory_free(p->packed);
    memory_free(p->bias);
}
