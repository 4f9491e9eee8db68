/* SPDX-License-Identifier: Apache-2.0
 *
 * Proves the gradient rule of every operator on every case that has floats: the loss is the sum of
 * all float results, each times a random number; its gradients by the rule
 * (engine/train/autodiff.h) are compared with finite differences of four points, both in double
 * through the references.
 *
 * Left out are cases with an infinity or a NaN among their literals, and those without a float that
 * can be varied. Where there are few elements each is varied alone, else all along a random
 * direction and a few alone. Random inputs are moved off the places where functions have kinks: no
 * number is near a multiple of a 32nd of its range, and neighbours differ.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numbers/random.h"
#include "base/system/clock.h"
#include "base/text/options.h"
#include "engine/graph/op_list.h"
#include "engine/reference/reference.h"
#include "engine/train/autodiff.h"
#include "tests/lib/child.h"
#include "tests/lib/noise.h"
#include "tests/lib/op_case.h"

enum { INPUTS_MAX = 32, EACH_ALONE = 64, FEW = 8, CASE_LIMIT_S = 300 };

static const double ALLOWED = 1e-6; /* of the gradient's norm */
/* A kink within reach of the first step is out of reach of another. */
static const double steps[] = {0x1p-16, 0x1p-21, 0x1p-26};
static const double GOLDEN = 0.6180339887498949;

struct settings {
    const char *filter;
    bool verbose, no_fork, help;
};

/* What a child tells its parent. */
struct tally {
    int passed, failed, left_out;
    double worst; /* error as a part of what is allowed */
};

struct suite {
    struct settings settings;
    struct tally *tally; /* shared: of the operator so far */
};

static const struct option table[] = {
    {"filter", 'f', OPTION_TEXT, offsetof(struct settings, filter), "TEXT",
     "only cases whose OP/CASE contains TEXT"},
    {"verbose", 'v', OPTION_FLAG, offsetof(struct settings, verbose), NULL,
     "say what is left out, and a line per operator"},
    {"no-fork", 0, OPTION_FLAG, offsetof(struct settings, no_fork), NULL,
     "stay in one process, for a debugger"},
    {"help", 'h', OPTION_FLAG, offsetof(struct settings, help), NULL, "print this"},
    {.name = NULL},
};

/* A case as a loss, and the same with its gradients. */
struct subject {
    const struct op *op;
    const struct op_case *c;
    int only;         /* output that the loss is made of; NONE: all floats */
    bool first_alone; /* input 0 alone is varied: the rule refuses another one */
    struct graph *g;  /* its output 0 is the loss */
    struct graph *dg; /* its outputs are the gradients that are not zero */
    int varied[INPUTS_MAX], varied_count; /* positions among the graph's inputs */
    int slot[INPUTS_MAX];                 /* per varied input: output of dg; NONE: zero */
    struct ref_tensor *inputs, *gradients;
    double scale; /* norm of the random numbers */
};

/* ---- the loss ---- */

static bool all_finite(const struct value *value)
{
    int64_t count = shape_count(&value->shape);
    struct ref_tensor t;
    if (!dtype_is_float(value->dtype) || !value->data || count == 0)
        return true;
    bool finite = ref_from_data(&t, value->dtype, &value->shape, value->data, NULL) == STATUS_OK;
    for (int64_t k = 0; finite && k < count; k++)
        finite = isfinite(t.f[k]);
    ref_release(&t);
    return finite;
}

static bool may_vary(const struct graph *g, int input, bool literals)
{
    const struct node *node = &g->nodes[0];
    int v = node->inputs[input];
    if (v == NONE || !dtype_is_float(g->values[v].dtype) || input >= node->op_inputs ||
        (node->op->const_inputs >> input & 1))
        return false;
    return g->values[v].kind == VALUE_INPUT || g->values[v].kind == VALUE_PARAM ||
           (literals && g->values[v].kind == VALUE_CONST);
}

/* Weights become inputs; the first literals do where there is nothing else to vary. */
static void choose_inputs(struct graph *g)
{
    bool any = false;
    for (int k = 0; k < g->nodes[0].op_inputs && k < INPUTS_MAX; k++)
        any = any || may_vary(g, k, false);
    for (int k = 0; k < g->nodes[0].op_inputs && k < INPUTS_MAX; k++) {
        int v = g->nodes[0].inputs[k];
        if (!may_vary(g, k, !any))
            continue;
        any = true;
        if (g->values[v].kind != VALUE_INPUT)
            graph_make_input(g, v, g->values[v].fill);
    }
}

