/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights that are quantised while what they are multiplied by is not: a MatMul or Gemm whose right
 * factor is a fixed matrix of small integers behind DequantizeLinear, with factors for blocks along
 * its reduction or for its columns, becomes MatMulNBits, whose kernels read the integers as they
 * are. Of 8 bits only where there are few rows: many would rather have floats, made once. */
#include <stdlib.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/quantize.h"
#include "engine/ops/lib/block_codes.h"

enum { BLOCK = 128 };

struct weights {
    const struct node *source;     /* DequantizeLinear */
    struct quantize_scales scales; /* of it */
    bool turned;                   /* rows of the matrix are columns of the product */
    bool is_signed;
    int64_t n, k;
    int bits;
    int64_t block;
    /* Contents, malloc'd. */
    uint8_t *numbers, *zero_points; /* zero_points NULL: all 0 */
    float *factors;
};

/* ---- what is there ---- */

static void *contents_of(const struct graph *g, int v)
{
    void *data = malloc(value_size(&g->values[v]) + 1);
    if (data)
        value_materialise(&g->values[v], data);
    return data;
}

static bool is_fixed(const struct graph *g, int v, enum dtype dtype)
{
    return value_is_fixed(&g->values[v]) && g->values[v].dtype == dtype;
}

static int zeros_of(const struct node *source)
{
    return source->op_inputs > 2 ? source->inputs[2] : NONE;
}

/* Blocks of DequantizeLinear that are blocks of MatMulNBits, too. */
static bool find_block(struct weights *w)
{
    const struct quantize_scales *s = &w->scales;
    int along = w->turned ? 1 : 0; /* the axis of the reduction */
    w->block = BLOCK;
    if (s->count == 1)
        return true;
    if (!s->block)
        return s->axis != along;
    w->block = s->block;
    return s->axis == along && s->block >= 16 && (s->block & (s->block - 1)) == 0;
}

static bool find_weights(const struct graph *g, const struct node *node, struct weights *w)
{
    struct error ignored;
    const struct node *source = rewrite_producer(g, node->inputs[1], &op_dequantize_linear);
    if (!source || g->values[node->inputs[1]].dtype != DTYPE_F32)
        return false;
    const struct value *matrix = &g->values[source->inputs[0]];
    enum dtype type = matrix->dtype;
    int zeros = zeros_of(source);
    if ((type != DTYPE_I8 && type != DTYPE_U8) || matrix->shape.rank != 2 ||
        !is_fixed(g, source->inputs[0], type) || !is_fixed(g, source->inputs[1], DTYPE_F32) ||
        (zeros != NONE && !is_fixed(g, zeros, type)))
        return false;
    *w = (struct weights){.source = source,
                          .turned = node->op == &op_gemm && node_int(node, "transB", 0),
                          .is_signed = type == DTYPE_I8};
    w->n = matrix->shape.dim[w->turned ? 0 : 1];
    w->k = matrix->shape.dim[w->turned ? 1 : 0];
    const struct shape *factors = &g->values[source->inputs[1]].shape;
    return w->n > 0 && w->k > 0 &&
           quantize_scales_from(source, &matrix->shape, factors, &w->scales, &ignored) ==
               STATUS_OK &&
           find_block(w);
}

/* MatMul, or a Gemm that is one with something added. */
static bool bears(const struct graph *g, const struct node *node)
{
    bool gemm = node->op == &op_gemm;
    if (node->dead || node->post_count || (!gemm && node->op != &op_mat_mul) ||
        g->values[node->inputs[0]].dtype != DTYPE_F32)
        return false;
    return !gemm || (!node_int(node, "transA", 0) && node_float(node, "alpha", 1) == 1 &&
                     node_float(node, "beta", 1) == 1);
}

static void free_contents(struct weights *w)
{
    free(w->numbers);
    free(w->zero_points);
    free(w->factors);
}

static bool read_contents(const struct graph *g, struct weights *w)
{
    int zeros = zeros_of(w->source);
    w->numbers = contents_of(g, w->source->inputs[0]);
    w->factors = contents_of(g, w->source->inputs[1]);
    w->zero_points = zeros == NONE ? NULL : contents_of(g, zeros);
    return w->numbers && w->factors && (zeros == NONE || w->zero_points);
}

/* ---- as codes ---- */

/* Whether 4 bits hold all of them. */
static bool are_narrow(const struct weights *w, const uint8_t *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (w->is_signed ? (int8_t)numbers[i] < -8 || (int8_t)numbers[i] > 7 : numbers[i] > 15)
            return false;
    return true;
}

static int code_of(const struct weights *w, uint8_t number)
{
    int middle = 1 << (w->bits - 1);
    return w->is_signed ? (int8_t)number + middle : number;
}

/* Element k of row n of the codes, in the matrix as it lies. */
static int64_t place_of(const struct weights *w, int64_t n, int64_t k)
{
    return w->turned ? n * w->k + k : k * w->n + n;
}

