/* SPDX-License-Identifier: Apache-2.0
 *
 * One recurrent layer over inputs of 64 features. AI Matrix measures batches of 16 and 32,
 * sequences of 32 and 64, and 256 to 2560 units in steps of 256. */
#include <math.h>
#include <string.h>

#include "workloads/lib/cases.h"

enum { FEATURES = 64 };

static const char *const cells[] = {"LSTM", "GRU", "RNN", NULL};
static const struct param params[] = {
    {"cell", "LSTM", cells, "what a unit is"},
    {"sequence", "32", NULL, "steps"},
    {"units", "256", NULL, "hidden units"},
    {.name = NULL},
};

static int weight(struct graph *g, const char *name, struct shape shape, int64_t fan)
{
    double bound = sqrt(1.0 / (double)fan);
    return graph_param(g, name, DTYPE_F32, shape,
                       (struct fill){.kind = FILL_UNIFORM, .a = -bound, .b = bound});
}

static void build(struct graph *g, const struct workload_config *config)
{
    const char *cell = config_text(config, "cell");
    g->batch = config->batch; /* inputs are steps first */
    int64_t units = config_int(config, "units"), steps = config_int(config, "sequence");
    int64_t gates = strcmp(cell, "LSTM") == 0 ? 4 : strcmp(cell, "GRU") == 0 ? 3 : 1;
    int x = case_input(g, "x", shape_of(steps, config->batch, FEATURES));
    int w = weight(g, "weight", shape_of(1, gates * units, FEATURES), FEATURES + units);
    int r = weight(g, "recurrence", shape_of(1, gates * units, units), FEATURES + units);
    int y = graph_node(g, cell, "rnn", INPUTS(x, w, r), ATTRS(attr_int("hidden_size", units)));
    graph_rename(g, y, "y");
    graph_output(g, y);
}

REGISTER(workload, rnn) = {
    .name = "rnn",
    .domain = "micro",
    .task = "recurrent layer",
    .summary = "one LSTM, GRU or plain recurrent layer over 64 features",
    .source = "AI Matrix RNN layer benchmark",
    .params = params,
    .batch = 16,
    .build = build,
};
