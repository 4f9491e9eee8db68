/* SPDX-License-Identifier: Apache-2.0
 * Ten steps with each optimiser against PyTorch's in float64: tests/oracle/optimisers.py, whose
 * network, data and names are the same as here, wrote tests/golden/optimisers.txt. */

#include <math.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/reference/reference.h"
#include "engine/train/train.h"
#include "tests/lib/golden_lines.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"

enum { STEPS = 10, MOST = 32, VALUES = 24 };

#define PARAMETER(key, number)                                                                     \
    {                                                                                              \
        .name = key, .kind = ATTR_FLOAT, .f = number                                               \
    }
#define RATE(top)                                                                                  \
    {                                                                                              \
        .kind = SCHEDULE_POLYNOMIAL, .rate = top, .power = 1, .steps = 20                          \
    }

static const struct subject {
    const char *name;
    struct recipe recipe;
} subjects[] = {
    {"sgd", {.optimiser = "sgd", .decay = 0.01, .schedule = RATE(0.2)}},
    {"sgd_clipped", {.optimiser = "sgd", .decay = 0.01, .clip_norm = 0.125, .schedule = RATE(0.5)}},
    {"momentum", {.optimiser = "momentum", .decay = 0.01, .schedule = RATE(0.1)}},
    {"momentum_each_clipped",
     {.optimiser = "momentum", .decay = 0.01, .clip_each = 0.0625, .schedule = RATE(0.1)}},
    {"nesterov", {.optimiser = "nesterov", .decay = 0.01, .schedule = RATE(0.1)}},
    {"adam", {.optimiser = "adam", .decay = 0.01, .schedule = RATE(0.02)}},
    {"adamw", {.optimiser = "adamw", .decay = 0.1, .schedule = RATE(0.02)}},
    {"adamw_clipped",
     {.optimiser = "adamw",
      .attrs = {PARAMETER("beta1", 0.8), PARAMETER("beta2", 0.99), PARAMETER("epsilon", 1e-6)},
      .decay = 0.1,
      .clip_norm = 0.25,
      .schedule = RATE(0.02)}},
    {"adamw_bert",
     {.optimiser = "adamw",
      .attrs = {PARAMETER("corrected", 0), PARAMETER("epsilon", 1e-6)},
      .decay = 0.01,
      .schedule = RATE(0.02)}},
    {"adagrad",
     {.optimiser = "adagrad",
      .attrs = {PARAMETER("rate_decay", 0.01), PARAMETER("initial", 0.125)},
      .decay = 0.01,
      .schedule = RATE(0.1)}},
    {"ftrl",
     {.optimiser = "ftrl",
      .attrs = {PARAMETER("l1", 0.02), PARAMETER("initial", 0.125)},
      .decay = 0.01,
      .schedule = RATE(0.1)}},
    {"rmsprop",
     {.optimiser = "rmsprop",
      .attrs = {PARAMETER("momentum", 0.9)},
      .decay = 0.01,
      .schedule = RATE(0.01)}},
    {"rmsprop_tensorflow",
     {.optimiser = "rmsprop",
      .attrs = {PARAMETER("momentum", 0.9), PARAMETER("rho", 0.9), PARAMETER("epsilon", 1e-3),
                PARAMETER("tensorflow", 1), PARAMETER("initial", 1)},
      .decay = 0.01,
      .schedule = RATE(0.02)}},
    {"lars",
     {.optimiser = "lars",
      .attrs = {PARAMETER("coefficient", 0.05)},
      .decay = 0.01,
      .schedule = RATE(0.5)}},
    {"lamb", {.optimiser = "lamb", .decay = 0.01, .schedule = RATE(0.02)}},
};

/* ---- the network ---- */

/* How the data of a value are made; seed < 0: not a value of ours. */
static const struct {
    const char *name;
    double seed, scale;
} sources[] = {{"x", 0.3, 1.0},  {"target", 1.1, 0.8}, {"w1", 0.5, 0.6},
               {"b1", 1.5, 0.6}, {"w2", 2.5, 0.6},     {"b2", 3.5, 0.6}};

