/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/model/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/ops/family/narrow.h"
#include "engine/reference/ref_odd.h"
#include "engine/reference/reference.h"
#include "harness/model/decisions.h"
#include "harness/model/roundings.h"

/* ---- bounds ---- */

/* Integers alone leave nothing to round. */
static bool is_exact(const struct graph *graph)
{
    for (int v = 0; v < graph->value_count; v++)
        if (dtype_is_float(graph->values[v].dtype))
            return false;
    return true;
}

/* How often the node rounds to few bits: its result, or with tf32 the factors of a product. */
static int roundings_of(const struct graph *g, const struct node *node, enum precision precision)
{
    enum narrow_class class = narrow_class_of(node->op);
    if (precision == PRECISION_TF32)
        return class == NARROW_WORK;
    int v = node->outputs[0];
    enum dtype type = v == NONE ? DTYPE_NONE : g->values[v].dtype;
    bool moves = class == NARROW_MOVE && !node->post_count;
    double unit = narrow_unit(type);
    return moves || unit == 0 ? 0 : (int)(narrow_tolerance(node->op, type) / unit);
}

int verify_depth(const struct graph *g, node_weight *weight, enum precision precision)
{
    int *depth = calloc((size_t)g->value_count + 1, sizeof(*depth)), deepest = 0;
    if (!depth)
        return 0;
    for (int n = 0; n < g->node_count; n++) {
        const struct node *node = &g->nodes[n];
        int at = 0;
        for (int k = 0; k < node->input_count; k++)
            if (node->inputs[k] != NONE && depth[node->inputs[k]] > at)
                at = depth[node->inputs[k]];
        at += weight(g, node, precision);
        deepest = at > deepest ? at : deepest;
        for (int k = 0; k < node->output_count; k++)
            if (node->outputs[k] != NONE)
                depth[node->outputs[k]] = at;
    }
    free(depth);
    return deepest;
}

/* Half a unit of the narrowest results, be they asked for or those of a model file. */
static double unit_of(const struct graph *g, enum precision precision)
{
    bool bf16 = precision == PRECISION_BF16 || precision == PRECISION_F8; /* results of f8 */
    double unit = bf16                                                        ? 0x1p-8
                  : precision == PRECISION_F16 || precision == PRECISION_TF32 ? 0x1p-11
                                                                              : 0;
    for (int v = 0; v < g->value_count; v++)
        if (g->values[v].producer != NONE && !g->nodes[g->values[v].producer].dead)
            unit = fmax(unit, narrow_unit(g->values[v].dtype) / 2);
    return unit;
}

double verify_bound(const struct graph *compiled, enum precision precision)
{
    double unit = unit_of(compiled, precision);
    return unit > 0
               ? fmax(1e-5, 2 * unit * sqrt(1 + verify_depth(compiled, roundings_of, precision)))
               : 1e-5;
}

static double bound_of(const struct graph *graph, const struct exe *exe)
{
    double bound = is_exact(graph) ? 0 : verify_bound(exe_graph(exe), exe_precision(exe));
    for (int s = 0; s < exe_step_count(exe); s++)
        bound = fmax(bound, exe_step_at(exe, s).kernel->rel_error);
    return bound;
}

/* ---- comparing ---- */

static bool is_set(const struct graph *graph, const struct value *value)
{
    unsigned sets = value->producer == NONE ? 0 : graph->nodes[value->producer].op->row_sets;
    return sets >> value->producer_out & 1;
}

/* Of a name from a file. */
static void copy_printable(char *to, size_t size, const char *name)
{
    snprintf(to, size, "%s", name);
    for (char *at = to; *at; at++)
        *at = (char)((unsigned char)*at < ' ' || *at == 127 ? '?' : *at);
}

/* The first output with something odd gives the reason, and the first with NaN in both the note. */
static void note_odd(const struct value *value, const struct ref_odd *odd, struct verification *out)
{
    char text[160], name[48];
    copy_printable(name, sizeof(name), value->name);
    ref_odd_text(odd, &value->shape, text, sizeof(text));
    if (text[0] && !out->odd[0])
        snprintf(out->odd, sizeof(out->odd), "%s of output %s", text, name);
    out->both_nan += odd->both_nan;
    if (odd->both_nan && !out->note[0])
        snprintf(out->note, sizeof(out->note),
                 "output %s has %lld NaN, where the reference has NaN, too", name,
                 (long long)odd->both_nan);
}

static double error_of(const struct ref_tensor *got, const struct ref_tensor *expected, bool set,
                       const struct ref_odd *odd)
{
    double error = set ? ref_set_error(got, expected) : ref_rel_error(got, expected);
    bool odd_float = ref_odd_is_wrong(odd) && !odd->integers;
    return isnan(error) || odd_float ? (double)INFINITY : error;
}