static enum status make_loss(struct subject *s, struct error *err)
{
    struct graph *g = s->g;
    int loss = NONE;
    for (int k = 0; k < g->nodes[0].output_count; k++) {
        int v = g->nodes[0].outputs[k];
        bool other = loss != NONE && v != NONE && g->values[v].dtype != g->values[loss].dtype;
        if (v == NONE || !dtype_is_float(g->values[v].dtype) || other ||
            (s->only != NONE && s->only != k))
            continue;
        char name[32];
        snprintf(name, sizeof(name), "random%d", k);
        int by = graph_input(g, name, g->values[v].dtype, g->values[v].shape, noise());
        int product = graph_node(g, op_mul.name, NULL, INPUTS(v, by), NO_ATTRS);
        int sum = graph_node(g, op_reduce_sum.name, NULL, INPUTS(product),
                             ATTRS(attr_int("keepdims", 0)));
        loss = loss == NONE ? sum : graph_node(g, op_add.name, NULL, INPUTS(loss, sum), NO_ATTRS);
        s->scale = sqrt(s->scale * s->scale + (double)shape_count(&g->values[v].shape) / 3);
    }
    TRY(graph_failed(g, err));
    if (loss == NONE)
        return UNSUPPORTED(err, "no float result");
    if (s->op == &op_cast && g->values[g->nodes[0].outputs[0]].dtype != DTYPE_F64)
        return UNSUPPORTED(err, "it rounds, in double as well: differences see the steps");
    g->output_count = 0;
    graph_output(g, loss);
    return graph_check(g, err);
}

static enum status differentiate(struct subject *s, struct error *err)
{
    int by[INPUTS_MAX], of[INPUTS_MAX];
    s->dg = graph_copy(s->g);
    if (!s->dg)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < s->varied_count; k++)
        by[k] = s->dg->inputs[s->varied[k]];
    TRY(autodiff(s->dg, s->dg->outputs[0], NONE, s->varied_count, by, of, err));
    s->dg->output_count = 0;
    for (int k = 0; k < s->varied_count; k++) {
        s->slot[k] = of[k] == NONE ? NONE : s->dg->output_count;
        if (of[k] != NONE)
            graph_output(s->dg, of[k]);
    }
    graph_compact(s->dg);
    return s->dg->output_count ? graph_check(s->dg, err) : STATUS_OK;
}

/* Off the kinks. Each cell of a grid over the range keeps its number, which moves to a place within
 * the cell that its neighbours do not have. */
static void settle(const struct value *value, int input, const struct ref_tensor *t)
{
    double low = value->fill.a, cell = (value->fill.b - low) / 32;
    for (int64_t k = 0; k < t->count; k++) {
        double place = fmod((double)(k + 1) * GOLDEN + 0.137 * input, 1);
        if (value->data || !(cell > 0))
            t->f[k] += 0.01 * (1 + place);
        else
            t->f[k] = low + (floor((t->f[k] - low) / cell) + 0.2 + 0.6 * place) * cell;
    }
}

static enum status make_inputs(struct subject *s, struct error *err)
{
    struct graph *g = s->g;
    s->inputs = calloc((size_t)g->input_count + 1, sizeof(*s->inputs));
    s->gradients = calloc(INPUTS_MAX, sizeof(*s->gradients));
    if (!s->inputs || !s->gradients)
        return FAIL_NO_MEMORY(err);
    TRY(reference_inputs(g, s->inputs, NULL, err));
    for (int k = 0; k < g->input_count; k++) {
        bool of_case = false;
        for (int i = 0; i < g->nodes[0].op_inputs; i++)
            of_case = of_case || (g->nodes[0].inputs[i] == g->inputs[k] && may_vary(g, i, true));
        if (!of_case || (s->first_alone && g->inputs[k] != g->nodes[0].inputs[0]))
            continue;
        settle(&g->values[g->inputs[k]], k, &s->inputs[k]);
        if (s->inputs[k].count > 0)
            s->varied[s->varied_count++] = k;
    }
    return s->varied_count ? STATUS_OK : UNSUPPORTED(err, "no float that can be varied");
}

/* UNSUPPORTED: the case is left out, *err says why. */
static enum status subject_begin(struct subject *s, struct error *err)
{
    s->g = op_case_graph(s->op, s->c, err);
    if (!s->g)
        return err->code;
    for (int v = 0; v < s->g->value_count; v++)
        if (!all_finite(&s->g->values[v]))
            return UNSUPPORTED(err, "an infinity or a NaN among its literals");
    choose_inputs(s->g);
    TRY(make_loss(s, err));
    TRY(make_inputs(s, err));
    TRY(differentiate(s, err));
    if (s->dg->output_count == 0)
        return STATUS_OK;
    return reference_run(s->dg, s->inputs, s->gradients, NULL, err);
}

