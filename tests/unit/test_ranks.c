/* SPDX-License-Identifier: Apache-2.0
 * Processes that make a step of training together. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "collective/comm_thread.h"
#include "collective/communicator.h"
#include "collective/local_ranks.h"
#include "engine/compile/compile.h"
#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/train/train.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/training.h"

enum { RANKS = 3 };

/* Gradients of a tiny network with batch normalisation: each rank's own, and their sum. */
struct many {
    const char *spec;
    int64_t batch, elements;
    bool fixed_norms; /* batch normalisation by fixed statistics */
    float *memory;    /* shared: for each rank its own gradients, then what came of the reduction */
};

static float *part_of(const struct many *many, int rank, int which)
{
    return many->memory + (rank * 2 + which) * many->elements;
}

/* Made-up text has as many words as are asked for; of real text there may be too few. */
static void leave_words_out(const struct batch *batch)
{
    int32_t *words = batch_input(batch, "masked_words");
    int64_t asked =
        words ? batch->graph->values[graph_find_value(batch->graph, "masked_words")].shape.dim[1]
              : 0;
    for (int64_t n = 0; n < batch->size; n++)
        for (int64_t k = (batch->first + n) / 2 % (asked + 1); k < asked; k++)
            words[n * asked + k] = -1;
}

/* By the running statistics, which the batch goes on changing. */
static void fix_norms(struct graph *g)
{
    int count = g->node_count;
    for (int n = 0; n < count; n++) {
        const struct node node = g->nodes[n];
        const int *in = node.inputs;
        if (node.op != &op_batch_normalization)
            continue;
        int y = graph_node(g, node.op->name, NULL, INPUTS(in[0], in[1], in[2], in[3], in[4]),
                           ATTRS(attr_float("epsilon", node_float(&node, "epsilon", 1e-5))));
        rewrite_replace(g, node.outputs[0], y);
    }
    MUST(graph_failed, g);
    graph_compact(g);
}

/* Runs a step with a rank's samples and copies the gradients; gives how many elements they have. */
static enum status gradients(const struct many *many, struct comm *comm, int rank, float *to,
                             int64_t *elements, struct error *err)
{
    const struct training *training;
    struct graph *g;
    struct exe *exe = NULL;
    struct train_options options = {.gradients_as_outputs = true,
                                    .ranks = comm ? comm->ranks : 1,
                                    .rank = comm ? comm->rank : 0,
                                    .unit_bytes = 1 << 14};
    struct exe_options how = {.threads = 1, .no_tune = true, .comm = comm};
    TRY(workload_open_loss(many->spec, many->batch, &g, &training, err));
    if (many->fixed_norms)
        fix_norms(g);
    enum status status = train_step(g, training->recipe, &options, err);
    if (status == STATUS_OK)
        status = exe_new(g, &how, &exe, err);
    *elements = 0;
    if (status == STATUS_OK) {
        void **data = calloc((size_t)g->input_count, sizeof(*data));
        assert_non_null(data);
        for (int k = 0; k < g->input_count; k++)
            data[k] = batch_gives(g, k) ? exe_input(exe, k) : NULL;
        struct batch batch = {
            .graph = g, .data = data, .seed = 3, .first = rank * many->batch, .size = many->batch};
        training->fill(&batch);
        leave_words_out(&batch);
        free(data);
        exe_run(exe);
        status = exe_status(exe, err);
    }
    for (int k = 0; status == STATUS_OK && k < g->output_count; k++) {
        const struct value *value = &g->values[g->outputs[k]];
        if (strncmp(value->name, "gradient.", 9) != 0)
            continue;
        int64_t count = shape_count(&value->shape);
        if (to)
            memcpy(to + *elements, exe_output(exe, k), (size_t)count * sizeof(*to));
        *elements += count;
    }
    exe_graph_free(exe, g);
    return status;
}

static enum status one_rank(void *context, struct group *group, int rank, struct error *err)
{
    const struct many *many = context;
    struct communicator_options options = {.algorithm = NULL};
    struct comm base, comm;
    int64_t elements;
    TRY(gradients(many, NULL, rank, part_of(many, rank, 0), &elements, err));
    TRY(communicator_open(backend_find("shm"), group, rank, &options, &base, err));
    TRY(comm_thread_open(&base, &comm, err));
    TRY(gradients(many, &comm, rank, part_of(many, rank, 1), &elements, err));
    comm_thread_close(&comm);
    communicator_close(&base);
    return STATUS_OK;
}