static enum status compare(const struct graph *graph, const struct exe *exe,
                           const struct ref_tensor *expected, struct verification *out,
                           struct error *err)
{
    out->error = 0;
    for (int k = 0; k < graph->output_count; k++) {
        const struct value *value = &graph->values[graph->outputs[k]];
        struct ref_tensor got;
        TRY(ref_from_data(&got, value->dtype, &value->shape, exe_output(exe, k), err));
        struct ref_odd odd;
        bool set = is_set(graph, value);
        ref_odd_count(&got, &expected[k], set, &odd);
        note_odd(value, &odd, out);
        out->error = fmax(out->error, error_of(&got, &expected[k], set, &odd));
        ref_release(&got);
    }
    return STATUS_OK;
}

/* Twice, since the second run is what is timed; from the same states. */
static void run_twice(struct exe *exe)
{
    exe_run(exe);
    exe_reset(exe);
    exe_run(exe);
}

static enum status verify_outputs(const struct graph *graph, struct exe *exe,
                                  struct verification *out, struct error *err)
{
    *out =
        (struct verification){.error = NAN, .bound = bound_of(graph, exe), .how = "reference f64"};
    struct ref_tensor *expected = calloc((size_t)graph->output_count, sizeof(*expected));
    if (!expected)
        return FAIL_NO_MEMORY(err);
    run_twice(exe);
    enum status status = exe_status(exe, err);
    if (status == STATUS_OK)
        status = reference_run(graph, NULL, expected, exe_pool(exe), err);
    if (status == STATUS_OK)
        status = compare(graph, exe, expected, out, err);
    if (status == STATUS_OK)
        status = exe_status(exe, err); /* of the copies */
    for (int k = 0; k < graph->output_count; k++)
        ref_release(&expected[k]);
    free(expected);
    return status;
}

static bool is_fine(const struct verification *v)
{
    return v->error <= v->bound;
}

/* ---- roundings to integers ---- */

static void note_roundings(const struct roundings *r, struct verification *out)
{
    size_t used = strlen(out->note);
    char name[48];
    if (r->ties)
        snprintf(out->note + used, sizeof(out->note) - used,
                 "%s%lld of %lld roundings fell on the other side of a tie", used ? "; " : "",
                 (long long)r->ties, (long long)r->count);
    used = strlen(out->note);
    if (r->other_choices)
        snprintf(out->note + used, sizeof(out->note) - used,
                 "%s%lld of %lld choices of experts are others than the reference's",
                 used ? "; " : "", (long long)r->other_choices, (long long)r->choices);
    if (!r->wrong)
        return;
    copy_printable(name, sizeof(name), r->first->name);
    snprintf(out->odd, sizeof(out->odd), "%s of %s", r->odd, name);
    out->error = (double)INFINITY;
}

/* Where the roundings are right and what comes after them is, but not in the executable itself. */
static enum status note_other(const struct graph *graph, const struct roundings *r,
                              const struct ref_tensor *expected, struct verification *out,
                              struct error *err)
{
    struct verification of_made = {.bound = out->bound};
    if (is_fine(out) || r->wrong)
        return STATUS_OK;
    TRY(compare(graph, r->made, expected, &of_made, err));
    if (is_fine(&of_made))
        snprintf(out->odd, sizeof(out->odd),
                 "it computes something else than the same network with its roundings as outputs");
    return STATUS_OK;
}

/* The executable against the reference that rounds as r->made does. */
static enum status compare_rounded(const struct graph *graph, const struct exe *exe,
                                   struct roundings *r, struct verification *out, struct error *err)
{
    struct ref_tensor *expected = calloc((size_t)graph->output_count, sizeof(*expected));
    if (!expected)
        return FAIL_NO_MEMORY(err);
    enum status status = roundings_follow(r, graph, expected, err);
    if (status == STATUS_OK)
        status = compare(graph, exe, expected, out, err);
    if (status == STATUS_OK)
        status = note_other(graph, r, expected, out, err);
    if (status == STATUS_OK)
        status = exe_status(r->made, err); /* of the copies */
    for (int k = 0; k < graph->output_count; k++)
        ref_release(&expected[k]);
    free(expected);
    if (status == STATUS_OK)
        out->error = fmax(out->error, r->chosen_by);
    if (status == STATUS_OK)
        note_roundings(r, out);
    return status;
}

/* An executable that shows the roundings is made in the same way, by the kernels that the tuner
 * knows from the first; it shows what the first one does inside where the outputs of both agree. */
static enum status verify_roundings(const struct graph *graph, const struct graph *with,
                                    struct exe *exe, struct verification *out, struct error *err)
{
    struct exe_options options = *exe_options(exe);
    struct roundings r = {.with = with, .bound = fmax(1e-5, out->bound)};
    *out = (struct verification){
        .error = NAN, .bound = out->bound, .how = "reference f64, its roundings followed"};
    options.pool = exe_pool(exe);
    options.retune = false;
    TRY(exe_new(with, &options, &r.made, err));
    run_twice(r.made);
    enum status status = exe_status(r.made, err);
    if (status == STATUS_OK)
        status = compare_rounded(graph, exe, &r, out, err);
    exe_free(r.made);
    return status;
}