static void subject_end(struct subject *s)
{
    for (int k = 0; s->g && s->inputs && k < s->g->input_count; k++)
        ref_release(&s->inputs[k]);
    for (int k = 0; s->dg && s->gradients && k < s->dg->output_count; k++)
        ref_release(&s->gradients[k]);
    free(s->inputs);
    free(s->gradients);
    graph_free(s->dg);
    graph_free(s->g);
}

/* ---- differences ---- */

/* A way to vary one input: element `at` alone, or all by random numbers where at is NONE. */
struct direction {
    int varied;
    int64_t at;
};

static double along(const struct direction *d, int64_t k)
{
    if (d->at != NONE)
        return k == d->at;
    return 2 * random_uniform(0x9e37u + (uint64_t)d->varied, (uint64_t)k) - 1;
}

static enum status loss_at(const struct subject *s, const struct direction *d, double step,
                           double *loss, struct error *err)
{
    const struct ref_tensor *x = &s->inputs[s->varied[d->varied]];
    struct ref_tensor out = {0};
    double *before = malloc((size_t)x->count * sizeof(*before));
    if (!before)
        return FAIL_NO_MEMORY(err);
    memcpy(before, x->f, (size_t)x->count * sizeof(*before));
    for (int64_t k = 0; k < x->count; k++)
        x->f[k] += step * along(d, k);
    enum status status = reference_run(s->g, s->inputs, &out, NULL, err);
    memcpy(x->f, before, (size_t)x->count * sizeof(*before));
    free(before);
    if (status != STATUS_OK)
        return status;
    *loss = out.f[0];
    ref_release(&out);
    return isfinite(*loss) ? STATUS_OK : UNSUPPORTED(err, "the loss is %g", *loss);
}

static enum status difference_of(const struct subject *s, const struct direction *d, double step,
                                 double *difference, struct error *err)
{
    static const double weight[4] = {1.0 / 12, -8.0 / 12, 8.0 / 12, -1.0 / 12};
    static const double at[4] = {-2, -1, 1, 2};
    *difference = 0;
    for (int k = 0; k < 4; k++) {
        double loss;
        TRY(loss_at(s, d, at[k] * step, &loss, err));
        *difference += weight[k] * loss / step;
    }
    return STATUS_OK;
}

static enum status check(const struct subject *s, const struct direction *d, double *worst,
                         struct error *err)
{
    const struct ref_tensor *x = &s->inputs[s->varied[d->varied]];
    int slot = s->slot[d->varied];
    double difference = 0, rule = 0, norm = 0, length = 0, part = INFINITY;
    for (int64_t k = 0; k < x->count; k++) {
        double g = slot == NONE ? 0 : s->gradients[slot].f[k];
        rule += g * along(d, k);
        norm += g * g;
        length += along(d, k) * along(d, k);
    }
    /* Rounding: a gradient that is zero is found as one of about 1e-16 / step. */
    double allowed = ALLOWED * sqrt(length) * fmax(sqrt(norm), 1e-3 * s->scale) + 1e-300;
    for (size_t k = 0; k < sizeof(steps) / sizeof(*steps) && !(part <= 1); k++) {
        TRY(difference_of(s, d, steps[k], &difference, err));
        part = fabs(difference - rule) / allowed;
    }
    *worst = part > *worst ? part : *worst;
    if (part <= 1)
        return STATUS_OK;
    return FAIL(err, STATUS_INVALID,
                "\"%s\"%s %lld: the rule says %.10g, differences %.10g; norm %.3g",
                s->g->values[s->g->inputs[s->varied[d->varied]]].name,
                d->at == NONE ? ", direction" : " element", d->at == NONE ? 0 : (long long)d->at,
                rule, difference, sqrt(norm));
}

static enum status check_input(const struct subject *s, int varied, double *worst,
                               struct error *err)
{
    int64_t count = s->inputs[s->varied[varied]].count;
    int64_t alone = count <= EACH_ALONE ? count : FEW;
    struct direction all = {varied, NONE};
    if (count > alone)
        TRY(check(s, &all, worst, err));
    for (int64_t k = 0; k < alone; k++) {
        struct direction one = {varied, count <= EACH_ALONE ? k : (k * count + count / 3) / FEW};
        TRY(check(s, &one, worst, err));
    }
    return STATUS_OK;
}

