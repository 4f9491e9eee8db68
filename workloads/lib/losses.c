/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/losses.h"

#include "workloads/lib/layers.h"

static int number(struct graph *g, double value)
{
    return graph_const_f32(g, (float)value);
}

int sum_of(struct graph *g, int x)
{
    return graph_node(g, "ReduceSum", NULL, INPUTS(x), ATTRS(attr_int("keepdims", 0)));
}

int mean_of(struct graph *g, int x)
{
    return graph_node(g, "ReduceMean", NULL, INPUTS(x), ATTRS(attr_int("keepdims", 0)));
}

int weighted_mean_of(struct graph *g, int x, int weights)
{
    int total = binary(g, "Max", sum_of(g, weights), number(g, 1));
    return binary(g, "Div", sum_of(g, mul(g, x, weights)), total);
}

/* Minus the mean over the classes of the logarithms of their probabilities, for what counts. */
static int common_part(struct graph *g, int log_prob, int labels, int64_t ignored)
{
    static const int64_t classes = 1;
    if (ignored == COUNT_ALL)
        return unary(g, "Neg", mean_of(g, log_prob));
    int wide = cast(g, labels, DTYPE_I64);
    int left_out = binary(g, "Equal", wide, graph_const_i64(g, -1, &ignored));
    int counts = binary(g, "Sub", number(g, 1), cast(g, left_out, DTYPE_F32));
    int each = graph_node(g, "ReduceMean", NULL, INPUTS(log_prob),
                          ATTRS(attr_ints("axes", 1, &classes), attr_int("keepdims", 0)));
    return unary(g, "Neg", weighted_mean_of(g, each, counts));
}

int cross_entropy(struct graph *g, int logits, int labels, double smoothing, int64_t ignored)
{
    int64_t classes = dim_of(g, logits, -1), all = -1;
    int rows = reshape(g, logits, 2, (const int64_t[]){-1, classes});
    int flat = reshape(g, labels, 1, &all), out[2];
    struct attr attrs[] = {attr_string("reduction", "mean"), attr_int("ignore_index", ignored)};
    if (graph_node_many(g, "SoftmaxCrossEntropyLoss", NULL, INPUTS(rows, flat),
                        ignored == COUNT_ALL ? 1 : 2, attrs, smoothing > 0 ? 2 : 1,
                        out) != STATUS_OK)
        return NONE;
    if (!(smoothing > 0))
        return out[0];
    int common = mul(g, common_part(g, out[1], flat, ignored), number(g, smoothing));
    return add(g, mul(g, out[0], number(g, 1 - smoothing)), common);
}

int binary_cross_entropy_of_each(struct graph *g, int logits, int targets)
{
    return binary(g, "Sub", unary(g, "Softplus", logits), mul(g, logits, targets));
}

int binary_cross_entropy_with_logits(struct graph *g, int logits, int targets)
{
    return mean_of(g, binary_cross_entropy_of_each(g, logits, targets));
}

void learn_yes_or_no(struct graph *g, int log_odds, const char *answer)
{
    int targets = graph_input(g, answer, DTYPE_F32, shape_of(dim_of(g, log_odds, 0), 1),
                              (struct fill){.kind = FILL_INDEX, .a = 0, .b = 2});
    graph_output(g, binary_cross_entropy_with_logits(g, log_odds, targets));
    graph_rename(g, log_odds, "log_odds");
    graph_output(g, log_odds);
}

int mean_squared_error(struct graph *g, int x, int targets)
{
    int error = binary(g, "Sub", x, targets);
    return mean_of(g, mul(g, error, error));
}

/* With m = min(d, beta): m (d - m / 2) / beta. */
int smooth_l1_of_each(struct graph *g, int x, int targets, double beta)
{
    int d = unary(g, "Abs", binary(g, "Sub", x, targets));
    int m = binary(g, "Min", d, number(g, beta));
    int rest = binary(g, "Sub", d, mul(g, m, number(g, 0.5)));
    return mul(g, mul(g, m, rest), number(g, 1 / beta));
}
