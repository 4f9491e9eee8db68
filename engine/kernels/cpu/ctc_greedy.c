/* SPDX-License-Identifier: Apache-2.0
 *
 * CTCGreedyDecoder of f32: sequences side by side; the best class of a step is the largest vector
 * lane, then the first place that holds it. */
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/kernels/lib/row_pitch.h"
#include "engine/kernels/lib/simd.h"

/* The plan; a launch completes a copy of it with its addresses. */
struct kernel_state {
    const float *x;
    int64_t *labels, *lengths; /* NULL: not wanted */
    int64_t steps, n, classes, blank;
    bool merge;
    bool wants_labels, wants_lengths;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    TRY(query_plain_results(q, why));
    if (q->in[0].dtype != DTYPE_F32 || !desc_is_plain(&q->in[0]))
        return UNSUPPORTED(why, "only plain f32");
    const struct shape *x = &q->in[0].shape;
    int64_t blank = node_int(q->node, "blank", -1);
    s->wants_labels = q->out[0].dtype != DTYPE_NONE;
    s->wants_lengths = q->out_count > 1 && q->out[1].dtype != DTYPE_NONE;
    s->steps = x->dim[0];
    s->n = x->dim[1];
    s->classes = x->dim[2];
    s->blank = blank < 0 ? x->dim[2] - 1 : blank;
    s->merge = node_int(q->node, "merge_repeated", 1) != 0;
    return STATUS_OK;
}

static int64_t best_class(const float *x, int64_t classes)
{
    vf largest = vf_set1(x[0]);
    for (int64_t k = 0; k < classes; k += VL) {
        vm lanes = vm_first(classes - k);
        largest = vf_max(largest, vf_select(lanes, vf_load_m(x + k, lanes), largest));
    }
    vf level = vf_set1(vf_max_of(largest));
    for (int64_t k = 0; k < classes; k += VL) {
        vm lanes = vm_first(classes - k);
        unsigned bits = vm_bits(vm_and(lanes, vf_eq(vf_load_m(x + k, lanes), level)));
        if (bits)
            return k + __builtin_ctz(bits);
    }
    return 0; /* NaN only */
}

static void sequence(void *context, int64_t i, int thread)
{
    (void)thread;
    const struct kernel_state *job = context;
    int64_t count = 0, before = -1;
    int64_t *labels = job->labels ? job->labels + i * job->steps : NULL;
    for (int64_t t = 0; t < job->steps; t++) {
        int64_t now = best_class(job->x + (t * job->n + i) * job->classes, job->classes);
        if (now != job->blank && !(job->merge && now == before)) {
            if (labels)
                labels[count] = now;
            count++;
        }
        before = now;
    }
    if (job->lengths)
        job->lengths[i] = count;
    for (; labels && count < job->steps; count++)
        labels[count] = -1;
}

static void launch(const struct kernel_state *plan, const struct kernel_args *args)
{
    struct kernel_state job = *plan;
    job.x = args->in[0];
    job.labels = job.wants_labels ? args->out[0] : NULL;
    job.lengths = job.wants_lengths ? args->out[1] : NULL;
    pool_run(args->pool, job.n, sequence, &job);
}

REGISTER_KERNEL(ctc_greedy) = {
    NATIVE(ctc_greedy),
    .ops = OPS("CTCGreedyDecoder"),
    .state_size = sizeof(struct kernel_state),
    .plan = plan,
    .launch = launch,
};
