/* SPDX-License-Identifier: Apache-2.0
 * Weights that a recipe trains otherwise than the rest. */

#include <math.h>
#include <string.h>

#include "engine/ops/family/gradient.h"
#include "engine/reference/reference.h"
#include "engine/train/train.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"

enum { IN = 7, MIDDLE = 5, STEPS = 3, VALUES = 16 };

#define RATE 0.125

/* The loss is x a b: its gradient by a is x' b', by b it is (x a)'. */
static struct graph *network(void)
{
    struct graph *g = graph_new("linear");
    int x = noise_input(g, "x", shape_of(1, IN));
    int a = noise_param(g, "first.weight", shape_of(IN, MIDDLE));
    int b = noise_param(g, "second.weight", shape_of(MIDDLE, 1));
    graph_output(g, make_mat_mul(g, make_mat_mul(g, x, a), b));
    return g;
}

static struct recipe recipe_with(const struct recipe_group *groups)
{
    return (struct recipe){.optimiser = "sgd",
                           .decay = 0.5,
                           .groups = groups,
                           .schedule = {.kind = SCHEDULE_CONSTANT, .rate = RATE}};
}

static const struct ref_tensor *named(const struct graph *g, const struct ref_tensor *inputs,
                                      const char *name)
{
    for (int k = 0; k < g->input_count; k++)
        if (strcmp(g->values[g->inputs[k]].name, name) == 0)
            return &inputs[k];
    return NULL;
}

TEST(frozen_weights_stay_constants)
{
    static const struct recipe_group groups[] = {{.weights = "first.", .frozen = true},
                                                 {.weights = NULL}};
    struct recipe recipe = recipe_with(groups);
    struct graph *g = network();
    MUST(train_step, g, &recipe, NULL);
    assert_int_equal(g->values[graph_find_value(g, "first.weight")].kind, VALUE_PARAM);
    assert_int_equal(g->values[graph_find_value(g, "second.weight")].kind, VALUE_STATE);
    assert_int_equal(g->state_count, 2); /* the second weight and the step */
    graph_free(g);
}

/* The first weight by SGD with decay; the second by momentum, at a quarter of the rate. */
TEST(a_group_has_its_own_optimiser_rate_and_decay)
{
    static const struct recipe_group groups[] = {
        {.weights = "second.", .optimiser = "momentum", .rate = 0.25}, {.weights = NULL}};
    struct recipe recipe = recipe_with(groups);
    struct graph *g = network();
    struct ref_tensor inputs[VALUES], outputs[VALUES];
    double a[IN][MIDDLE], b[MIDDLE], v[MIDDLE] = {0};
    MUST(train_step, g, &recipe, NULL);
    assert_true(g->input_count <= VALUES && g->output_count <= VALUES);
    MUST(reference_inputs, g, inputs, NULL);
    const double *x = named(g, inputs, "x")->f;
    memcpy(a, named(g, inputs, "first.weight")->f, sizeof(a));
    memcpy(b, named(g, inputs, "second.weight")->f, sizeof(b));
    for (int step = 0; step < STEPS; step++) {
        double hidden[MIDDLE] = {0};
        MUST(reference_run, g, inputs, outputs, NULL);
        reference_carry(g, inputs, outputs);
        for (int k = 0; k < g->output_count; k++)
            ref_release(&outputs[k]);
        for (int i = 0; i < IN; i++)
            for (int m = 0; m < MIDDLE; m++) {
                hidden[m] += x[i] * a[i][m];
                a[i][m] -= RATE * (x[i] * b[m] + 0.5 * a[i][m]);
            }
        for (int m = 0; m < MIDDLE; m++) {
            v[m] = 0.9 * v[m] + hidden[m];
            b[m] -= RATE * 0.25 * v[m];
        }
    }
    for (int i = 0; i < IN * MIDDLE; i++)
        assert_true(fabs(named(g, inputs, "first.weight")->f[i] - a[i / MIDDLE][i % MIDDLE]) <
                    1e-12);
    for (int m = 0; m < MIDDLE; m++)
        assert_true(fabs(named(g, inputs, "second.weight")->f[m] - b[m]) < 1e-12);
    for (int k = 0; k < g->input_count; k++)
        ref_release(&inputs[k]);
    graph_free(g);
}

TEST(a_group_of_no_weight_is_an_error)
{
    static const struct recipe_group groups[] = {{.weights = "third."}, {.weights = NULL}};
    static const struct recipe_group unknown[] = {{.weights = "first.", .optimiser = "adamm"},
                                                  {.weights = NULL}};
    struct recipe recipe = recipe_with(groups);
    struct graph *g = network();
    FAILS(STATUS_FAILED, "\"third....\"", train_step, g, &recipe, NULL);
    graph_free(g);
    g = network();
    recipe = recipe_with(unknown);
    FAILS(STATUS_UNSUPPORTED, "\"adamm\"", train_step, g, &recipe, NULL);
    graph_free(g);
}
