/* SPDX-License-Identifier: Apache-2.0
 *
 * Pre-norm layers: x += attention(norm(x)); x += ffn(norm(x)). Norms are of the root of the mean
 * square; positions turn queries and keys (Su et al., 2021); several heads of queries share one of
 * keys and values (Ainslie et al., 2023); ffn is (silu(x G) * (x U)) D (Shazeer, 2020), or the
 * weighted sum of a few of many such nets, which each token chooses (Shazeer et al., 2017). No
 * layer has a bias. Weights are drawn so that activations keep their size through all layers. */
#include "workloads/lib/decoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "workloads/lib/layers.h"
#include "workloads/lib/limits.h"

enum { BLOCK = 32 }; /* of quantised weights */
/* Deviation of the numbers by which experts are chosen: so large that the last one chosen and the
 * first one not are rarely near a tie. */
static const double router_gain = 2;

const char *const decoder_phases[] = {"decode", "prefill", NULL};
const char *const decoder_weights[] = {"floats", "i8", "i4", NULL};
const char *const decoder_weights_of_experts[] = {"floats", NULL};

struct text {
    const struct decoder *d;
    int64_t batch, layers, vocabulary;
    int64_t context; /* tokens before the one that is next; of a prompt: all */
    bool decodes;
    int bits; /* of a weight; 0: they are floats */
    enum dtype cache;
    int positions, at; /* values: [N, tokens]; of the caches' new rows, [N] */
    int cosines, sines;
};

static int64_t tokens_of(const struct text *t)
{
    return t->decodes ? 1 : t->context;
}

/* ---- rotations ---- */

/* 2 pi / the wavelength of pair i. What Llama 3.1 stretches are waves that do not fit into the
 * 8192 tokens which it first learned from four times, in full those that do not fit once. */
static double frequency(const struct decoder *d, int64_t i)
{
    double frequency = pow(d->theta, -2.0 * (double)i / (double)d->head_size);
    if (d->stretch == 0)
        return frequency;
    double fits = 8192 * frequency / (2 * acos(-1));
    double kept = fmin(fmax((fits - 1) / (4 - 1), 0), 1);
    return (1 - kept) * frequency / d->stretch + kept * frequency;
}

/* Cosines or sines of all positions, [positions, D/2]. */
static int rotations(struct graph *g, const struct text *t, const char *name,
                     double (*of)(double angle))
{
    int64_t rows = t->context + t->decodes, pairs = t->d->head_size / 2;
    float *data = malloc((size_t)(rows * pairs) * sizeof(*data));
    if (!data) {
        FAIL_NO_MEMORY(&g->err);
        g->failed = true;
        return NONE;
    }
    for (int64_t k = 0; k < rows * pairs; k++)
        data[k] = (float)of((double)(k / pairs) * frequency(t->d, k % pairs));
    int v = graph_const(g, name, DTYPE_F32, shape_of(rows, pairs), data);
    free(data);
    return v;
}

/* The one position of a token, or those of a prompt. */
static bool place(struct graph *g, struct text *t)
{
    t->cosines = rotations(g, t, "cosines", cos);
    t->sines = rotations(g, t, "sines", sin);
    if (t->decodes) {
        struct fill fill = {.kind = FILL_CONST, .a = (double)t->context};
        t->at = graph_input(g, "position", DTYPE_I64, shape_of(t->batch), fill);
        t->positions = reshape(g, t->at, 2, (int64_t[]){t->batch, 1});
        return !g->failed;
    }
    int64_t count = t->batch * t->context, *all = malloc((size_t)count * sizeof(*all));
    for (int64_t k = 0; all && k < count; k++)
        all[k] = k % t->context;
    if (!all)
        FAIL_NO_MEMORY(&g->err);
    else
        t->positions = graph_const(g, "positions", DTYPE_I64, shape_of(t->batch, t->context), all);
    g->failed = g->failed || !all;
    free(all);
    return !g->failed;
}

/* ---- layers ---- */

