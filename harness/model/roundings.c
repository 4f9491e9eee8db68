/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/model/roundings.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/quantize.h"
#include "engine/reference/ref_odd.h"
#include "engine/reference/reference.h"
#include "harness/model/choices.h"

/* ---- which there are ---- */

static bool varies(const struct graph *g, const struct node *node, const bool *varying)
{
    bool any = node->op->random;
    for (int k = 0; k < node->input_count; k++)
        any = any || (node->inputs[k] != NONE && varying[node->inputs[k]]);
    for (int k = 0; k < node->input_count; k++) {
        const struct value *value = node->inputs[k] == NONE ? NULL : &g->values[node->inputs[k]];
        any = any || (value && (value->kind == VALUE_INPUT || value->kind == VALUE_STATE));
    }
    return any;
}

static int output_index(const struct graph *g, int v)
{
    for (int k = 0; k < g->output_count; k++)
        if (g->outputs[k] == v)
            return k;
    return NONE;
}

static void show(struct graph *g, int v)
{
    if (output_index(g, v) == NONE)
        graph_output(g, v);
}

/* Returns how many there are, those that are outputs already included. */
static int show_roundings(const struct graph *graph, struct graph *g, bool *varying)
{
    int found = 0;
    for (int n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        bool any = !node->dead && varies(graph, node, varying);
        bool rounds = any && quantize_is_rounding(node->op);
        bool chooses = any && choice_is_followed(graph, node);
        if (chooses)
            show(g, node->inputs[0]);
        for (int k = 0; k < node->output_count; k++) {
            int v = node->outputs[k];
            if (v == NONE || !any)
                continue;
            varying[v] = true;
            if (!rounds && (!chooses || dtype_is_float(graph->values[v].dtype)))
                continue;
            found++;
            show(g, v);
        }
    }
    return found;
}

enum status graph_with_roundings(const struct graph *graph, struct graph **out, struct error *err)
{
    bool *varying = calloc((size_t)graph->value_count + 1, sizeof(*varying));
    struct graph *g = *out = graph_copy(graph);
    enum status status = varying && g ? STATUS_OK : FAIL_NO_MEMORY(err);
    int found = status == STATUS_OK ? show_roundings(graph, g, varying) : 0;
    if (found)
        status = graph_check(g, err);
    if (!found || status != STATUS_OK) {
        graph_free(g);
        *out = NULL;
    }
    free(varying);
    return status;
}

/* ---- what rounding may give ---- */

enum allowed {
    ALLOWED_INTERVAL, /* what rounding makes of a number that is off by so much either way */
    ALLOWED_UNIT,     /* the next number: what was rounded is not known */
    ALLOWED_SHARE,    /* no rounding: off by so much of itself */
};

/* So many of sums of integers, which nobody sees, lie that close to a tie, and one more. */
static const double share_of_ties = 1e-3;

/* One result of a node, beside what the executable made of it. */
struct rounding {
    enum allowed allowed;
    double off;
    const struct value *value;
    const struct ref_tensor *own;
    struct ref_tensor got;
    const struct ref_tensor *x, *scale, *zero_point; /* ALLOWED_INTERVAL; zero_point NULL: 0 */
    struct quantize_scales scales;
    int64_t first, wrong, ties;
};

static double largest_of(const struct ref_tensor *x)
{
    double largest = 0;
    for (int64_t i = 0; x->f && i < x->count; i++)
        if (isfinite(x->f[i]))
            largest = fmax(largest, fabs(x->f[i]));
    return largest;
}

static double scale_at(const struct rounding *p, int64_t i)
{
    return ref_get(p->scale, quantize_scales_index(&p->scales, i));
}

static double zero_point_at(const struct rounding *p, int64_t i)
{
    return p->zero_point ? ref_get(p->zero_point, quantize_scales_index(&p->scales, i)) : 0;
}

static double rounded(const struct rounding *p, int64_t i, double off)
{
    return quantize_number(p->own->dtype, ref_get(p->x, i) + off, scale_at(p, i),
                           zero_point_at(p, i));
}

/* Of an element that differs. */
static bool is_allowed(const struct rounding *p, int64_t i)
{
    double got = ref_get(&p->got, i), own = ref_get(p->own, i);
    if (p->allowed != ALLOWED_INTERVAL)
        return fabs(got - own) <= (p->allowed == ALLOWED_UNIT ? 1 : p->off * fabs(own));
    double a = rounded(p, i, -p->off), b = rounded(p, i, p->off);
    return got >= fmin(a, b) && got <= fmax(a, b);
}

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void compare_elements(struct rounding *p)
{
    int64_t first = NONE, first_wrong = NONE;
    for (int64_t i = 0; i < p->own->count; i++) {
        if (is_same(ref_get(&p->got, i), ref_get(p->own, i)))
            continue;
        bool allowed = is_allowed(p, i);
        first = first < 0 ? i : first;
        first_wrong = first_wrong < 0 && !allowed ? i : first_wrong;
        p->ties += allowed;
        p->wrong += !allowed;
    }
    if (p->allowed == ALLOWED_UNIT && (double)p->ties > 1 + share_of_ties * (double)p->own->count) {
        p->wrong += p->ties;
        p->ties = 0;
    }
    p->first = first_wrong < 0 ? first : first_wrong;
}

/* ---- following them ---- */