static void put_code(uint8_t *row, int64_t k, int bits, int code)
{
    if (bits == 8)
        row[k] = (uint8_t)code;
    else
        row[k / 2] |= (uint8_t)(code << 4 * (k & 1));
}

static void fill_row(const struct weights *w, const struct block_codes *c, int64_t n,
                     uint8_t *codes, float *factors, uint8_t *zeros)
{
    for (int64_t k = 0; k < w->k; k++)
        put_code(codes, k, w->bits, code_of(w, w->numbers[place_of(w, n, k)]));
    for (int64_t b = 0; b < c->blocks; b++) {
        int64_t at = quantize_scales_index(&w->scales, place_of(w, n, b * c->block));
        factors[b] = w->factors[at];
        put_code(zeros, b, w->bits, code_of(w, w->zero_points ? w->zero_points[at] : 0));
    }
}

/* A zero in the middle is what MatMulNBits means without any. */
static bool all_in_the_middle(const struct weights *w, const struct block_codes *c)
{
    int64_t count = w->zero_points ? w->scales.count : 1;
    for (int64_t i = 0; i < count; i++)
        if (code_of(w, w->zero_points ? w->zero_points[i] : 0) != c->zero)
            return false;
    return true;
}

/* Inputs 1 to 3 of MatMulNBits. */
static enum status make_codes(struct graph *g, const struct weights *w, int inputs[3],
                              struct block_codes *c, struct error *err)
{
    struct attr attrs[] = {attr_int("bits", w->bits), attr_int("block_size", w->block)};
    struct node form = {.op = &op_mat_mul_n_bits, .attrs = attrs, .attr_count = 2};
    TRY(block_codes_from(&form, w->n, w->k, c, err));
    uint8_t *codes = calloc((size_t)(w->n * c->row_bytes), 1);
    uint8_t *zeros = calloc((size_t)(w->n * c->zero_bytes), 1);
    float *factors = calloc((size_t)(w->n * c->blocks), sizeof(*factors));
    if (!codes || !zeros || !factors) {
        free(codes);
        free(zeros);
        free(factors);
        return FAIL_NO_MEMORY(err);
    }
    for (int64_t n = 0; n < w->n; n++)
        fill_row(w, c, n, codes + n * c->row_bytes, factors + n * c->blocks,
                 zeros + n * c->zero_bytes);
    inputs[0] = rewrite_weight_of(g, NULL, DTYPE_U8,
                                  shape_of(w->n, c->blocks, c->row_bytes / c->blocks), codes);
    inputs[1] = rewrite_weight_of(g, NULL, DTYPE_F32, shape_of(w->n, c->blocks), factors);
    inputs[2] = NONE;
    if (all_in_the_middle(w, c))
        free(zeros);
    else
        inputs[2] = rewrite_weight_of(g, NULL, DTYPE_U8, shape_of(w->n, c->zero_bytes), zeros);
    return g->failed ? graph_check(g, err) : STATUS_OK;
}

/* The node may move when others are made: it is a copy. */
static enum status absorb(struct graph *g, const struct node node, const struct weights *w,
                          struct error *err)
{
    struct block_codes c;
    int made[3];
    TRY(make_codes(g, w, made, &c, err));
    g->phase = node.phase;
    int y = graph_node(g, op_mat_mul_n_bits.name, node.name, made[2] == NONE ? 3 : 4,
                       (int[]){node.inputs[0], made[0], made[1], made[2]},
                       ATTRS(attr_int("K", w->k), attr_int("N", w->n), attr_int("bits", w->bits),
                             attr_int("block_size", w->block)));
    if (node.op == &op_gemm && node.op_inputs > 2 && node.inputs[2] != NONE)
        y = graph_node(g, op_add.name, NULL, INPUTS(y, node.inputs[2]), NO_ATTRS);
    if (g->failed)
        return graph_check(g, err);
    rewrite_replace(g, node.outputs[0], y);
    return STATUS_OK;
}

static enum status try_node(struct graph *g, const struct node node, struct error *err)
{
    struct weights w;
    if (!bears(g, &node) || !find_weights(g, &node, &w))
        return STATUS_OK;
    int64_t rows = shape_count(&g->values[node.outputs[0]].shape) / w.n;
    enum status status = read_contents(g, &w) ? STATUS_OK : FAIL_NO_MEMORY(err);
    if (status == STATUS_OK) {
        bool narrow = are_narrow(&w, w.numbers, w.n * w.k) &&
                      (!w.zero_points || are_narrow(&w, w.zero_points, w.scales.count));
        w.bits = narrow ? 4 : 8;
        if (narrow || rows <= BLOCK_CODES_FEW_ROWS)
            status = absorb(g, node, &w, err);
    }
    free_contents(&w);
    return status;
}

enum status pass_absorb_codes(struct graph *g, struct error *err)
{
    int count = g->node_count; /* nodes are added at the end */
    for (int n = 0; n < count; n++)
        TRY(try_node(g, g->nodes[n], err));
    return STATUS_OK;
}