static int weight(struct graph *g, const char *name, struct shape shape, double bound)
{
    struct fill fill = {.kind = FILL_UNIFORM, .a = -bound, .b = bound};
    return graph_param(g, name_of(g, "%s.weight", name), DTYPE_F32, shape, fill);
}

/* Rows of weights in blocks, as engine/ops/lib/block_codes.h has them. */
struct codes {
    int bits;
    int64_t rows, in;
    int codes, scales; /* values */
};

/* Codes are drawn evenly on both sides of the middle, so that weights have no mean; the factors
 * bring them to the size of floats that are uniform up to `bound`. */
static struct codes draw_codes(struct graph *g, const char *name, int bits, int64_t rows,
                               int64_t in, double bound)
{
    int64_t blocks = in / BLOCK;
    int most = (1 << (bits - 1)) - 1; /* away from the middle, each way */
    double deviation = sqrt(most * (most + 1.0) / 3), factor = bound / sqrt(3) / deviation;
    struct fill nibbles = {.kind = FILL_NIBBLES, .a = 1, .b = 16};
    struct fill bytes = {.kind = FILL_INDEX, .a = 1, .b = 256};
    struct fill factors = {.kind = FILL_UNIFORM, .a = 0.8 * factor, .b = 1.2 * factor};
    return (struct codes){.bits = bits,
                          .rows = rows,
                          .in = in,
                          .codes = graph_param(g, name_of(g, "%s.codes", name), DTYPE_U8,
                                               shape_of(rows, blocks, BLOCK * bits / 8),
                                               bits == 4 ? nibbles : bytes),
                          .scales = graph_param(g, name_of(g, "%s.scales", name), DTYPE_F32,
                                                shape_of(rows, blocks), factors)};
}

/* x [..., in] times the rows. */
static int multiply_codes(struct graph *g, int x, const char *name, const struct codes *c)
{
    return graph_node(g, "MatMulNBits", name, INPUTS(x, c->codes, c->scales),
                      ATTRS(attr_int("K", c->in), attr_int("N", c->rows), attr_int("bits", c->bits),
                            attr_int("block_size", BLOCK)));
}

/* x [..., K] times weights [K, out]; what comes out is as large as what goes in, times gain. */
static int linear(struct graph *g, int x, const char *name, int64_t out, double gain,
                  const struct text *t)
{
    int64_t in = dim_of(g, x, -1);
    double bound = gain * sqrt(3 / (double)in);
    if (t->bits) {
        struct codes codes = draw_codes(g, name, t->bits, out, in, bound);
        return multiply_codes(g, x, name, &codes);
    }
    int w = weight(g, name, shape_of(in, out), bound);
    return graph_node(g, "MatMul", name, INPUTS(x, w), NO_ATTRS);
}

static int norm(struct graph *g, int x, const char *name, const struct decoder *d)
{
    struct fill fill = {.kind = FILL_UNIFORM, .a = 0.8, .b = 1.2};
    int scale =
        graph_param(g, name_of(g, "%s.weight", name), DTYPE_F32, shape_of(dim_of(g, x, -1)), fill);
    return graph_node(g, "RMSNormalization", name, INPUTS(x, scale),
                      ATTRS(attr_int("axis", -1), attr_float("epsilon", d->epsilon)));
}

/* Queries or keys, turned by their positions; `heads` of them lie side by side. */
static int placed(struct graph *g, int x, const char *name, int64_t heads, const struct text *t)
{
    const struct decoder *d = t->d;
    int64_t tokens = tokens_of(t);
    if (d->norms_heads) {
        x = reshape(g, x, 4, (int64_t[]){t->batch, tokens, heads, d->head_size});
        x = norm(g, x, name_of(g, "%s.norm", name), d);
        x = reshape(g, x, 3, (int64_t[]){t->batch, tokens, heads * d->head_size});
    }
    return graph_node(g, "RotaryEmbedding", name_of(g, "%s.rotary", name),
                      INPUTS(x, t->cosines, t->sines, t->positions),
                      ATTRS(attr_int("num_heads", heads)));
}

