/* SPDX-License-Identifier: Apache-2.0
 *
 * GCN: Kipf and Welling, "Semi-Supervised Classification with Graph Convolutional Networks", ICLR
 * 2017: papers are sorted into subjects by their words and by whom they cite. The whole graph is
 * one input, so there is no batch. Words and links are sparse matrices (SpMM).
 *
 * It learns the subjects of half of the papers, and is judged by the other half. */
#include <string.h>

#include "base/numbers/random.h"
#include "base/system/hash.h"
#include "workloads/data/cora.h"
#include "workloads/lib/citation_subjects.h"
#include "workloads/lib/citations.h"
#include "workloads/lib/layers.h"
#include "workloads/training.h"

enum { HIDDEN = 16 };

static const char *const sets[] = {"cora", "citeseer", "pubmed", NULL};
static const struct param params[] = {
    {"dataset", "cora", sets, "whose numbers of papers, words and links the graph has"},
    {"data", "made", param_text, "\"made\", or a folder with DATASET.content and DATASET.cites"},
    {.name = NULL},
};

/* Entries of the adjacency matrix: two per link and one per paper. */
static const struct citations_size sizes[] = {
    {2708, 1433, 7, 49216, (13264 - 2708) / 2},
    {3327, 3703, 6, 105165, (12431 - 3327) / 2},
    {19717, 500, 3, 988031, (108365 - 19717) / 2},
};

struct sparse {
    int values, columns, offsets;
};

static struct sparse constants(struct graph *g, const char *name, const struct csr *m)
{
    return (struct sparse){.values = graph_const(g, name_of(g, "%s.values", name), DTYPE_F32,
                                                 shape_of(m->entries), m->value),
                           .columns = graph_const(g, name_of(g, "%s.columns", name), DTYPE_I32,
                                                  shape_of(m->entries), m->column),
                           .offsets = graph_const(g, name_of(g, "%s.offsets", name), DTYPE_I32,
                                                  shape_of(m->rows + 1), m->offsets)};
}

static int times(struct graph *g, const char *name, const struct sparse *a, int b)
{
    return graph_node(g, "SpMM", name, INPUTS(a->values, a->columns, a->offsets, b), NO_ATTRS);
}

/* Wider than Glorot's: rows are means of many words and papers, and classes should differ. */
static int weight(struct graph *g, const char *name, int64_t in, int64_t out)
{
    return graph_param(g, name, DTYPE_F32, shape_of(in, out),
                       (struct fill){.kind = FILL_UNIFORM, .a = -1, .b = 1});
}

static int mean(struct graph *g, int x, const char *name)
{
    int y = graph_node(g, "ReduceMean", NULL, INPUTS(x), ATTRS(attr_int("keepdims", 0)));
    graph_rename(g, y, name);
    graph_output(g, y);
    return y;
}

static int input_of(struct graph *g, const char *name, struct shape shape, enum dtype dtype,
                    const void *data)
{
    int x = graph_input(g, name, dtype, shape, (struct fill){.kind = FILL_NONE});
    if (x != NONE)
        g->values[x].data = data;
    return x;
}

/* ---- where the graph comes from ---- */

static enum status make(struct graph *g, const char *set, struct cora *c, struct error *err)
{
    int which = 0;
    while (sets[which] && strcmp(sets[which], set) != 0)
        which++;
    if (!sets[which]) /* a choice is one of these */
        return FAIL(err, STATUS_INVALID, "no data set \"%s\"", set);
    c->size = sizes[which];
    return citations_make(&g->arena, &c->size, &c->words, &c->adjacency) ? STATUS_OK
                                                                         : FAIL_NO_MEMORY(err);
}

/* False: an error is in the graph. Subjects are NULL where they are made by chance. */
static bool citations_of(struct graph *g, const struct workload_config *config, struct cora *c)
{
    const char *data = config_text(config, "data"), *set = config_text(config, "dataset");
    *c = (struct cora){.subjects = NULL};
    enum status status = strcmp(data, "made") == 0 ? make(g, set, c, &g->err)
                                                   : cora_load(&g->arena, data, set, c, &g->err);
    g->failed = status != STATUS_OK;
    return !g->failed;
}

/* ---- the network ---- */