static double made(int source, int64_t k)
{
    return sources[source].scale * sin(sources[source].seed + 0.7 * (double)k);
}

static int source_of(const char *name)
{
    for (int k = 0; k < ARRAY_COUNT(sources); k++)
        if (strcmp(sources[k].name, name) == 0)
            return k;
    return NONE;
}

static int dense(struct graph *g, int x, const char *weight, const char *bias, int64_t in,
                 int64_t out)
{
    struct fill none = {.kind = FILL_CONST};
    int w = graph_param(g, weight, DTYPE_F32, shape_of(in, out), none);
    int b = graph_param(g, bias, DTYPE_F32, shape_of(out), none);
    return make_add(g, make_mat_mul(g, x, w), b);
}

static struct graph *network(const struct recipe *recipe)
{
    struct fill none = {.kind = FILL_CONST};
    struct graph *g = graph_new("two_layers");
    int x = graph_input(g, "x", DTYPE_F32, shape_of(6, 5), none);
    int target = graph_input(g, "target", DTYPE_F32, shape_of(6, 3), none);
    int hidden = make_unary(g, &op_tanh, dense(g, x, "w1", "b1", 5, 4));
    int miss = make_sub(g, dense(g, hidden, "w2", "b2", 4, 3), target);
    struct attr whole = attr_int("keepdims", 0);
    int squares = make_mul(g, miss, miss);
    graph_output(g, graph_node(g, op_reduce_mean.name, "loss", INPUTS(squares), ATTRS(whole)));
    MUST(train_step, g, recipe, NULL);
    return g;
}

/* ---- what PyTorch says ---- */

static struct file open_golden(void)
{
    struct file golden;
    MUST(file_map, "tests/golden/optimisers.txt", &golden);
    return golden;
}

static void read_numbers(const struct file *golden, const struct subject *subject, const char *what,
                         double *numbers, int64_t wanted)
{
    int count;
    MUST(golden_line, golden, subject->name, what, numbers, MOST, &count);
    assert_int_equal(count, wanted);
}

/* ---- float64 ---- */

static void reference_steps(const struct subject *subject, const struct file *golden)
{
    struct graph *g = network(&subject->recipe);
    struct ref_tensor inputs[VALUES], outputs[VALUES];
    double losses[MOST], weights[MOST];
    assert_true(g->input_count <= VALUES && g->output_count <= VALUES);
    MUST(reference_inputs, g, inputs, NULL);
    for (int k = 0; k < g->input_count; k++) {
        int source = source_of(g->values[g->inputs[k]].name);
        for (int64_t e = 0; source != NONE && e < inputs[k].count; e++)
            inputs[k].f[e] = made(source, e);
    }
    read_numbers(golden, subject, "loss", losses, STEPS);
    for (int step = 0; step < STEPS; step++) {
        inputs[input_named(g, TRAIN_RATE)].f[0] = schedule_rate(&subject->recipe.schedule, step);
        MUST(reference_run, g, inputs, outputs, NULL);
        if (!(fabs(outputs[0].f[0] - losses[step]) < 1e-8))
            fail_msg("%s, step %d: loss %.12g, PyTorch's %.12g", subject->name, step,
                     outputs[0].f[0], losses[step]);
        reference_carry(g, inputs, outputs);
        for (int k = 0; k < g->output_count; k++)
            ref_release(&outputs[k]);
    }
    for (int s = source_of("w1"); s < ARRAY_COUNT(sources); s++) {
        const struct ref_tensor *w = &inputs[input_named(g, sources[s].name)];
        read_numbers(golden, subject, sources[s].name, weights, w->count);
        for (int64_t e = 0; e < w->count; e++)
            if (!(fabs(w->f[e] - weights[e]) < 1e-8))
                fail_msg("%s: %s[%d] is %.12g, PyTorch's %.12g", subject->name, sources[s].name,
                         (int)e, w->f[e], weights[e]);
    }
    for (int k = 0; k < g->input_count; k++)
        ref_release(&inputs[k]);
    graph_free(g);
}

