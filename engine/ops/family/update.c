/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/update.h"

#include <math.h>
#include <string.h>

const char *const adam_attrs[] = {"decay", "beta1", "beta2", "epsilon", "corrected", NULL};

enum { TILE = 1 << 14 };

enum status update_infer(const struct infer *c, struct error *err)
{
    const struct op *op = c->node->op;
    int width = update_width(op), each = width - 1;
    int weights = (c->in_count - UPDATE_WEIGHTS) / width;
    if (weights < 1 || c->in_count != UPDATE_WEIGHTS + weights * width ||
        c->out_count != weights * each)
        return FAIL(err, STATUS_FAILED, "%s: %d inputs and %d outputs are no whole weights",
                    op->name, c->in_count, c->out_count);
    for (int t = 0; t < weights; t++) {
        const struct value *const *in = c->in + UPDATE_WEIGHTS + t * width;
        for (int k = 0; k < width; k++) {
            if (!in[k] || in[k]->dtype != in[0]->dtype ||
                !shape_equal(&in[k]->shape, &in[0]->shape))
                return FAIL(err, STATUS_FAILED, "%s: weight %d and its input %d differ", op->name,
                            t, k);
        }
        for (int k = 0; k < each; k++)
            infer_set(c, t * each + k, in[0]->dtype, &in[0]->shape);
    }
    return STATUS_OK;
}

struct update_step update_step_of(const struct node *node)
{
    struct update_step s = {.trust = 1};
    const struct update_parameter *p = node->op->update->parameters;
    for (int k = 0; k < UPDATE_PARAMETERS && p[k].name; k++)
        s.parameter[k] = node_float(node, p[k].name, p[k].fallback);
    return s;
}

void update_step_begin(struct update_step *s, const struct op *op, double rate, double scale,
                       int64_t number)
{
    s->rate = rate;
    s->scale = scale;
    s->number = number;
    s->first = s->second = 1;
    if (op->update->begin)
        op->update->begin(s);
}

void adam_begin(struct update_step *s)
{
    if (s->parameter[ADAM_CORRECTED] != 0) {
        s->first = 1 / (1 - pow(s->parameter[ADAM_BETA1], (double)s->number));
        s->second = 1 / (1 - pow(s->parameter[ADAM_BETA2], (double)s->number));
    }
}

double adam_direction(const struct update_step *s, double gradient, double *slot)
{
    double beta1 = s->parameter[ADAM_BETA1], beta2 = s->parameter[ADAM_BETA2];
    slot[0] = beta1 * slot[0] + (1 - beta1) * gradient;
    slot[1] = beta2 * slot[1] + (1 - beta2) * gradient * gradient;
    return s->first * slot[0] / (sqrt(s->second * slot[1]) + s->parameter[ADAM_EPSILON]);
}

double lars_trust(const struct update_step *s, double weight_norm, double gradient_norm)
{
    double decay = s->parameter[UPDATE_DECAY];
    if (decay == 0 || weight_norm == 0 || gradient_norm == 0)
        return 1;
    return s->parameter[LARS_COEFFICIENT] * weight_norm /
           (gradient_norm + decay * weight_norm + s->parameter[LARS_EPSILON]);
}

double lamb_trust(const struct update_step *s, double weight_norm, double direction_norm)
{
    if (s->parameter[UPDATE_DECAY] == 0 || weight_norm == 0 || direction_norm == 0)
        return 1;
    return weight_norm / direction_norm;
}

/* ---- reference ---- */

/* No step is made. */
static void copy_all(const struct ref_call *call)
{
    for (int k = 0; k < call->out_count; k++) {
        const struct ref_tensor *from = call->in[update_follows(call->node->op, k)];
        if (call->out[k])
            memcpy(call->out[k]->f, from->f, (size_t)from->count * sizeof(*from->f));
    }
}

struct weight {
    struct update_step step;
    const struct update_law *law;
    int slots;
    const struct ref_tensor *const *in;
    struct ref_tensor *const *out;
};

static double read_element(const struct weight *w, int64_t e, double *slot)
{
    for (int k = 0; k < w->slots; k++)
        slot[k] = w->in[2 + k]->f[e];
    return w->step.scale * w->in[1]->f[e];
}

static void update_tile(void *context, int64_t tile, int thread)
{
    const struct weight *w = context;
    int64_t end = (tile + 1) * TILE < w->in[0]->count ? (tile + 1) * TILE : w->in[0]->count;
    (void)thread;
    for (int64_t e = tile * TILE; e < end; e++) {
        double slot[UPDATE_SLOTS_MAX] = {0}, gradient = read_element(w, e, slot);
        double weight = w->in[0]->f[e];
        w->law->each(&w->step, gradient, &weight, slot);
        if (w->out[0])
            w->out[0]->f[e] = weight;
        for (int k = 0; k < w->slots; k++)
            if (w->out[1 + k])
                w->out[1 + k]->f[e] = slot[k];
    }
}

static double trust_in(const struct weight *w)
{
    double weights = 0, directions = 0;
    for (int64_t e = 0; e < w->in[0]->count; e++) {
        double slot[UPDATE_SLOTS_MAX] = {0}, gradient = read_element(w, e, slot);
        double weight = w->in[0]->f[e];
        double direction = w->law->direction(&w->step, gradient, weight, slot);
        weights += weight * weight;
        directions += direction * direction;
    }
    return w->law->trust(&w->step, sqrt(weights), sqrt(directions));
}

enum status update_reference(const struct ref_call *call, const struct update_law *law,
                             struct error *err)
{
    const struct node *node = call->node;
    int width = update_width(node->op);
    struct weight w = {.step = update_step_of(node), .law = law, .slots = node->op->update->slots};
    if ((law->direction != NULL) != node->op->update->takes_norms)
        return FAIL(err, STATUS_INVALID, "%s: its law and .takes_norms of its rule disagree",
                    node->op->name);
    if (call->in[UPDATE_STEP]->i[0] < 1) {
        copy_all(call);
        return STATUS_OK;
    }
    update_step_begin(&w.step, node->op, call->in[UPDATE_RATE]->f[0],
                      call->in[UPDATE_SCALE] ? call->in[UPDATE_SCALE]->f[0] : 1,
                      call->in[UPDATE_STEP]->i[0]);
    for (int t = 0; t < update_weights(node); t++) {
        w.in = call->in + UPDATE_WEIGHTS + t * width;
        w.out = call->out + t * (width - 1);
        if (law->direction)
            w.step.trust = trust_in(&w);
        pool_run(call->pool, (w.in[0]->count + TILE - 1) / TILE, update_tile, &w);
    }
    return STATUS_OK;
}

void update_cost(const struct infer *c, double flops, double transcendentals, struct cost *cost)
{
    flops += node_float(c->node, "decay", 0) > 0 ? 2 : 0;
    flops += infer_has(c, UPDATE_SCALE) ? 1 : 0;
    for (int k = UPDATE_WEIGHTS; k < c->in_count; k += update_width(c->node->op)) {
        double elements = (double)shape_count(&c->in[k]->shape);
        cost->elementwise += flops * elements;
        cost->transcendentals += transcendentals * elements;
    }
}