/* The cache of the keys or values x of a prompt, for what is decoded after it: [N, heads, tokens,
 * D], so that each head's lie in one run. */
static void fill_cache(struct graph *g, int x, const char *name, const struct text *t)
{
    const struct decoder *d = t->d;
    x = reshape(g, x, 4, (int64_t[]){t->batch, t->context, d->kv_heads, d->head_size});
    x = transpose(g, x, 4, (int64_t[]){0, 2, 1, 3});
    x = t->cache == DTYPE_F32 ? x : cast(g, x, t->cache);
    graph_rename(g, x, name);
    graph_output(g, x);
}

/* The keys or values x of a token join those of the cache, which is a state; returns all of them,
 * each head by itself: [N heads, tokens, D]. */
static int cached(struct graph *g, int x, const char *name, const struct text *t)
{
    const struct decoder *d = t->d;
    int64_t tokens = t->context + 1;
    struct shape shape = shape_of(t->batch, d->kv_heads, tokens, d->head_size);
    struct fill fill = {.kind = FILL_NORMAL, .a = 0, .b = 1};
    x = t->cache == DTYPE_F32 ? x : cast(g, x, t->cache);
    x = reshape(g, x, 4, (int64_t[]){t->batch, d->kv_heads, 1, d->head_size});
    int before = graph_state(g, name, t->cache, shape, fill);
    x = graph_node(g, "TensorScatter", name_of(g, "%s.next", name), INPUTS(before, x, t->at),
                   NO_ATTRS);
    graph_state_after(g, before, x);
    x = reshape(g, x, 3, (int64_t[]){t->batch * d->kv_heads, tokens, d->head_size});
    return t->cache == DTYPE_F32 ? x : cast(g, x, DTYPE_F32);
}

static int attend(struct graph *g, const char *name, const int *qkv, int64_t heads,
                  int64_t kv_heads)
{
    return graph_node(
        g, "Attention", name, 3, qkv,
        ATTRS(attr_int("heads", heads), attr_int("kv_heads", kv_heads), attr_int("causal", 1)));
}

/* Of a token: each head of keys and values is attended to as if it were a text of its own. */
static int attend_to_cache(struct graph *g, const char *name, int q, int k, int v,
                           const struct text *t)
{
    const struct decoder *d = t->d;
    int64_t group = d->heads / d->kv_heads;
    k = cached(g, k, name_of(g, "%s.keys", name), t);
    v = cached(g, v, name_of(g, "%s.values", name), t);
    q = reshape(g, q, 3, (int64_t[]){t->batch * d->kv_heads, 1, group * d->head_size});
    int x = attend(g, name, (int[]){q, k, v}, group, 1);
    return reshape(g, x, 3, (int64_t[]){t->batch, 1, d->heads * d->head_size});
}

static int attend_to_prompt(struct graph *g, const char *name, int q, int k, int v,
                            const struct text *t)
{
    fill_cache(g, k, name_of(g, "%s.keys", name), t);
    fill_cache(g, v, name_of(g, "%s.values", name), t);
    return attend(g, name, (int[]){q, k, v}, t->d->heads, t->d->kv_heads);
}

static int attention(struct graph *g, int x, const char *name, const struct text *t)
{
    const struct decoder *d = t->d;
    int64_t wide = d->heads * d->head_size, narrow = d->kv_heads * d->head_size;
    const char *query = name_of(g, "%s.query", name), *key = name_of(g, "%s.key", name);
    int q = placed(g, linear(g, x, query, wide, 1, t), query, d->heads, t);
    int k = placed(g, linear(g, x, key, narrow, 1, t), key, d->kv_heads, t);
    int v = linear(g, x, name_of(g, "%s.value", name), narrow, 1, t);
    x = t->decodes ? attend_to_cache(g, name, q, k, v, t) : attend_to_prompt(g, name, q, k, v, t);
    return linear(g, x, name_of(g, "%s.output", name), d->width, 1 / sqrt(2 * (double)t->layers),
                  t);
}

