/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/ctc_paths.h"

#include <math.h>
#include <stdlib.h>

#include "engine/ops/lib/axis.h"

enum status ctc_check(const struct infer *c, int first, struct error *err)
{
    const char *name = c->node->op->name;
    const struct shape *x = &c->in[first + CTC_LOGITS]->shape;
    const struct shape *labels = &c->in[first + CTC_LABELS]->shape;
    const struct shape *lengths = &c->in[first + CTC_LABEL_LENGTHS]->shape;
    int64_t blank = node_int(c->node, "blank", -1);
    char text[3][96];
    bool fits = x->rank == 3 && labels->rank == 2 && lengths->rank == 1 && x->dim[2] > 0 &&
                labels->dim[0] == x->dim[1] && lengths->dim[0] == x->dim[1];
    if (!fits)
        return FAIL(err, STATUS_FAILED,
                    "%s takes logits [T,N,C], labels [N,S] and their lengths [N], not %s, %s and "
                    "%s",
                    name, shape_text(x, text[0]), shape_text(labels, text[1]),
                    shape_text(lengths, text[2]));
    if (infer_has(c, first + CTC_INPUT_LENGTHS)) {
        const struct shape *steps = &c->in[first + CTC_INPUT_LENGTHS]->shape;
        if (!shape_equal(steps, lengths))
            return FAIL(err, STATUS_FAILED, "%s: lengths of the inputs have shape %s, not %s", name,
                        shape_text(steps, text[0]), shape_text(lengths, text[1]));
    }
    if (blank < -1 || blank >= x->dim[2])
        return FAIL(err, STATUS_FAILED, "%s: blank %lld of %lld classes", name, (long long)blank,
                    (long long)x->dim[2]);
    return STATUS_OK;
}

void ctc_cost(const struct infer *c, int first, double passes, struct cost *cost)
{
    const struct shape *x = &c->in[first + CTC_LOGITS]->shape;
    const struct shape *labels = &c->in[first + CTC_LABELS]->shape;
    double states = (double)(x->dim[0] * x->dim[1] * ctc_states(labels->dim[1]));
    double elements = (double)shape_count(x);
    /* A softmax; per state the log of the sum of three exponentials, and the symbol's term. */
    cost->elementwise = 5 * elements + passes * 11 * states;
    cost->transcendentals = elements + passes * 4 * states;
}

enum status ctc_paths_init(struct ctc_paths *p, const struct ref_call *call, int first,
                           struct error *err)
{
    *p = (struct ctc_paths){.c = ctc_of(call->node, &call->in[first + CTC_LOGITS]->shape,
                                        &call->in[first + CTC_LABELS]->shape)};
    size_t states = (size_t)ctc_states(p->c.labels), steps = (size_t)p->c.steps;
    p->symbol = calloc(states, sizeof(*p->symbol));
    p->log_prob = calloc(steps * (size_t)p->c.classes + 1, sizeof(*p->log_prob));
    p->before = calloc(steps * states + 1, sizeof(*p->before));
    p->after = calloc(steps * states + 1, sizeof(*p->after));
    return p->symbol && p->log_prob && p->before && p->after ? STATUS_OK : FAIL_NO_MEMORY(err);
}

void ctc_paths_release(struct ctc_paths *p)
{
    free(p->symbol);
    free(p->log_prob);
    free(p->before);
    free(p->after);
}

/* NaN stays NaN. */
static double log_sum(double a, double b)
{
    double largest = fmax(a, b);
    return largest == -INFINITY ? a + b : largest + log(exp(a - largest) + exp(b - largest));
}

