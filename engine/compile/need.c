/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of an executable, with sizes instead of memory: the tuner goes from node to node and
 * turns weights into prepared ones, then activations stand from their first to their last use, then
 * the reference does the same in eight bytes per element: of a step of training that which is
 * compared, up to the gradients, and a second time beside it. States stand always, and what follows
 * them in their place where its operator computes it there; the packed forms of weights that change
 * lie in the scratch memory, one step's at a time. The passes are not run: they make activations
 * fewer, and weights no larger than the kernels' own forms. */
#include "engine/compile/need.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "engine/compile/trial.h"
#include "engine/graph/cost.h"
#include "engine/graph/op_list.h"
#include "engine/reference/reference.h"

/* Winograd's F(4x4) keeps 6 x 6 numbers for each 3 x 3 window, and for each 4 x 4 of its results.
 */
static const double winograd_growth = 36.0 / 9;
static const double winograd_image_growth = 36.0 / 16;
static const double winograd_error = 2e-5; /* its own bound: refused where less is asked for */
static const double trial_states = 3;      /* candidates that hold prepared weights at once */
static const double cached_weights = 8e6;  /* more, and the trial streams a buffer between runs */
static const double thread_scratch = 2e6;  /* of each: their blocks fit a second cache */
static const double scratch_max = 128e6;   /* kernels work in blocks that fit the caches */
/* Of gradients by weights, as conv_weight_gradient_winograd.c cuts them. */
static const double gradient_parts = 8, gradient_part_tiles = 48;
/* Six take turns, two of which keep less, with other kernels beside them: on a busy machine none of
 * them is out of the race early. */
static const double gradient_trials = 7;
static const double gradient_block = 16 << 20; /* transformed images, of all threads together */

struct walk {
    const struct graph *g;
    const struct exe_options *options;
    int *root;  /* per value: whose memory it is */
    int *last;  /* per root: the node that reads it last; node_count: an output */
    bool *held; /* per root: its memory is in use */
    bool *kept; /* per weight: plain, for all that read it */
};

static double ref_bytes_of(const struct value *value)
{
    return ((double)shape_count(&value->shape) + 1) * 8;
}

static const struct value *input_of(const struct walk *w, const struct node *node, int k)
{
    return node->inputs[k] == NONE ? NULL : &w->g->values[node->inputs[k]];
}

/* ---- weights ---- */

static bool all_ones(const struct node *node, const char *name)
{
    int64_t values[RANK_MAX];
    int count = node_ints(node, name, values, RANK_MAX);
    for (int k = 0; k < count && k < RANK_MAX; k++)
        if (values[k] != 1)
            return false;
    return true;
}

/* Weights of a convolution, or what their gradient is. */
static const struct value *weights_of(const struct walk *w, const struct node *node)
{
    if (node->op == &op_conv_weight_gradient)
        return &w->g->values[node->outputs[0]];
    bool convolves = node->op == &op_conv || node->op == &op_conv_transpose;
    return convolves ? input_of(w, node, 1) : NULL;
}

static bool winograd_may(const struct walk *w, const struct node *node)
{
    const struct value *weights = weights_of(w, node);
    double allowed = w->options->max_error;
    if (!weights || weights->shape.rank != 4)
        return false;
    const int64_t *dim = weights->shape.dim;
    return dim[2] == 3 && dim[3] == 3 && all_ones(node, "strides") && all_ones(node, "dilations") &&
           node_int(node, "group", 1) == 1 && (allowed <= 0 || allowed >= winograd_error);
}

/* With a single tile to compute, four times the weights cost more than they save. */
static bool is_one_tile(const struct shape *y)
{
    return y->dim[0] == 1 && y->dim[2] <= 4 && y->dim[3] <= 4;
}

static bool winograd_wins(const struct walk *w, const struct node *node)
{
    return node->op != &op_conv_weight_gradient && winograd_may(w, node) &&
           !is_one_tile(&w->g->values[node->outputs[0]].shape);
}

/* What Winograd's gradient by weights keeps while tiles pass by: sums at each point of a tile, of
 * each thread and then as taps of each part of the images, or of all threads together beside a
 * larger block of transformed images. */
static double gradient_sums(const struct walk *w, const struct node *node)
{
    if (node->op != &op_conv_weight_gradient || !winograd_may(w, node))
        return 0;
    const struct value *x = input_of(w, node, 0), *dy = input_of(w, node, 1);
    const int64_t *dim = dy->shape.dim;
    double taps = value_bytes(weights_of(w, node)), sums = winograd_growth * taps;
    double tiles = (double)dim[0] * ceil((double)dim[2] / 4) * ceil((double)dim[3] / 4);
    double parts = fmax(1, fmin(floor(tiles / gradient_part_tiles), gradient_parts));
    double rooms = fmin(parts, fmax(1, w->options->threads));
    double own = rooms * (sums + thread_scratch) + (parts > 1 ? parts * taps : 0);
    double images = winograd_image_growth * (value_bytes(x) + value_bytes(dy));
    return fmax(own, sums + fmin(images, gradient_block));
}