static int feed_forward(struct graph *g, int x, const char *name, const struct text *t)
{
    const struct decoder *d = t->d;
    int gate = linear(g, x, name_of(g, "%s.gate", name), d->inner, 1, t);
    int up = linear(g, x, name_of(g, "%s.up", name), d->inner, 1, t);
    x = mul(g, mul(g, gate, sigmoid(g, gate)), up);
    return linear(g, x, name_of(g, "%s.down", name), d->width, 1 / sqrt(2 * (double)t->layers), t);
}

/* ---- experts ---- */

/* Which rows of tokens go to which expert: results of ExpertSort, and each place's weight. */
struct routes {
    int order, offsets, weights;
};

/* The likeliest experts of each token of x [T, width], and their shares, which add up to 1. */
static struct routes choose_experts(struct graph *g, int x, const char *name, const struct text *t)
{
    const struct decoder *d = t->d;
    int top[2] = {NONE, NONE}, sorted[2] = {NONE, NONE};
    int scores = linear(g, x, name_of(g, "%s.router", name), d->experts, router_gain, t);
    int chosen = graph_const_i64(g, 1, &d->chosen), axis = graph_const_i64(g, 1, (int64_t[]){1});
    graph_node_many(g, "TopK", name_of(g, "%s.choice", name), INPUTS(softmax(g, scores, 1), chosen),
                    NO_ATTRS, 2, top);
    graph_node_many(g, "ExpertSort", name_of(g, "%s.sort", name), INPUTS(top[1]),
                    ATTRS(attr_int("experts", d->experts)), 2, sorted);
    int sum = graph_node(g, "ReduceSum", name_of(g, "%s.sum", name), INPUTS(top[0], axis),
                         ATTRS(attr_int("keepdims", 1)));
    return (struct routes){sorted[0], sorted[1], binary(g, "Div", top[0], sum)};
}

/* x times weights [experts, K, out]. order: x is tokens, whose rows it lists; NONE: x lies sorted
 * by expert. */
static int linear_by_expert(struct graph *g, int x, const char *name, int64_t out, int offsets,
                            int order, const struct text *t)
{
    int64_t in = dim_of(g, x, -1);
    double gain = order == NONE ? 1 / sqrt(2 * (double)t->layers) : 1;
    int w = weight(g, name, shape_of(t->d->experts, in, out), gain * sqrt(3 / (double)in));
    return graph_node(g, "GroupedMatMul", name, INPUTS(x, w, offsets, order),
                      ATTRS(attr_int("chosen", t->d->chosen)));
}

static int mixture(struct graph *g, int x, const char *name, const struct text *t)
{
    const struct decoder *d = t->d;
    int64_t tokens = tokens_of(t);
    x = reshape(g, x, 2, (int64_t[]){t->batch * tokens, d->width});
    struct routes r = choose_experts(g, x, name, t);
    int gate = linear_by_expert(g, x, name_of(g, "%s.gate", name), d->inner, r.offsets, r.order, t);
    int up = linear_by_expert(g, x, name_of(g, "%s.up", name), d->inner, r.offsets, r.order, t);
    x = mul(g, mul(g, gate, sigmoid(g, gate)), up);
    x = linear_by_expert(g, x, name_of(g, "%s.down", name), d->width, r.offsets, NONE, t);
    x = graph_node(g, "ExpertCombine", name_of(g, "%s.combine", name),
                   INPUTS(x, r.order, r.weights), NO_ATTRS);
    return reshape(g, x, 3, (int64_t[]){t->batch, tokens, d->width});
}

static int layer(struct graph *g, int x, const char *name, const struct text *t)
{
    int y = norm(g, x, name_of(g, "%s.attention.norm", name), t->d);
    x = add(g, x, attention(g, y, name_of(g, "%s.attention", name), t));
    y = norm(g, x, name_of(g, "%s.mlp.norm", name), t->d);
    name = name_of(g, "%s.mlp", name);
    return add(g, x, t->d->experts ? mixture(g, y, name, t) : feed_forward(g, y, name, t));
}

