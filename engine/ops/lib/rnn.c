/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/rnn.h"

#include <string.h>
#include <strings.h>

/* ---- shapes ---- */

enum status rnn_shape_from(const struct node *node, int gates, const struct shape *x,
                           const struct shape *r, struct rnn_shape *shape, struct error *err)
{
    const char *direction = node_string(node, "direction", "forward");
    bool both = strcmp(direction, "bidirectional") == 0;
    bool backward = strcmp(direction, "reverse") == 0;
    if (!both && !backward && strcmp(direction, "forward") != 0)
        return FAIL(err, STATUS_FAILED, "%s: direction \"%s\"", node->op->name, direction);
    if (x->rank != 3 || r->rank != 3)
        return FAIL(err, STATUS_FAILED, "%s: input of rank %d, recurrent weights of rank %d, not 3",
                    node->op->name, x->rank, r->rank);
    *shape = (struct rnn_shape){.gates = gates, .directions = both ? 2 : 1, .backward = backward};
    shape->batch_first = node_int(node, "layout", 0) != 0;
    shape->steps = x->dim[shape->batch_first];
    shape->batch = x->dim[!shape->batch_first];
    shape->input = x->dim[2];
    shape->hidden = r->dim[2];
    int64_t named = node_int(node, "hidden_size", shape->hidden);
    if (named != shape->hidden)
        return FAIL(err, STATUS_FAILED, "%s: hidden_size is %lld, the weights say %lld",
                    node->op->name, (long long)named, (long long)shape->hidden);
    return STATUS_OK;
}

static enum status expect(const struct infer *c, int input, const struct shape *want,
                          struct error *err)
{
    char text[96], text_want[96];
    if (!infer_has(c, input) || shape_equal(&c->in[input]->shape, want))
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "%s: input %d has shape %s, not %s", c->node->op->name, input,
                shape_text(&c->in[input]->shape, text), shape_text(want, text_want));
}

enum status rnn_infer(const struct infer *c, int gates, struct error *err)
{
    struct rnn_shape s;
    TRY(rnn_shape_from(c->node, gates, &c->in[RNN_X]->shape, &c->in[RNN_R]->shape, &s, err));
    int64_t rows = gates * s.hidden, directions = s.directions;
    struct shape w = shape_of(directions, rows, s.input), r = shape_of(directions, rows, s.hidden);
    struct shape bias = shape_of(directions, 2 * rows), lengths = shape_of(s.batch);
    struct shape state = shape_of(directions, s.batch, s.hidden);
    struct shape y = shape_of(s.steps, directions, s.batch, s.hidden);
    struct shape peephole = shape_of(directions, 3 * s.hidden);
    if (s.batch_first) {
        state = shape_of(s.batch, directions, s.hidden);
        y = shape_of(s.batch, s.steps, directions, s.hidden);
    }
    const struct shape *want[] = {NULL, &w, &r, &bias, &lengths, &state, &state, &peephole};
    for (int k = 1; k < ARRAY_COUNT(want); k++)
        TRY(expect(c, k, want[k], err));
    infer_set(c, 0, c->in[0]->dtype, &y);
    infer_set(c, 1, c->in[0]->dtype, &state);
    infer_set(c, 2, c->in[0]->dtype, &state);
    return STATUS_OK;
}

void rnn_cost(const struct infer *c, int gates, double per_unit, double calls_per_unit,
              struct cost *cost)
{
    struct rnn_shape s;
    if (rnn_shape_from(c->node, gates, &c->in[RNN_X]->shape, &c->in[RNN_R]->shape, &s, NULL) !=
        STATUS_OK)
        return;
    double units = (double)(s.steps * s.batch) * (double)(s.hidden * s.directions);
    cost->macs = units * (double)gates * (double)(s.input + s.hidden);
    cost->elementwise = per_unit * units;
    cost->transcendentals = calls_per_unit * units;
}

/* ---- activations ---- */

struct activation_kind {
    const char *name;
    enum function function;
    int parameters; /* how many of p and q it takes from the node's lists */
    double defaults[2];
};

/* Those that are no operators of their own. */
static const struct activation_kind others[] = {
    {"Affine", FN_AFFINE, 2, {1, 0}},
    {"ScaledTanh", FN_SCALED_TANH, 2, {1, 1}},
};

static bool find_kind(const char *name, struct activation_kind *kind)
{
    for (int k = 0; k < ARRAY_COUNT(others); k++) {
        *kind = others[k];
        if (strcasecmp(kind->name, name) == 0)
            return true;
    }
    for (int k = 0; k < op_count(); k++) {
        const struct op *op = op_at(k);
        if (!op->function || op_inputs_max(op) != 1 || strcasecmp(op->name, name) != 0)
            continue;
        *kind =
            (struct activation_kind){op->name, op->function, 0, {op->defaults[0], op->defaults[1]}};
        while (op->attrs && op->attrs[kind->parameters])
            kind->parameters++;
        return true;
    }
    return false;
}

/* Takes the next number of a list that the activations share in their order. */
static double take(const struct attr *list, int *next, double fallback)
{
    if (!list || list->kind != ATTR_FLOATS || *next >= list->count)
        return fallback;
    return list->floats[(*next)++];
}

enum status rnn_activations(const struct node *node, int direction, const char *const *defaults,
                            struct rnn_activation *activations, struct error *err)
{
    int count = 0, next_alpha = 0, next_beta = 0;
    while (defaults[count])
        count++;
    const struct attr *names = node_attr(node, "activations");
    const struct attr *alpha = node_attr(node, "activation_alpha");
    const struct attr *beta = node_attr(node, "activation_beta");
    for (int k = 0; k < (direction + 1) * count; k++) {
        bool named = names && names->kind == ATTR_STRINGS && k < names->count;
        const char *name = named ? names->strings[k] : defaults[k % count];
        struct activation_kind kind;
        if (!find_kind(name, &kind))
            return UNSUPPORTED(err, "%s: activation \"%s\"", node->op->name, name);
        double p = kind.parameters > 0 ? take(alpha, &next_alpha, kind.defaults[0]) : 0;
        double q = kind.parameters > 1 ? take(beta, &next_beta, kind.defaults[1]) : 0;
        if (k >= direction * count)
            activations[k % count] = (struct rnn_activation){kind.function, p, q};
    }
    return STATUS_OK;
}

double rnn_activate(const struct rnn_activation *activation, double x)
{
    return function_value(activation->function, activation->p, activation->q, x, 0);
}