/* Cross-entropy and accuracy over the papers whose subject is known: all papers of files. */
static void judge(struct graph *g, int logits, const struct cora *c)
{
    struct fill subject = {.kind = FILL_INDEX, .a = 0, .b = c->size.classes};
    struct fill known = {.kind = FILL_INDEX, .a = 0, .b = 2};
    int labels, mask;
    if (c->subjects) {
        int32_t *all = arena_array(&g->arena, (size_t)c->size.papers, sizeof(*all));
        if (all)
            for (int32_t k = 0; k < c->size.papers; k++)
                all[k] = 1;
        labels = input_of(g, "labels", shape_of(c->size.papers), DTYPE_I64, c->subjects);
        mask = input_of(g, "known", shape_of(c->size.papers), DTYPE_I32, all);
    } else {
        labels = graph_input(g, "labels", DTYPE_I64, shape_of(c->size.papers), subject);
        mask = graph_input(g, "known", DTYPE_I32, shape_of(c->size.papers), known);
    }
    mask = cast(g, mask, DTYPE_F32);
    int share = graph_node(g, "ReduceMean", NULL, INPUTS(mask), ATTRS(attr_int("keepdims", 0)));
    mask = graph_node(g, "Div", NULL, INPUTS(mask, share), NO_ATTRS);

    int loss = graph_node(g, "SoftmaxCrossEntropyLoss", NULL, INPUTS(logits, labels),
                          ATTRS(attr_string("reduction", "none")));
    mean(g, mul(g, loss, mask), "loss");
    int best = graph_node(g, "ArgMax", NULL, INPUTS(logits),
                          ATTRS(attr_int("axis", 1), attr_int("keepdims", 0)));
    int right = cast(g, graph_node(g, "Equal", NULL, INPUTS(best, labels), NO_ATTRS), DTYPE_F32);
    mean(g, mul(g, right, mask), "accuracy");
}

/* Logits of the subjects, [papers, classes]; NONE: an error is in the graph. */
static int network(struct graph *g, const struct workload_config *config, struct cora *from)
{
    struct cora c;
    g->batch = 1; /* one graph of citations */
    if (!citations_of(g, config, &c))
        return NONE;
    *from = c;
    struct sparse words = constants(g, "words", &c.words);
    struct sparse adjacency = constants(g, "adjacency", &c.adjacency);
    /* The one thing that may change from run to run: how much each word counts. */
    words.values = input_of(g, "word_weights", shape_of(c.words.entries), DTYPE_F32, c.words.value);

    int x = times(g, "words_w0", &words, weight(g, "w0", c.size.words, HIDDEN));
    int hidden = relu(g, times(g, "layer1", &adjacency, x));
    x = graph_node(g, "MatMul", "hidden_w1",
                   INPUTS(hidden, weight(g, "w1", HIDDEN, c.size.classes)), NO_ATTRS);
    return times(g, "layer2", &adjacency, x);
}

static void build(struct graph *g, const struct workload_config *config)
{
    struct cora c;
    int logits = network(g, config, &c);
    if (logits == NONE)
        return;
    int subjects = graph_node(g, "Softmax", NULL, INPUTS(logits), ATTRS(attr_int("axis", 1)));
    graph_rename(g, subjects, "subject_probability");
    graph_output(g, subjects);
    judge(g, logits, &c);
}

/* ---- training ---- */

static void build_loss(struct graph *g, const struct workload_config *config)
{
    struct cora c;
    int logits = network(g, config, &c);
    if (logits != NONE)
        judge(g, logits, &c);
}

/* Subjects of files stay as they are. */
static void fill(const struct batch *batch)
{
    const struct graph *g = batch->graph;
    const struct value *labels = &g->values[graph_find_value(g, "labels")];
    int64_t *subject = batch_input(batch, "labels"), papers = labels->shape.dim[0];
    int32_t *known = batch_input(batch, "known");
    for (int64_t p = 0; p < papers; p++) {
        bool is_given = random_uniform(hash_fnv1a("given"), (uint64_t)p) < 0.5;
        known[p] = is_given != batch->held_out;
    }
    if (labels->fill.kind == FILL_INDEX)
        citation_subjects(g, papers, (int64_t)labels->fill.b, subject);
}

static const struct recipe_group groups[] = {{.weights = "w1"}, {.weights = NULL}};

static const struct recipe recipe = {
    .optimiser = "adam",
    .decay = 5e-4,
    .groups = groups, /* the second layer does not decay */
    .schedule = {.kind = SCHEDULE_CONSTANT, .rate = 0.01, .steps = 200},
    .source = "Kipf and Welling, ICLR 2017; AI Matrix GCN",
};

static const struct training training = {
    .build = build_loss,
    .recipe = &recipe,
    .fill = fill,
    .quality = &quality_share,
    .answers = "accuracy",
    .targets = "labels",
    .lesson = "subjects of papers, by the hidden subjects of common words in them and in papers "
              "around them",
    .tiny_batch = 1,
    .tiny_rate = 0.05,
    .tiny_steps = 200,
};

REGISTER(workload, gcn) = {
    .name = "gcn",
    .domain = "recommendation",
    .task = "classification of the nodes of a graph",
    .summary = "two graph convolutions over a citation graph of the size of Cora",
    .source = "Kipf and Welling, ICLR 2017; AI Matrix GCN",
    .params = params,
    .table1_batch = 1,
    .batch = 1,
    .batch_is_one = true,
    .build = build,
    .training = &training,
};