static void open_many(const char *name, int64_t batch, bool fixed_norms, char *spec, size_t size,
                      struct many *many)
{
    const struct workload *w = workload_of(name);
    snprintf(spec, size, "%s:%s", name, w->training->tiny);
    *many = (struct many){.spec = spec, .batch = batch, .fixed_norms = fixed_norms};
    MUST(gradients, many, NULL, 0, NULL, &many->elements);
    size_t bytes = (size_t)many->elements * 2 * RANKS * sizeof(float);
    many->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(many->memory, MAP_FAILED);
    struct local_ranks run = {.backend = backend_find("shm"),
                              .ranks = RANKS,
                              .options = {.deadline_ns = 60000000000u},
                              .body = one_rank,
                              .context = many};
    MUST(local_ranks_run, &run);
}

static void close_many(struct many *many)
{
    munmap(many->memory, (size_t)many->elements * 2 * RANKS * sizeof(float));
}

/* With batch normalisation ranks are no part of a larger batch; but what they reduce is the sum of
 * what each has by itself, and the same bits on all. */
TEST(reduced_gradients_are_the_sum_of_the_ranks_own)
{
    char spec[200];
    struct many many;
    open_many("resnet50", 4, false, spec, sizeof(spec), &many);
    double norm = 0, apart = 0, wrong = 0;
    for (int64_t e = 0; e < many.elements; e++) {
        double sum = 0;
        for (int rank = 0; rank < RANKS; rank++) {
            sum += (double)part_of(&many, rank, 0)[e];
            apart += part_of(&many, rank, 0)[e] != part_of(&many, 0, 0)[e];
            const void *own = &part_of(&many, rank, 1)[e], *first = &part_of(&many, 0, 1)[e];
            if (memcmp(own, first, sizeof(float)) != 0)
                fail_msg("ranks 0 and %d differ in element %lld", rank, (long long)e);
        }
        double error = (double)part_of(&many, 0, 1)[e] - sum;
        norm += sum * sum;
        wrong += error * error;
    }
    assert_true(apart > (double)many.elements); /* their samples differ */
    if (!(sqrt(wrong / norm) < 1e-6))
        fail_msg("the reduced gradients are %.3g off the sum", sqrt(wrong / norm));
    close_many(&many);
}

/* The mean of what ranks reduce against the gradients of one rank that has all samples; both in
 * roots of sums of squares. Normalised by the batch, roundings of Mask R-CNN would become 4e-3. */
static double distance_from_one_rank(const char *name, int64_t batch)
{
    char spec[200];
    struct many many;
    int64_t elements;
    open_many(name, batch, true, spec, sizeof(spec), &many);
    const struct many one = {.spec = spec, .batch = RANKS * batch, .fixed_norms = true};
    float *whole = calloc((size_t)many.elements, sizeof(*whole));
    assert_non_null(whole);
    MUST(gradients, &one, NULL, 0, whole, &elements);
    assert_int_equal(elements, many.elements);
    double norm = 0, wrong = 0;
    for (int64_t e = 0; e < elements; e++) {
        double mean = (double)part_of(&many, 0, 1)[e] / RANKS, is = (double)whole[e];
        norm += is * is;
        wrong += (mean - is) * (mean - is);
    }
    free(whole);
    close_many(&many);
    return sqrt(wrong / norm);
}

/* Words that are asked for, priors that match and cells on text are more on one rank than on
 * another: a mean over all of them is not the mean of the ranks' means. Anchors and regions are
 * drawn by lot: an image draws the same ones wherever it is in the batch of whichever rank. */
TEST(ranks_have_the_gradients_of_one_rank)
{
    static const struct {
        const char *name;
        int64_t batch;
    } rows[] = {
        {"bert_base", 4}, {"ssd300_vgg16", 1}, {"seglink", 1}, {"faster_rcnn", 2}, {"mask_rcnn", 1},
    };
    for (int k = 0; k < ARRAY_COUNT(rows); k++) {
        double distance = distance_from_one_rank(rows[k].name, rows[k].batch);
        if (!(distance < 2e-6))
            fail_msg("%s: gradients of ranks are %.3g off", rows[k].name, distance);
    }
}