/* Packed forms that the node's kernels make of its fixed inputs, or before each launch of the
 * others but the first, which is data; with Winograd's if that may win. */
static double packed_of(const struct walk *w, const struct node *node, bool fixed, bool winograd)
{
    double bytes = 0;
    for (int k = !fixed; k < node->op_inputs && node->op->packs; k++) {
        const struct value *value = input_of(w, node, k);
        if (value && value_is_fixed(value) == fixed)
            bytes += value_bytes(value) * (k == 1 && winograd ? winograd_growth : 1);
    }
    return bytes;
}

/* What the node keeps of its fixed inputs: a packed form of its own, or the plain one once. */
static double prepared_of(const struct walk *w, const struct node *node)
{
    double bytes = 0;
    bool own = node->op->packs;
    for (int k = 0; k < node->input_count; k++) {
        const struct value *value = input_of(w, node, k);
        if (!value || !value_is_fixed(value) || (!own && w->kept[node->inputs[k]]))
            continue;
        bytes += value_bytes(value) * (k == 1 && winograd_wins(w, node) ? winograd_growth : 1);
        w->kept[node->inputs[k]] = w->kept[node->inputs[k]] || !own;
    }
    return bytes;
}

/* ---- tuning ---- */

/* Packed weights and sums of all candidates that take turns, the winner among them, which is
 * prepared again when all is over. */
static double states_of(const struct walk *w, const struct node *node)
{
    bool winograd = winograd_may(w, node);
    double packed = packed_of(w, node, true, winograd) + packed_of(w, node, false, winograd);
    double sums = gradient_sums(w, node), one = packed + sums;
    double all = trial_states * packed + gradient_trials * sums;
    return all <= TURNS_BYTES ? all : fmax(one, TURNS_BYTES);
}

/* The tensors of a step on trial, and in the reference's form, with which it is compared: by a
 * quick tuning only where a library's kernels compete. */
static double trial_of(const struct walk *w, const struct node *node)
{
    double native = 0, reference = 0;
    for (int k = 0; k < node->input_count; k++) {
        const struct value *value = input_of(w, node, k);
        reference += value ? ref_bytes_of(value) : 0;
        native += value && !value_is_fixed(value) ? value_bytes(value) : 0;
    }
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NONE) {
            const struct value *value = &w->g->values[node->outputs[k]];
            reference += ref_bytes_of(value);
            native += value_bytes(value);
        }
    bool compared = !w->options->quick_tune || node->op->packs;
    if (node->op->update && native > TRIAL_ALONE_BYTES)
        return 0; /* one kernel computes it */
    return native + states_of(w, node) + (compared ? reference : 0);
}

static void compile_need(struct walk *w, struct memory_need *need)
{
    const struct graph *g = w->g;
    bool tunes = !w->options->no_tune;
    double standing = need->weights;
    double evict = tunes && standing > cached_weights ? TRIAL_EVICT_BYTES : 0;
    need->compile = standing;
    for (int n = 0; n < g->node_count; n++) {
        const struct node *node = &g->nodes[n];
        if (node->dead)
            continue;
        double prepared = prepared_of(w, node);
        double now = tunes ? trial_of(w, node) : 0;
        need->compile = fmax(need->compile, standing + fmax(prepared, now) + evict);
        need->prepared += prepared;
        standing += prepared;
        for (int k = 0; k < node->input_count; k++) {
            const struct value *value = input_of(w, node, k);
            if (value && value_is_fixed(value) && w->last[node->inputs[k]] == n &&
                !w->held[node->inputs[k]]) {
                w->held[node->inputs[k]] = true; /* in this walk: released */
                standing -= value_bytes(value);
            }
        }
    }
}

/* ---- activations ---- */

static double step_bytes(const struct walk *w, const struct node *node)
{
    double bytes = 0;
    for (int k = 0; k < node->input_count; k++) {
        const struct value *value = input_of(w, node, k);
        bytes += value && !value_is_fixed(value) ? value_bytes(value) : 0;
    }
    for (int k = 0; k < node->output_count; k++)
        bytes += node->outputs[k] == NONE ? 0 : value_bytes(&w->g->values[node->outputs[k]]);
    return bytes;
}

static double scratch_of(const struct walk *w, const struct node *node)
{
    double packed = packed_of(w, node, false, winograd_wins(w, node));
    return fmax(fmin(step_bytes(w, node), scratch_max), fmax(packed, gradient_sums(w, node)));
}

/* Whether the node makes or takes memory of `value` in this walk. */
static bool counts(const struct walk *w, int value, bool reference)
{
    return w->root[value] == value && (reference || w->g->values[value].kind == VALUE_RESULT);
}

static double size_in(const struct walk *w, int value, bool reference)
{
    const struct value *v = &w->g->values[value];
    return reference ? ref_bytes_of(v) : value_bytes(v);
}

