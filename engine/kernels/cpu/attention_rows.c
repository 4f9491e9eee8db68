/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of few queries, as when text is generated token by token: keys and values are read
 * where they lie, once per query, since packing them would cost more than the products do.
 */
#include <math.h>

#include "engine/graph/kernel.h"
#include "engine/kernels/lib/plain_floats.h"
#include "engine/kernels/lib/simd_math.h"
#include "engine/ops/lib/attention.h"
#include "engine/ops/lib/strided.h"

enum { QUERIES_MAX = 16 }; /* beyond, attention_flash wins by far */

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    struct attention_shape s;
    const void *q, *k, *v, *mask; /* mask may be NULL */
    int64_t mask_stride[4];       /* batch, head, query, key */
    void *y;
    float *scores; /* per thread `stride` floats */
    int64_t stride;
    bool masked, bf16;
    int threads;
};

static enum status shape_of_query(const struct kernel_query *q, struct attention_shape *s,
                                  struct error *why)
{
    const struct desc *k = query_in(q, 1), *v = query_in(q, 2);
    return attention_shape_from(q->node, &q->in[0].shape, k ? &k->shape : NULL,
                                v ? &v->shape : NULL, s, why);
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *p,
                        struct error *why)
{
    (void)variant;
    struct attention_shape *s = &p->s;
    TRY(query_plain_floats(q, &p->bf16, why));
    TRY(shape_of_query(q, s, why));
    if (s->queries > QUERIES_MAX)
        return UNSUPPORTED(why, "%lld queries, more than %d", (long long)s->queries,
                           (int)QUERIES_MAX);
    p->stride = (s->keys + 15) / 16 * 16;
    p->threads = q->threads;
    const struct desc *mask = query_in(q, 3);
    p->masked = mask;
    if (mask)
        strided_broadcast(mask, 4, p->mask_stride);
    return STATUS_OK;
}

static size_t workspace(const struct kernel_state *p)
{
    return (size_t)(p->threads * p->stride) * sizeof(float);
}

SIMD_INLINE vf part_of(const void *row, int64_t d, int64_t size, bool bf16)
{
    return vf_read_m(row, d, vm_first(size - d), bf16);
}

/* scores[j] = scale q . k_j + mask_j; returns the largest. */
SIMD_INLINE float score_keys(const struct kernel_state *job, const void *q, const void *k,
                             const void *mask, float *scores, bool bf16)
{
    const struct attention_shape *s = &job->s;
    float scale = (float)s->scale, largest = -INFINITY;
    for (int64_t j = 0; j < s->keys; j++, k = float_at(k, s->k_row, bf16)) {
        vf sum = vf_zero();
        for (int64_t d = 0; d < s->head_size; d += VL)
            sum = vf_fma(part_of(q, d, s->head_size, bf16), part_of(k, d, s->head_size, bf16), sum);
        float added = mask ? float_read(mask, j * job->mask_stride[3], bf16) : 0;
        scores[j] = scale * vf_sum(sum) + added;
        largest = scores[j] > largest ? scores[j] : largest;
    }
    return largest;
}

/* scores = e^(scores - largest); returns the sum. */
static float exp_scores(float *scores, int64_t n, float largest)
{
    vf sum = vf_zero(), shift = vf_set1(largest);
    for (int64_t j = 0; j < n; j += VL) {
        vm lanes = vm_first(n - j);
        vf e = vf_exp_fast(vf_sub(vf_load_m(scores + j, lanes), shift));
        vf_store_m(scores + j, lanes, e);
        sum = vf_add(sum, vf_select(lanes, e, vf_zero()));
    }
    return vf_sum(sum);
}

/* y = factor * sum of scores[j] v_j, columns [first, first + vectors VL); vectors is a constant. */
SIMD_INLINE void weigh_values(const struct kernel_state *job, const float *scores, const void *v,
                              int64_t first, int vectors, float factor, void *y, bool bf16)
{
    const struct attention_shape *s = &job->s;
    vf sums[4];
    for (int u = 0; u < vectors; u++)
        sums[u] = vf_zero();
    for (int64_t j = 0; j < s->keys; j++, v = float_at(v, s->v_row, bf16))
        for (int u = 0; u < vectors; u++)
            sums[u] =
                vf_fma(vf_set1(scores[j]), part_of(v, first + u * VL, s->head_size, bf16), sums[u]);
    for (int u = 0; u < vectors; u++)
        vf_write_m(y, first + u * VL, vm_first(s->head_size - first - u * VL),
                   vf_mul(vf_set1(factor), sums[u]), bf16);
}

SIMD_INLINE void attend_line(const struct kernel_state *job, int64_t line, int thread, bool bf16)
{
    const struct attention_shape *s = &job->s;
    int64_t query = line % s->queries, h = line / s->queries % s->heads;
    int64_t b = line / s->queries / s->heads, head = h * s->head_size;
    const void *q = float_at(job->q, (b * s->queries + query) * s->q_row + s->q_start + head, bf16);
    const void *k = float_at(job->k, b * s->keys * s->k_row + s->k_start + head, bf16);
    const void *v = float_at(job->v, b * s->keys * s->v_row + s->v_start + head, bf16);
    int64_t to = (b * s->queries + query) * s->heads * s->head_size + head;
    void *y = out_at(job->y, to, bf16);
    float *scores = job->scores + thread * job->stride;
    const int64_t *m = job->mask_stride;
    const void *mask =
        job->mask ? float_at(job->mask, b * m[0] + h * m[1] + query * m[2], bf16) : NULL;
    float largest = score_keys(job, q, k, mask, scores, bf16);
    bool empty = s->zero_empty && largest == -INFINITY;
    float sum = exp_scores(scores, s->keys, empty ? 0 : largest);
    float factor = empty ? 0 : 1.0f / sum;
    int64_t d = 0;
    for (; d + 3 * VL < s->head_size; d += 4 * VL)
        weigh_values(job, scores, v, d, 4, factor, y, bf16);
    for (; d < s->head_size; d += VL)
        weigh_values(job, scores, v, d, 1, factor, y, bf16);
}

static void run_line(void *context, int64_t line, int thread)
{
    const struct kernel_state *job = context;
    if (job->bf16)
        attend_line(job, line, thread, true);
    else
        attend_line(job, line, thread, false);
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.q = args->in[0];
    job.k = job.s.packed ? job.q : args->in[1];
    job.v = job.s.packed ? job.q : args->in[2];
    job.mask = job.masked ? args->in[3] : NULL;
    job.y = args->out[0];
    job.scores = args->workspace;
    pool_run(args->pool, job.s.batch * job.s.heads * job.s.queries, run_line, &job);
}

REGISTER_KERNEL(attention_rows) = {
    NATIVE(attention_rows), .ops = OPS("Attention"), .state_size = sizeof(struct kernel_state),
    .plan = plan,           .workspace = workspace,  .launch = launch,
};