/* ---- the network ---- */

/* A row for each word, that it begins as or that is compared with what comes out. */
struct table {
    int floats;         /* a value; NONE: */
    struct codes codes; /* they are quantised */
};

static struct table draw_table(struct graph *g, const char *name, const struct text *t)
{
    double bound = sqrt(3 / (double)t->d->width);
    if (t->bits)
        return (struct table){.floats = NONE,
                              .codes =
                                  draw_codes(g, name, t->bits, t->vocabulary, t->d->width, bound)};
    return (struct table){.floats = weight(g, name, shape_of(t->vocabulary, t->d->width), bound)};
}

static int look_up(struct graph *g, const struct table *table, int ids)
{
    const struct codes *c = &table->codes;
    if (table->floats != NONE)
        return gather(g, table->floats, ids, 0);
    int rows = reshape(g, c->codes, 2, (int64_t[]){c->rows, c->in * c->bits / 8});
    return graph_node(g, "GatherBlockQuantized", "embedding", INPUTS(rows, ids, c->scales),
                      ATTRS(attr_int("bits", c->bits), attr_int("block_size", BLOCK),
                            attr_int("gather_axis", 0), attr_int("quantize_axis", 1)));
}

/* The likeliest token after x [N, width], and the logits of all. */
static void choose(struct graph *g, int x, const struct table *table)
{
    int logits = table->floats == NONE ? multiply_codes(g, x, "head", &table->codes)
                                       : graph_node(g, "Gemm", "head", INPUTS(x, table->floats),
                                                    ATTRS(attr_int("transB", 1)));
    int token = graph_node(g, "ArgMax", "choice", INPUTS(logits),
                           ATTRS(attr_int("axis", 1), attr_int("keepdims", 0)));
    graph_rename(g, logits, "logits");
    graph_rename(g, token, "token");
    graph_output(g, token);
    graph_output(g, logits);
}

static void network(struct graph *g, struct text *t)
{
    const struct decoder *d = t->d;
    struct fill words = {.kind = FILL_ZIPF, .a = 0, .b = (double)t->vocabulary};
    int ids = graph_input(g, "tokens", DTYPE_I64, shape_of(t->batch, tokens_of(t)), words);
    struct table table = draw_table(g, "embedding", t);
    int x = look_up(g, &table, ids);
    if (!place(g, t))
        return;
    for (int64_t k = 0; k < t->layers; k++)
        x = layer(g, x, name_of(g, "layer%d", (int)k), t);
    int64_t last = tokens_of(t) - 1;
    x = slice(g, x, (struct range){.axis = 1, .start = last, .stop = last + 1});
    x = norm(g, reshape(g, x, 2, (int64_t[]){t->batch, d->width}), "norm", d);
    table = d->tied ? table : draw_table(g, "head", t);
    choose(g, x, &table);
}

void decoder_build(struct graph *g, const struct workload_config *config,
                   const struct decoder *sizes)
{
    const char *size = config_text(config, "size"), *weights = config_text(config, "weights");
    struct text t = {.d = sizes,
                     .batch = config->batch,
                     .context = config_int(config, "context"),
                     .decodes = strcmp(config_text(config, "phase"), "decode") == 0,
                     .bits = strcmp(weights, "i4") == 0   ? 4
                             : strcmp(weights, "i8") == 0 ? 8
                                                          : 0,
                     .cache = config->precision == PRECISION_BF16 ? DTYPE_BF16 : DTYPE_F32};
    while (t.d->size && strcmp(t.d->size, size) != 0)
        t.d++;
    int64_t depth = config_int(config, "depth"), words = config_int(config, "vocabulary");
    t.layers = depth ? depth : t.d->layers;
    t.vocabulary = words ? words : t.d->vocabulary;
    if (at_most(g, "depth", t.layers, t.d->layers) &&
        at_most(g, "vocabulary", t.vocabulary, t.d->vocabulary) &&
        at_most(g, "context", t.context, t.d->positions - t.decodes))
        network(g, &t);
}