/* ---- cases ---- */

struct case_job {
    struct suite *suite;
    const struct op *op;
    const struct op_case *c;
};

static void test_loss(const struct case_job *job, int only)
{
    struct error err = {0};
    struct tally *tally = job->suite->tally;
    struct subject s = {.op = job->op, .c = job->c, .only = only};
    char name[200];
    snprintf(name, sizeof(name), "%s/%s%s", job->op->name, job->c->name,
             only == NONE ? "" : ", one result");
    enum status status = subject_begin(&s, &err);
    if (status == STATUS_UNSUPPORTED && s.varied_count > 1) {
        subject_end(&s);
        s = (struct subject){.op = job->op, .c = job->c, .only = only, .first_alone = true};
        status = subject_begin(&s, &err);
    }
    for (int k = 0; status == STATUS_OK && k < s.varied_count; k++)
        status = check_input(&s, k, &tally->worst, &err);
    if (status == STATUS_OK) {
        tally->passed++;
    } else if (status == STATUS_UNSUPPORTED) {
        tally->left_out++;
        if (job->suite->settings.verbose)
            printf("# left out %s: %s\n", name, err.message);
    } else {
        tally->failed++;
        printf("not ok - %s: %s\n", name, err.message);
    }
    subject_end(&s);
}

static void test_in_child(void *context)
{
    const struct case_job *job = context;
    test_loss(job, NONE);
    for (int k = 0; job->c->outputs > 1 && k < job->c->outputs; k++)
        test_loss(job, k);
}

static void test_op(struct suite *suite, const struct op *op, struct tally *total)
{
    uint64_t start_ns = clock_now_ns();
    struct error err = {0};
    struct tally *tally = suite->tally;
    const char *filter = suite->settings.filter;
    *tally = (struct tally){0};
    int cases = 0;
    for (int k = 0; k < op->case_count; k++) {
        char name[160];
        snprintf(name, sizeof(name), "%s/%s", op->name, op->cases[k].name);
        if (filter && !strstr(name, filter))
            continue;
        cases++;
        struct case_job job = {suite, op, &op->cases[k]};
        if (suite->settings.no_fork) {
            test_in_child(&job);
        } else if (child_run(test_in_child, &job, CASE_LIMIT_S, &err) != STATUS_OK) {
            tally->failed++;
            printf("not ok - %s: %s\n", name, err.message);
        }
    }
    if (!filter && !tally->passed && !tally->failed) {
        tally->failed++;
        printf("not ok - %s: its gradient rule serves none of its cases\n", op->name);
    }
    if (suite->settings.verbose && cases)
        printf("# %-28s %4d cases %5d passed %4d failed %4d left out, worst error %6.2f %%, "
               "%.2f s\n",
               op->name, cases, tally->passed, tally->failed, tally->left_out, 100 * tally->worst,
               (double)(clock_now_ns() - start_ns) * 1e-9);
    total->passed += tally->passed;
    total->failed += tally->failed;
    fflush(stdout);
}

/* Every operator has a rule, or says why it has none. */
static void test_reason(const struct op *op, struct tally *total)
{
    bool fine = !op->gradient == (op->no_gradient != NULL);
    total->passed += fine;
    total->failed += !fine;
    if (!fine)
        printf("not ok - %s has %s gradient rule %s reason for having none\n", op->name,
               op->gradient ? "a" : "no", op->gradient ? "and a" : "and no");
}

int main(int argc, char **argv)
{
    struct suite suite = {0};
    struct tally total = {0};
    struct error err = {0};
    setvbuf(stdout, NULL, _IOLBF, 0); /* lines survive the crash of a child */
    if (options_parse(table, &argc, argv, &suite.settings, &err) != STATUS_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], err.message);
        return 2;
    }
    if (suite.settings.help) {
        char text[2048];
        options_usage(table, text, sizeof(text));
        printf("usage: %s [options]\n%s", argv[0], text);
        return 0;
    }
    suite.tally = child_shared(sizeof(*suite.tally));
    if (!suite.tally) {
        fprintf(stderr, "%s: out of memory\n", argv[0]);
        return 2;
    }
    for (int k = 0; k < op_count(); k++) {
        if (op_at(k)->gradient)
            test_op(&suite, op_at(k), &total);
        if (!suite.settings.filter)
            test_reason(op_at(k), &total);
    }
    printf("%d passed, %d failed\n", total.passed, total.failed);
    return total.failed ? 1 : 0;
}