enum status roundings_read(const struct roundings *r, const struct ref_tensor *own, int v,
                           struct ref_tensor *got, struct error *err)
{
    const void *data = exe_output(r->made, output_index(r->with, v));
    return ref_from_data(got, own->dtype, &own->shape, data, err);
}

struct follower {
    struct roundings *r;
    const struct graph *g;
};

static void note_wrong(struct roundings *r, const struct rounding *p)
{
    char at[96], before[40] = "";
    ref_index_text(&p->own->shape, p->first, at);
    if (p->allowed == ALLOWED_INTERVAL)
        snprintf(before, sizeof(before), " (%.6g before rounding)",
                 ref_get(p->x, p->first) / scale_at(p, p->first) + zero_point_at(p, p->first));
    snprintf(r->odd, sizeof(r->odd),
             "%" PRId64 " of %" PRId64 " roundings are wrong, first %.7g instead of %.7g%s at %s",
             p->wrong, p->own->count, ref_get(&p->got, p->first), ref_get(p->own, p->first), before,
             at);
    r->first = p->value;
}

/* Checks result k of the node and takes it over; p says what is allowed. */
static enum status follow(const struct follower *f, const struct node *node, int k,
                          const struct ref_tensor *values, struct rounding *p, struct error *err)
{
    int v = k < node->output_count ? node->outputs[k] : NONE;
    if (v == NONE || output_index(f->r->with, v) == NONE)
        return STATUS_OK;
    p->value = &f->g->values[v];
    p->own = &values[v];
    TRY(roundings_read(f->r, p->own, v, &p->got, err));
    compare_elements(p);
    if (p->wrong && !f->r->first)
        note_wrong(f->r, p);
    if (p->allowed != ALLOWED_SHARE) {
        f->r->count += p->own->count;
        f->r->ties += p->ties;
    }
    f->r->wrong += p->wrong;
    memcpy(p->own->f ? (void *)p->own->f : p->own->i, p->got.f ? (void *)p->got.f : p->got.i,
           (size_t)p->got.count * 8);
    ref_release(&p->got);
    return STATUS_OK;
}

static enum status follow_quantize(const struct follower *f, const struct node *node,
                                   const struct ref_tensor *values, struct error *err)
{
    const struct ref_tensor *x = &values[node->inputs[0]], *scale = &values[node->inputs[1]];
    int zero_point = node->op_inputs > 2 ? node->inputs[2] : NONE;
    struct rounding p = {.allowed = ALLOWED_INTERVAL,
                         .off = f->r->bound * largest_of(x),
                         .x = x,
                         .scale = scale,
                         .zero_point = zero_point == NONE ? NULL : &values[zero_point]};
    TRY(quantize_scales_from(node, &x->shape, &scale->shape, &p.scales, err));
    return follow(f, node, 0, values, &p, err);
}

/* Scale and zero point first: what the integers are depends on them. Where nobody reads them they
 * are the reference's own. Either end of the range may be off by the bound. */
static enum status follow_dynamic(const struct follower *f, const struct node *node,
                                  const struct ref_tensor *values, struct error *err)
{
    const struct ref_tensor *x = &values[node->inputs[0]];
    double numbers[2];
    struct rounding of_scale = {.allowed = ALLOWED_SHARE, .off = 2 * f->r->bound};
    struct rounding of_zero_point = {.allowed = ALLOWED_UNIT};
    TRY(follow(f, node, 1, values, &of_scale, err));
    TRY(follow(f, node, 2, values, &of_zero_point, err));
    quantize_range(x, &numbers[0], &numbers[1]);
    struct ref_tensor scale = {.dtype = DTYPE_F32, .count = 1, .f = &numbers[0]};
    struct ref_tensor zero_point = {.dtype = DTYPE_F32, .count = 1, .f = &numbers[1]};
    struct rounding p = {.allowed = ALLOWED_INTERVAL,
                         .off = f->r->bound * largest_of(x),
                         .x = x,
                         .scale = of_scale.own ? of_scale.own : &scale,
                         .zero_point = of_zero_point.own ? of_zero_point.own : &zero_point,
                         .scales = {.count = 1}};
    return follow(f, node, 0, values, &p, err);
}

static enum status after_node(void *context, const struct node *node,
                              const struct ref_tensor *values, struct error *err)
{
    const struct follower *f = context;
    struct rounding p = {.allowed = ALLOWED_UNIT};
    if (choice_is_followed(f->g, node) && output_index(f->r->with, node->outputs[1]) != NONE)
        return choice_follow(f->r, f->g, node, values, err);
    if (!quantize_is_rounding(node->op))
        return STATUS_OK;
    if (node->op == &op_quantize_linear)
        return follow_quantize(f, node, values, err);
    if (node->op == &op_dynamic_quantize_linear)
        return follow_dynamic(f, node, values, err);
    return follow(f, node, 0, values, &p, err);
}

enum status roundings_follow(struct roundings *r, const struct graph *graph,
                             struct ref_tensor *outputs, struct error *err)
{
    struct follower follower = {.r = r, .g = graph};
    struct reference_watch watch = {.after = after_node, .context = &follower};
    r->count = r->ties = r->wrong = r->choices = r->other_choices = 0;
    r->chosen_by = 0;
    r->first = NULL;
    r->odd[0] = '\0';
    return reference_run_watched(graph, NULL, outputs, &watch, exe_pool(r->made), err);
}
