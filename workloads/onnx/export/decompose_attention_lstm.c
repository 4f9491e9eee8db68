/* SPDX-License-Identifier: Apache-2.0
 *
 * AttentionLSTM step after step, without a loop: what is trained has a fixed number of words, and
 * autograd of other programs goes through plain nodes. */
#include "engine/ops/lib/attention_lstm.h"
#include "workloads/onnx/export/inner.h"

struct unrolled {
    struct graph *g;
    struct attention_lstm s;
    int in[ALSTM_INPUTS]; /* captured */
    int h, c, context;    /* now */
    int shares, real;     /* [B, S]: of this step, and which words are real */
    int *all[ALSTM_OUTPUTS];
};

static int reshaped(struct graph *g, int x, int rank, const int64_t *dim)
{
    return op2(g, "Reshape", x, graph_const_i64(g, rank, dim));
}

static int joined(struct graph *g, int64_t axis, int count, const int *values)
{
    return graph_node(g, "Concat", NULL, count, values, ATTRS(attr_int("axis", axis)));
}

/* Which words lie before the end of their sentence. */
static int real_words(struct unrolled *u)
{
    struct graph *g = u->g;
    int32_t *number = arena_array(&g->arena, (size_t)u->s.source, sizeof(*number));
    for (int64_t w = 0; number && w < u->s.source; w++)
        number[w] = (int32_t)w;
    if (!number)
        return NONE;
    int words = graph_const(g, NULL, DTYPE_I32, shape_of(u->s.source), number);
    int ends = reshaped(g, u->in[ALSTM_LENGTHS], 2, (int64_t[]){u->s.batch, 1});
    return op2(g, "Less", words, ends);
}

static void attend(struct unrolled *u)
{
    struct graph *g = u->g;
    const struct attention_lstm *s = &u->s;
    int asked = op2(g, "MatMul", u->h, u->in[ALSTM_QUERY]);
    asked = reshaped(g, asked, 3, (int64_t[]){s->batch, 1, s->keys});
    int score = op1(g, "Tanh", op2(g, "Add", u->in[ALSTM_KEYS], asked));
    score = op2(g, "MatMul", score, u->in[ALSTM_SCORE]);
    score = op3(g, "Where", u->real, score, graph_const_f32(g, -1e30f));
    u->shares = graph_node(g, "Softmax", NULL, INPUTS(score), ATTRS(attr_int("axis", 1)));
    int row = reshaped(g, u->shares, 3, (int64_t[]){s->batch, 1, s->source});
    row = op2(g, "MatMul", row, u->in[ALSTM_MEMORY]);
    u->context = reshaped(g, row, 2, (int64_t[]){s->batch, s->context});
}

static void run_step(struct unrolled *u, int64_t t)
{
    struct graph *g = u->g;
    const struct attention_lstm *s = &u->s;
    int x = graph_node(g, "Gather", NULL, INPUTS(u->in[ALSTM_X], graph_const_i64(g, -1, &t)),
                       ATTRS(attr_int("axis", 0)));
    int state = s->attends ? joined(g, 1, 2, (const int[]){u->context, u->h}) : u->h, gate[4];
    int sums = op2(g, "Add", x, op2(g, "MatMul", state, u->in[ALSTM_W]));
    graph_node_many(g, "Split", NULL, INPUTS(sums), ATTRS(attr_int("axis", 1)), 4, gate);
    int fresh = op2(g, "Mul", op1(g, "Sigmoid", gate[0]), op1(g, "Tanh", gate[1]));
    u->c = op2(g, "Add", op2(g, "Mul", op1(g, "Sigmoid", gate[2]), u->c), fresh);
    u->h = op2(g, "Mul", op1(g, "Sigmoid", gate[3]), op1(g, "Tanh", u->c));
    if (s->attends)
        attend(u);
    int now[ALSTM_OUTPUTS] = {u->h, u->c, u->context, u->shares};
    int64_t width[ALSTM_OUTPUTS] = {s->hidden, s->hidden, s->context, s->source};
    for (int k = 0; k < (s->attends ? ALSTM_OUTPUTS : ALSTM_OUT_CONTEXT); k++)
        u->all[k][t] = reshaped(g, now[k], 3, (int64_t[]){1, s->batch, width[k]});
}

enum status export_attention_lstm(const struct form *f, struct error *err)
{
    const struct graph *from = f->x->g;
    const struct shape *shapes[ALSTM_INPUTS] = {0};
    struct unrolled u = {
        .g = inner_new(f->x, arena_printf(&f->x->arena, "%s:steps", f->outputs[0]))};
    if (!u.g)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < ALSTM_INPUTS; k++) {
        int v = k < f->node->op_inputs ? f->node->inputs[k] : NONE;
        shapes[k] = v == NONE ? NULL : &from->values[v].shape;
        u.in[k] = v == NONE ? NONE : inner_capture(u.g, from, v);
    }
    TRY(attention_lstm_from(shapes, &u.s, err));
    if (u.s.steps == 0)
        return UNSUPPORTED(err, "AttentionLSTM without steps has no form in ONNX");
    struct shape first = shape_of(u.s.batch, u.s.context);
    float *zeros = arena_array(&u.g->arena, (size_t)shape_count(&first) + 1, sizeof(*zeros));
    bool fine = zeros;
    for (int k = 0; k < ALSTM_OUTPUTS; k++) {
        u.all[k] = arena_array(&u.g->arena, (size_t)u.s.steps, sizeof(int));
        fine = fine && u.all[k];
    }
    if (!fine)
        return FAIL_NO_MEMORY(err);
    u.h = u.in[ALSTM_H];
    u.c = u.in[ALSTM_C];
    u.shares = u.real = NONE;
    u.context = u.s.attends ? graph_const(u.g, NULL, DTYPE_F32, first, zeros) : NONE;
    if (u.s.attends)
        u.real = real_words(&u);
    for (int64_t t = 0; t < u.s.steps; t++)
        run_step(&u, t);
    for (int k = 0; k < f->output_count; k++)
        graph_output(u.g, joined(u.g, 0, (int)u.s.steps, u.all[k]));
    return inner_inline(f->x, u.g, f->outputs, err);
}