/* The network as a whole; where that is off and it rounds to integers or chooses experts, with
 * these followed. */
static enum status verify_whole(const struct graph *graph, struct exe *exe,
                                struct verification *out, struct error *err)
{
    struct graph *with = NULL;
    TRY(verify_outputs(graph, exe, out, err));
    if (is_fine(out))
        return STATUS_OK;
    TRY(graph_with_roundings(graph, &with, err));
    enum status status = with ? verify_roundings(graph, with, exe, out, err) : STATUS_OK;
    graph_free(with);
    return status;
}

/* ---- decisions ---- */

/* Compares the values on which decisions are made, computed by an executable that is compiled in
 * the same way; with after_too also what follows from exactly these values. The result is that of
 * the worse half. */
static enum status verify_decisions(const struct graph *graph, const struct graph *before,
                                    struct exe *exe, bool after_too, struct verification *out,
                                    struct error *err)
{
    struct exe_options options = *exe_options(exe);
    struct verification second;
    struct graph *after = NULL;
    struct exe *made = NULL;
    options.pool = exe_pool(exe);
    TRY(exe_new(before, &options, &made, err));
    enum status status = verify_whole(before, made, out, err);
    out->how = "reference f64, before decisions";
    if (status == STATUS_OK && after_too)
        status = graph_after_decisions(graph, before, made, &after, err);
    if (status == STATUS_OK && after)
        status = verify_whole(after, exe, &second, err);
    if (status == STATUS_OK && after) {
        if (is_fine(out) && (!is_fine(&second) || second.error > out->error))
            *out = second;
        out->how = "reference f64, before and after decisions";
    }
    graph_free(after);
    exe_free(made);
    return status;
}

/* ---- NaN after decisions ---- */

static bool has_odd(const struct ref_tensor *t)
{
    if (t->f)
        for (int64_t k = 0; k < t->count; k++)
            if (!isfinite(t->f[k]))
                return true;
    return false;
}

/* Whether an output has NaN or infinities. */
static enum status find_odd(const struct graph *graph, const struct exe *exe, bool *found,
                            struct error *err)
{
    *found = false;
    for (int k = 0; k < graph->output_count && !*found; k++) {
        const struct value *value = &graph->values[graph->outputs[k]];
        struct ref_tensor got;
        TRY(ref_from_data(&got, value->dtype, &value->shape, exe_output(exe, k), err));
        *found = has_odd(&got);
        ref_release(&got);
    }
    return STATUS_OK;
}

static enum status count_outputs(const struct graph *graph, const struct exe *exe,
                                 const struct ref_tensor *expected, struct verification *out,
                                 struct error *err)
{
    for (int k = 0; k < graph->output_count; k++) {
        const struct value *value = &graph->values[graph->outputs[k]];
        struct ref_tensor got;
        struct ref_odd odd;
        TRY(ref_from_data(&got, value->dtype, &value->shape, exe_output(exe, k), err));
        ref_odd_count(&got, &expected[k], true, &odd);
        ref_release(&got);
        odd.lost = odd.integers = 0; /* these follow from what was decided */
        if (ref_odd_is_wrong(&odd))
            out->error = (double)INFINITY;
        note_odd(value, &odd, out);
    }
    return STATUS_OK;
}

/* What follows from decisions may differ in low precision, but it may have no more NaN than the
 * reference: so their number is compared. */
static enum status verify_numbers(const struct graph *graph, struct exe *exe,
                                  struct verification *out, struct error *err)
{
    bool found;
    exe_run(exe);
    TRY(exe_status(exe, err));
    TRY(find_odd(graph, exe, &found, err));
    if (!found)
        return exe_status(exe, err);
    struct ref_tensor *expected = calloc((size_t)graph->output_count, sizeof(*expected));
    if (!expected)
        return FAIL_NO_MEMORY(err);
    enum status status = reference_run(graph, NULL, expected, exe_pool(exe), err);
    if (status == STATUS_OK)
        status = count_outputs(graph, exe, expected, out, err);
    for (int k = 0; k < graph->output_count; k++)
        ref_release(&expected[k]);
    free(expected);
    return status;
}

enum status verify_exe(const struct graph *graph, struct exe *exe, struct verification *out,
                       struct error *err)
{
    struct graph *before = NULL;
    bool whole = exe_precision(exe) == PRECISION_F32;
    *out = (struct verification){.error = NAN, .bound = NAN, .how = ""};
    if (whole) {
        TRY(verify_whole(graph, exe, out, err));
        if (is_fine(out))
            return STATUS_OK;
    }
    TRY(graph_before_decisions(graph, &before, err));
    enum status status = before  ? verify_decisions(graph, before, exe, whole, out, err)
                         : whole ? STATUS_OK
                                 : verify_whole(graph, exe, out, err);
    if (status == STATUS_OK && before && !whole && is_fine(out))
        status = verify_numbers(graph, exe, out, err);
    graph_free(before);
    return status;
}