static enum status read_sample(struct ctc_paths *p, const struct ref_call *call, int first,
                               int64_t n, struct error *err)
{
    const char *name = call->node->op->name;
    const struct ref_tensor *steps =
        call->in_count > first + CTC_INPUT_LENGTHS ? call->in[first + CTC_INPUT_LENGTHS] : NULL;
    const int64_t *labels = call->in[first + CTC_LABELS]->i + n * p->c.labels;
    int64_t count = call->in[first + CTC_LABEL_LENGTHS]->i[n];
    p->steps = steps ? steps->i[n] : p->c.steps;
    if (count < 0 || count > p->c.labels || p->steps < 0 || p->steps > p->c.steps)
        return FAIL(err, STATUS_FAILED,
                    "%s: sample %lld has %lld of %lld labels, %lld of %lld steps", name,
                    (long long)n, (long long)count, (long long)p->c.labels, (long long)p->steps,
                    (long long)p->c.steps);
    p->states = ctc_states(count);
    for (int64_t s = 0; s < p->states; s++) {
        p->symbol[s] = s % 2 ? labels[s / 2] : p->c.blank;
        bool wrong = p->symbol[s] < 0 || p->symbol[s] >= p->c.classes ||
                     (s % 2 && p->symbol[s] == p->c.blank);
        if (wrong)
            return FAIL(err, STATUS_FAILED, "%s: sample %lld has label %lld of %lld classes%s",
                        name, (long long)n, (long long)p->symbol[s], (long long)p->c.classes,
                        p->symbol[s] == p->c.blank ? ", which is the blank" : "");
    }
    return STATUS_OK;
}

/* Whether a path may leap over state s - 1 to reach s. */
static bool may_leap(const struct ctc_paths *p, int64_t s)
{
    return s >= 2 && s < p->states && s % 2 && p->symbol[s] != p->symbol[s - 2];
}

static double emission(const struct ctc_paths *p, int64_t t, int64_t s)
{
    return p->log_prob[t * p->c.classes + p->symbol[s]];
}

static void sum_forward(const struct ctc_paths *p)
{
    for (int64_t t = 0; t < p->steps; t++) {
        double *now = p->before + t * p->states;
        const double *last = now - p->states;
        for (int64_t s = 0; s < p->states; s++) {
            double sum = t || s > 1 ? -INFINITY : 0;
            if (t) {
                sum = last[s];
                sum = s >= 1 ? log_sum(sum, last[s - 1]) : sum;
                sum = may_leap(p, s) ? log_sum(sum, last[s - 2]) : sum;
            }
            now[s] = sum + emission(p, t, s);
        }
    }
}

static void sum_backward(const struct ctc_paths *p)
{
    for (int64_t t = p->steps - 1; t >= 0; t--) {
        double *now = p->after + t * p->states;
        const double *next = now + p->states;
        for (int64_t s = 0; s < p->states; s++) {
            now[s] = s + 2 < p->states ? -INFINITY : 0;
            if (t == p->steps - 1)
                continue;
            now[s] = next[s] + emission(p, t + 1, s);
            if (s + 1 < p->states)
                now[s] = log_sum(now[s], next[s + 1] + emission(p, t + 1, s + 1));
            if (may_leap(p, s + 2))
                now[s] = log_sum(now[s], next[s + 2] + emission(p, t + 1, s + 2));
        }
    }
}

enum status ctc_paths_sum(struct ctc_paths *p, const struct ref_call *call, int first, int64_t n,
                          struct error *err)
{
    struct axis line = {.outer = 1, .size = p->c.classes, .inner = 1};
    const double *x = call->in[first + CTC_LOGITS]->f;
    TRY(read_sample(p, call, first, n, err));
    for (int64_t t = 0; t < p->steps; t++)
        axis_log_softmax(&line, x + (t * p->c.samples + n) * p->c.classes,
                         p->log_prob + t * p->c.classes);
    sum_forward(p);
    sum_backward(p);
    if (p->steps) {
        const double *last = p->before + (p->steps - 1) * p->states;
        p->total = log_sum(last[p->states - 1], p->states > 1 ? last[p->states - 2] : -INFINITY);
    } else {
        p->total = p->states > 1 ? -INFINITY : 0;
    }
    return STATUS_OK;
}
