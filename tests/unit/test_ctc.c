/* SPDX-License-Identifier: Apache-2.0
 * CTCLoss and its gradient against the sum over all paths, each spelled out. */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/reference/reference.h"
#include "tests/lib/op_case.h"
#include "tests/lib/unit.h"

enum { STEPS = 6, CLASSES = 3, BLANK = 2, PATHS = 729, LABELS_MAX = 4 };

struct word {
    int count;
    int64_t label[LABELS_MAX];
};

static const struct word words[] = {
    {0, {0}},          {1, {0}},       {1, {1}},          {2, {0, 1}},
    {2, {1, 1}},       {3, {0, 1, 0}}, {3, {0, 0, 1}},    {4, {0, 1, 1, 0}},
    {4, {1, 0, 1, 0}}, {3, {0, 0, 0}}, {4, {0, 0, 0, 0}},
};

/* Whether merging the path's repeats and dropping its blanks leaves the word. */
static bool spells(const int *path, int steps, const struct word *w)
{
    int found = 0, last = BLANK;
    for (int t = 0; t < steps; t++) {
        if (path[t] != BLANK && path[t] != last) {
            if (found == w->count || w->label[found] != path[t])
                return false;
            found++;
        }
        last = path[t];
    }
    return found == w->count;
}

static void softmax_rows(const double *x, double *y)
{
    for (int t = 0; t < STEPS; t++) {
        double sum = 0;
        for (int k = 0; k < CLASSES; k++)
            sum += exp(x[t * CLASSES + k]);
        for (int k = 0; k < CLASSES; k++)
            y[t * CLASSES + k] = exp(x[t * CLASSES + k]) / sum;
    }
}

/* The probability of the word, and of each symbol at each step together with the word. */
static double sum_all(const double *y, int steps, const struct word *w, double *with)
{
    double total = 0;
    for (int number = 0; number < PATHS; number++) {
        int path[STEPS], rest = number;
        double product = 1;
        for (int t = 0; t < STEPS; t++, rest /= CLASSES)
            path[t] = rest % CLASSES;
        if (rest || !spells(path, steps, w))
            continue;
        for (int t = 0; t < STEPS; t++)
            product *= y[t * CLASSES + path[t]];
        total += product;
        for (int t = 0; t < steps; t++)
            with[t * CLASSES + path[t]] += product;
    }
    return total;
}

static struct graph *ctc_graph(const struct op *op, const struct word *w, int steps)
{
    struct error err = {0};
    char text[200];
    snprintf(text, sizeof(text),
             "%sf32[%d,1,%d]{-2:2} i64[1,%d]=%lld,%lld,%lld,%lld i64[1]=%d i64[1]=%d",
             op == &op_ctc_loss ? "" : "f32[1]=0.75 ", STEPS, CLASSES, LABELS_MAX,
             (long long)w->label[0], (long long)w->label[1], (long long)w->label[2],
             (long long)w->label[3], w->count, steps);
    struct graph *g = op_case_graph(op, &(struct op_case){.name = "all", .inputs = text}, &err);
    if (!g)
        fail_msg("%s", err.message);
    return g;
}

/* The result of the operator; logits: the first input of [T,1,C]. */
static struct ref_tensor run(const struct op *op, const struct word *w, int steps, double *logits)
{
    struct ref_tensor in[1], out;
    struct graph *g = ctc_graph(op, w, steps);
    assert_int_equal(g->input_count, 1);
    MUST(reference_inputs, g, in, NULL);
    for (int k = 0; k < STEPS * CLASSES; k++) {
        in[0].f[k] = logits[k];
    }
    MUST(reference_run, g, in, &out, NULL);
    ref_release(&in[0]);
    graph_free(g);
    return out;
}

TEST(loss_and_gradient_are_sums_over_all_paths)
{
    double x[STEPS * CLASSES], y[STEPS * CLASSES];
    for (int k = 0; k < STEPS * CLASSES; k++)
        x[k] = 2 * sin(1 + 3.7 * k);
    softmax_rows(x, y);
    for (int k = 0; k < ARRAY_COUNT(words); k++)
        for (int steps = STEPS - 2; steps <= STEPS; steps++) {
            double with[STEPS * CLASSES] = {0}, total = sum_all(y, steps, &words[k], with);
            struct ref_tensor loss = run(&op_ctc_loss, &words[k], steps, x);
            struct ref_tensor dx = run(&op_ctc_loss_gradient, &words[k], steps, x);
            if (total == 0)
                assert_true(isinf(loss.f[0]) && loss.f[0] > 0);
            else
                assert_true(fabs(loss.f[0] + log(total)) < 1e-12);
            for (int e = 0; e < STEPS * CLASSES; e++) {
                bool none = e >= steps * CLASSES || total == 0;
                double expected = none ? 0 : 0.75 * (y[e] - with[e] / total);
                assert_true(fabs(dx.f[e] - expected) < 1e-12);
            }
            ref_release(&loss);
            ref_release(&dx);
        }
}

TEST(labels_that_cannot_be_are_refused)
{
    struct word wrong[] = {{1, {CLASSES}}, {1, {-1}}, {1, {BLANK}}, {LABELS_MAX + 1, {0}}};
    for (int k = 0; k < ARRAY_COUNT(wrong); k++) {
        struct ref_tensor out;
        struct graph *g = ctc_graph(&op_ctc_loss, &wrong[k], STEPS);
        FAILS(STATUS_FAILED, "CTCLoss: sample 0 has", reference_run, g, NULL, &out, NULL);
        graph_free(g);
    }
}
