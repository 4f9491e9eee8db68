/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/model/choices.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/reference/ref_odd.h"
#include "engine/reference/reference.h"

enum { VALUES, PLACES }; /* results */

static bool is_exact_input(const struct graph *g, int v)
{
    for (int n = 0; n < g->node_count; n++)
        for (int k = 0; k < g->nodes[n].op_inputs && k < 32; k++)
            if (g->nodes[n].inputs[k] == v && g->nodes[n].op->exact_inputs >> k & 1)
                return true;
    return false;
}

bool choice_is_followed(const struct graph *g, const struct node *node)
{
    if (node->op != &op_top_k || node->output_count <= PLACES || node->outputs[PLACES] == NONE)
        return false;
    const struct value *x = &g->values[node->inputs[0]];
    int64_t axis = node_int(node, "axis", -1);
    return (axis == -1 || axis == x->shape.rank - 1) && node_int(node, "largest", 1) &&
           x->kind == VALUE_RESULT && is_exact_input(g, node->outputs[PLACES]);
}

/* A choice, of which each line has `size` numbers and k places. */
struct choice {
    const struct ref_tensor *x, *places, *values; /* the reference's; values NULL: not wanted */
    struct ref_tensor by, got;                    /* the executable's x and places */
    int64_t size, k;
};

static bool comes_before(const double *x, int64_t a, int64_t b)
{
    return x[a] > x[b] || (a < b && x[a] == x[b]);
}

/* Whether the executable's places in the line are those of its own largest numbers, in order. */
static bool is_best(const struct choice *c, int64_t line)
{
    const double *x = c->by.f + line * c->size;
    const int64_t *got = c->got.i + line * c->k;
    for (int64_t j = 0; j < c->k; j++)
        if (got[j] < 0 || got[j] >= c->size || (j && !comes_before(x, got[j - 1], got[j])))
            return false;
    int64_t before = 0;
    for (int64_t e = 0; c->k && e < c->size; e++)
        before += comes_before(x, e, got[c->k - 1]);
    return before == c->k - 1;
}

/* Goes on with the executable's places, and the reference's numbers there. */
static void take_over(const struct choice *c, int64_t line)
{
    for (int64_t i = line * c->k; i < (line + 1) * c->k; i++) {
        c->places->i[i] = c->got.i[i];
        if (c->values)
            c->values->f[i] = c->x->f[line * c->size + c->got.i[i]];
    }
}

static void check_lines(struct roundings *r, const struct choice *c, const struct value *value)
{
    int64_t lines = c->size ? c->x->count / c->size : 0;
    size_t bytes = (size_t)c->k * sizeof(int64_t);
    for (int64_t line = 0; line < lines; line++) {
        bool best = is_best(c, line);
        r->choices++;
        r->other_choices += memcmp(c->places->i + line * c->k, c->got.i + line * c->k, bytes) != 0;
        if (best) {
            take_over(c, line);
            continue;
        }
        r->wrong++;
        if (r->first)
            continue;
        r->first = value;
        snprintf(r->odd, sizeof(r->odd), "line %lld is no choice of the largest", (long long)line);
    }
}

enum status choice_follow(struct roundings *r, const struct graph *g, const struct node *node,
                          const struct ref_tensor *values, struct error *err)
{
    int x = node->inputs[0], places = node->outputs[PLACES], chosen = node->outputs[VALUES];
    const struct value *value = &g->values[places];
    struct choice c = {.x = &values[x],
                       .places = &values[places],
                       .values = chosen == NONE ? NULL : &values[chosen]};
    c.size = c.x->shape.dim[c.x->shape.rank - 1];
    c.k = c.places->shape.dim[c.places->shape.rank - 1];
    TRY(roundings_read(r, c.x, x, &c.by, err));
    enum status status = roundings_read(r, c.places, places, &c.got, err);
    if (status == STATUS_OK) {
        r->chosen_by = fmax(r->chosen_by, ref_rel_error(&c.by, c.x));
        check_lines(r, &c, value);
    }
    ref_release(&c.by);
    ref_release(&c.got);
    return status;
}
