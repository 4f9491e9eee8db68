/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/detector_loss.h"

#include "workloads/lib/layers.h"
#include "workloads/lib/losses.h"

int class_losses(struct graph *g, int logits, int classes)
{
    int64_t n = dim_of(g, logits, 0), places = dim_of(g, logits, 1), all = n * places;
    int rows = reshape(g, logits, 2, (const int64_t[]){all, dim_of(g, logits, 2)});
    int losses =
        graph_node(g, "SoftmaxCrossEntropyLoss", NULL, INPUTS(rows, reshape(g, classes, 1, &all)),
                   ATTRS(attr_string("reduction", "none"), attr_int("ignore_index", -1)));
    return reshape(g, losses, 2, (const int64_t[]){n, places});
}

int sum_of_hard(struct graph *g, int losses, int classes, double ratio)
{
    int flags = graph_node(g, "HardNegatives", NULL, INPUTS(losses, classes),
                           ATTRS(attr_float("ratio", ratio)));
    int zero = graph_const_f32(g, 0);
    return sum_of(g, graph_node(g, "Where", NULL, INPUTS(flags, losses, zero), NO_ATTRS));
}

int is_positive(struct graph *g, int classes)
{
    int zero = graph_const_i64(g, -1, (const int64_t[]){0});
    return cast(g, binary(g, "Greater", classes, zero), DTYPE_F32);
}

int place_loss(struct graph *g, int said, int offsets, int positive)
{
    const int64_t column[] = {dim_of(g, said, 0), dim_of(g, said, 1), 1};
    int apart = smooth_l1_of_each(g, said, offsets, 1);
    return sum_of(g, mul(g, apart, reshape(g, positive, 3, column)));
}