static void enter(struct walk *w, int value, bool reference, double *live)
{
    int root = value == NONE ? NONE : w->root[value];
    if (root == NONE || w->held[root] || !counts(w, root, reference))
        return;
    w->held[root] = true;
    *live += size_in(w, root, reference);
}

static void leave(struct walk *w, int value, int node, bool reference, double *live)
{
    int root = value == NONE ? NONE : w->root[value];
    if (root == NONE || !w->held[root] || w->last[root] > node)
        return;
    w->held[root] = false;
    *live -= size_in(w, root, reference);
}

/* The most that stands at once when values go after their last use. The reference makes no updates
 * (harness/model/verify_training.c): what they would read is its result. */
static double peak_of(struct walk *w, bool reference)
{
    const struct graph *g = w->g;
    double live = 0, peak = 0;
    bool updates = false;
    memset(w->held, 0, (size_t)g->value_count * sizeof(*w->held));
    for (int n = 0; n < g->node_count; n++) {
        const struct node *node = &g->nodes[n];
        updates = updates || (!node->dead && node->op->update);
        if (node->dead || (reference && node->op->update))
            continue;
        for (int k = 0; k < node->input_count; k++)
            enter(w, node->inputs[k], reference, &live);
        for (int k = 0; k < node->output_count; k++)
            enter(w, node->outputs[k], reference, &live);
        peak = fmax(peak, live);
        for (int k = 0; k < node->input_count; k++)
            leave(w, node->inputs[k], n, reference, &live);
        for (int k = 0; k < node->output_count; k++)
            leave(w, node->outputs[k], n, reference, &live);
    }
    if (!reference)
        return peak;
    return updates ? peak + live : fmax(peak, 2 * live); /* and what they are compared with */
}

/* In the executable some nodes only rename memory; the reference copies it. */
static void find_roots(struct walk *w, bool reference)
{
    const struct graph *g = w->g;
    graph_last_uses(g, w->last);
    for (int v = 0; v < g->value_count; v++)
        w->root[v] = v;
    for (int n = 0; n < g->node_count && !reference; n++) {
        const struct node *node = &g->nodes[n];
        if (node->dead || !node->op->alias || node->outputs[0] == NONE || node->inputs[0] == NONE)
            continue;
        int root = w->root[node->inputs[0]], out = node->outputs[0];
        w->root[out] = root;
        w->last[root] = w->last[out] > w->last[root] ? w->last[out] : w->last[root];
    }
}

/* Whether what follows a state is computed in its place. */
static bool is_in_place(const struct graph *g, const struct state *state)
{
    const struct value *after = state->after == NONE ? NULL : &g->values[state->after];
    if (!after || after->producer == NONE)
        return false;
    const struct node *node = &g->nodes[after->producer];
    int bit = after->producer_out < 31 ? after->producer_out : 31;
    for (int k = 0; k < node->op_inputs; k++)
        if (node->inputs[k] == state->before)
            return node->op->in_place >> bit & 1;
    return false;
}

static void activations_need(struct walk *w, struct memory_need *need)
{
    const struct graph *g = w->g;
    double largest = 0;
    for (int n = 0; n < g->node_count; n++)
        if (!g->nodes[n].dead)
            largest = fmax(largest, scratch_of(w, &g->nodes[n]));
    find_roots(w, false);
    for (int s = 0; s < g->state_count; s++) {
        need->states += value_bytes(&g->values[g->states[s].before]);
        bool over = is_in_place(g, &g->states[s]);
        for (int v = 0; over && v < g->value_count; v++)
            if (w->root[v] == g->states[s].after)
                w->root[v] = g->states[s].before;
    }
    need->activations = peak_of(w, false) + largest;
    if (w->options->threads > 2)
        need->activations += (w->options->threads - 2) * thread_scratch;
    for (int k = 0; k < g->input_count; k++)
        if (g->values[g->inputs[k]].kind != VALUE_STATE)
            need->activations += value_bytes(&g->values[g->inputs[k]]);
}

enum status graph_need(const struct graph *graph, const struct exe_options *options,
                       struct memory_need *need, struct error *err)
{
    size_t count = (size_t)graph->value_count + 1;
    struct walk w = {.g = graph,
                     .options = options,
                     .root = calloc(count, sizeof(*w.root)),
                     .last = calloc(count, sizeof(*w.last)),
                     .held = calloc(count, sizeof(*w.held)),
                     .kept = calloc(count, sizeof(*w.kept))};
    *need = (struct memory_need){.weights = 0};
    bool fine = w.root && w.last && w.held && w.kept;
    if (fine) {
        find_roots(&w, true);
        for (int v = 0; v < graph->value_count; v++)
            if (value_is_fixed(&graph->values[v]) && w.last[v] != NONE)
                need->weights += value_bytes(&graph->values[v]);
        compile_need(&w, need);
        need->reference = peak_of(&w, true);
        activations_need(&w, need);
        need->run = need->prepared + need->states + need->activations;
    }
    free(w.root);
    free(w.last);
    free(w.held);
    free(w.kept);
    return fine ? STATUS_OK : FAIL_NO_MEMORY(err);
}