TEST(ten_steps_in_float64_are_those_of_pytorch)
{
    struct file golden = open_golden();
    for (int k = 0; k < ARRAY_COUNT(subjects); k++)
        reference_steps(&subjects[k], &golden);
    file_unmap(&golden);
}

TEST(every_optimiser_is_compared)
{
    for (int k = 0; k < op_count(); k++) {
        bool found = !op_at(k)->update || !op_at(k)->update->name;
        for (int s = 0; !found && s < ARRAY_COUNT(subjects); s++)
            found = strcmp(subjects[s].recipe.optimiser, op_at(k)->update->name) == 0;
        if (!found)
            fail_msg("%s is not among the subjects", op_at(k)->name);
    }
}

/* ---- f32 ---- */

static void make_inputs(struct exe *exe)
{
    const struct graph *compiled = exe_graph(exe);
    for (int k = 0; k < compiled->input_count; k++) {
        const struct value *value = &compiled->values[compiled->inputs[k]];
        int source = source_of(value->name);
        float *data = source == NONE ? NULL : exe_input(exe, k);
        for (int64_t e = 0; data && e < shape_count(&value->shape); e++)
            data[e] = (float)made(source, e);
    }
}

static void executable_steps(const struct subject *subject, const struct file *golden, int threads)
{
    struct exe *exe;
    struct exe_options options = {.threads = threads, .no_tune = true};
    struct graph *g = network(&subject->recipe);
    double losses[MOST];
    MUST(exe_new, g, &options, &exe);
    make_inputs(exe);
    float *rate = exe_input(exe, input_named(exe_graph(exe), TRAIN_RATE));
    read_numbers(golden, subject, "loss", losses, STEPS);
    for (int step = 0; step < STEPS; step++) {
        *rate = (float)schedule_rate(&subject->recipe.schedule, step);
        exe_run(exe);
        double loss = (double)*(const float *)exe_output(exe, 0);
        if (!(fabs(loss - losses[step]) < 1e-5))
            fail_msg("%s in f32, step %d: loss %.8g, PyTorch's %.8g", subject->name, step, loss,
                     losses[step]);
    }
    exe_graph_free(exe, g);
}

TEST(ten_steps_in_f32_follow_them)
{
    struct file golden = open_golden();
    for (int k = 0; k < ARRAY_COUNT(subjects); k++)
        for (int threads = 1; threads <= 2; threads++)
            executable_steps(&subjects[k], &golden, threads);
    file_unmap(&golden);
}

static void check_unmoved(struct exe *exe, const struct subject *subject, int source)
{
    const char *name = sources[source].name;
    const float *weight = exe_input(exe, input_named(exe_graph(exe), name));
    for (int64_t e = 0; e < 3; e++)
        if (weight[e] != (float)made(source, e))
            fail_msg("%s: %s[%d] becomes %g", subject->name, name, (int)e, (double)weight[e]);
}

/* A warm-up begins with it. */
TEST(nothing_moves_at_a_rate_of_0)
{
    for (int k = 0; k < ARRAY_COUNT(subjects); k++) {
        struct exe *exe;
        struct exe_options options = {.threads = 1, .no_tune = true};
        struct graph *g = network(&subjects[k].recipe);
        MUST(exe_new, g, &options, &exe);
        make_inputs(exe);
        *(float *)exe_input(exe, input_named(exe_graph(exe), TRAIN_RATE)) = 0;
        exe_run(exe);
        for (int s = source_of("w1"); s < ARRAY_COUNT(sources); s++)
            check_unmoved(exe, &subjects[k], s);
        exe_graph_free(exe, g);
    }
}
