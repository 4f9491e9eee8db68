/* SPDX-License-Identifier: Apache-2.0
 *
 * What ranks have synchronised is what one rank computes: in double, the loss of a network whose
 * statistics are means over ranks, here one, is that of the network as it was. Ranks of equal
 * batches have equal parts in those means, so what differs between them in f32 is rounding. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/reference/reference.h"
#include "engine/train/sync_norm.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/training.h"
#include "workloads/workload.h"

static struct graph *loss_graph(const char *name, int64_t batch)
{
    struct graph *g;
    const struct training *training;
    char spec[256];
    const char *tiny = workload_of(name)->training->tiny;
    snprintf(spec, sizeof(spec), "%s%s%s", name, tiny ? ":" : "", tiny ? tiny : "");
    MUST(workload_open_loss, spec, batch, &g, &training);
    return g;
}

static double loss_of(const struct graph *g)
{
    struct ref_tensor *outputs = calloc((size_t)g->output_count, sizeof(*outputs));
    assert_non_null(outputs);
    MUST(reference_run, g, NULL, outputs, NULL);
    double loss = outputs[0].f[0];
    for (int k = 0; k < g->output_count; k++)
        ref_release(&outputs[k]);
    free(outputs);
    return loss;
}

static void assert_same_loss(const char *name, int64_t batch, int exchanges_least)
{
    struct graph *g = loss_graph(name, batch);
    double plain = loss_of(g);
    MUST(synchronise_batch_norms, g, 1);
    assert_true(count_ops(g, op_all_reduce.name) >= exchanges_least);
    double synchronised = loss_of(g);
    if (!(fabs(synchronised - plain) <= 1e-12 * fabs(plain)))
        fail_msg("%s: %.17g instead of %.17g", name, synchronised, plain);
    graph_free(g);
}

TEST(a_loss_by_synchronised_statistics_is_the_same)
{
    assert_same_loss("resnet50", 4, 100);
    assert_same_loss("din", 8, 1);
    assert_same_loss("dien", 8, 4); /* two Dice, of a mean and a deviation each */
}
