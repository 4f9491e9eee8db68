/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/text/options.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/op_index.h"
#include "engine/reference/fold.h"
#include "workloads/onnx/import/import.h"

const char *text_of(const char *text)
{
    return text ? text : "";
}

bool is_onnx_domain(const char *domain)
{
    return !*text_of(domain) || strcmp(domain, "ai.onnx") == 0;
}

/* ONNX Runtime's own operators. */
static bool is_microsoft(const char *domain)
{
    return strcmp(text_of(domain), "com.microsoft") == 0;
}

const struct op *known_operator(const Onnx__NodeProto *node)
{
    const char *name = text_of(node->op_type);
    if (is_microsoft(node->domain))
        return op_find(name, node->domain);
    return is_onnx_domain(node->domain) ? op_find(name, NULL) : NULL;
}

int add_node(struct importer *im, const char *op, int input_count, const int *inputs,
             int attr_count, const struct attr *attrs)
{
    int value = graph_node(im->g, op, NULL, input_count, inputs, attr_count, attrs);
    struct error ignored;
    if (!im->g->failed)
        fold_node(im->g, im->g->node_count - 1, &FOLD_SMALL, &ignored);
    return value;
}

enum status known_int(struct importer *im, int value, int64_t *number, struct error *err)
{
    TRY(fold_value(im->g, value, &FOLD_LARGE, err));
    const struct value *found = &im->g->values[value];
    struct infer c = {.in = (const struct value *const[]){found}, .in_count = 1};
    int count;
    TRY(infer_ints(&c, 0, number, 1, &count, err));
    return count == 1 ? STATUS_OK
                      : FAIL(err, STATUS_FAILED, "\"%s\" should be one number", found->name);
}

/* ---- from the file to a draft ---- */

static enum status read_attrs(struct importer *im, const struct scope *scope,
                              const Onnx__NodeProto *node, struct draft *d, struct error *err)
{
    d->attrs = arena_array(&im->scratch, node->n_attribute + DRAFT_SLACK, sizeof(*d->attrs));
    if (!d->attrs)
        return FAIL_NO_MEMORY(err);
    for (size_t k = 0; k < node->n_attribute; k++) {
        const Onnx__AttributeProto *from = scope_resolve(scope, node->attribute[k]);
        if (!from)
            continue;
        TRY(import_attr(im, from, &d->attrs[d->attr_count], err));
        d->attrs[d->attr_count].name = text_of(node->attribute[k]->name);
        if (draft_attr(d, d->attrs[d->attr_count].name))
            return FAIL(err, STATUS_FAILED, "attribute \"%s\" is given twice",
                        d->attrs[d->attr_count].name);
        d->attr_count++;
    }
    return STATUS_OK;
}

static enum status read_inputs(struct importer *im, const struct scope *scope,
                               const Onnx__NodeProto *node, struct draft *d, struct error *err)
{
    d->inputs = arena_array(&im->scratch, node->n_input + DRAFT_SLACK, sizeof(*d->inputs));
    if (!d->inputs)
        return FAIL_NO_MEMORY(err);
    for (size_t k = 0; k < node->n_input; k++) {
        TRY(scope_get(scope, node->input[k], &d->inputs[k], err));
        if (d->inputs[k] != NONE)
            d->input_count = (int)k + 1; /* absent ones at the end are not there at all */
    }
    for (int k = 0; k < (int)node->n_output; k++)
        if (*node->output[k])
            d->output_count = k + 1;
    return STATUS_OK;
}

static enum status unknown_of_microsoft(const char *op, struct error *err)
{
    char known[256] = "";
    size_t length = 0;
    for (int k = 0; k < op_count(); k++)
        if (is_microsoft(op_at(k)->domain) && length < sizeof(known))
            length += (size_t)snprintf(known + length, sizeof(known) - length, "%s%s",
                                       length ? " and " : "", op_at(k)->name);
    return UNSUPPORTED(err, "operator \"%s\" of domain \"com.microsoft\" is not supported; %s are",
                       op, known);
}

static enum status unknown_operator(const Onnx__NodeProto *node, struct error *err)
{
    enum { WORDS_MAX = 512 };
    const char *words[WORDS_MAX];
    int count = 0;
    for (int k = 0; k < op_count() && count < WORDS_MAX; k++)
        if (!op_at(k)->domain)
            words[count++] = op_at(k)->name;
    const char *op = text_of(node->op_type);
    if (is_microsoft(node->domain))
        return unknown_of_microsoft(op, err);
    if (!is_onnx_domain(node->domain))
        return UNSUPPORTED(err,
                           "operator \"%s\" of domain \"%s\" is not supported; only standard "
                           "ONNX operators and functions of the file itself are",
                           op, node->domain);
    const char *near = nearest_word(op, words, count);
    return UNSUPPORTED(err, "operator \"%s\" is not supported%s%s%s", op,
                       near ? " (the nearest known one is " : "", near ? near : "",
                       near ? ")" : "");
}

/* An attribute that the operator does not know, or of another kind, would change what it means. */
static enum status check_attrs(const struct draft *d, struct error *err)
{
    for (int a = 0; a < d->attr_count; a++) {
        const struct attr *attr = &d->attrs[a];
        bool known = false;
        for (const char *const *name = d->known->attrs; name && *name; name++)
            known = known || strcmp(*name, attr->name) == 0;
        if (!known && strcmp(attr->name, "saturate") != 0) /* concerns 8-bit floats only */
            return UNSUPPORTED(err, "attribute \"%s\" of %s is not supported", attr->name, d->op);
        TRY(check_attr_kind(attr, err));
    }
    return STATUS_OK;
}

/* Contents that decide shapes must be constants; `why` names the first that is not. */
static void fold_const_inputs(struct importer *im, const struct draft *d, struct error *why)
{
    struct error reason;
    for (int k = 0; k < d->input_count && k < 32; k++)
        if (d->known->const_inputs >> k & 1 && d->inputs[k] != NONE &&
            fold_value(im->g, d->inputs[k], &FOLD_LARGE, &reason) != STATUS_OK && !why->code)
            *why = reason;
}

/* ---- from a draft to the graph ---- */

/* Quantised weights stay what they are, for kernels that multiply bytes; no shape is made so. */
static bool is_quantised_list(const struct graph *g, int n)
{
    const struct node *node = &g->nodes[n];
    return node->op == &op_dequantize_linear && g->values[node->inputs[0]].shape.rank > 0;
}

/* Values are named after the outputs in the file, the node after itself. */
static const char *value_name(struct importer *im, const Onnx__NodeProto *node)
{
    if (*node->output[0])
        return node->output[0];
    for (size_t k = 0; k < node->n_output; k++)
        if (*node->output[k])
            return arena_printf(&im->scratch, "%s:absent", node->output[k]);
    return NULL;
}

/* Also of shapes that are too large for an integer. */
static double gigabytes(const struct value *value)
{
    double bytes = (double)dtype_size(value->dtype);
    for (int k = 0; k < value->shape.rank; k++)
        bytes *= (double)value->shape.dim[k];
    return bytes * 1e-9;
}

static enum status check_shapes(const struct graph *g, int count, const int *outputs,
                                struct error *err)
{
    char text[96];
    for (int k = 0; k < count; k++) {
        const struct value *value = &g->values[outputs[k]];
        if (!onnx_shape_sane(&value->shape))
            return FAIL(err, STATUS_FAILED,
                        "output %d would have the shape %s and take %.4g GB; a tensor has at most "
                        "%.3g elements, and 2^31 along an axis",
                        k, shape_text(&value->shape, text), gigabytes(value),
                        (double)ONNX_ELEMENTS_MAX);
    }
    return STATUS_OK;
}

/* Indices that are known now; those that come with the run are looked at by it (exe_run_checked).
 */
static enum status check_indices(const struct graph *g, int n, struct error *err)
{
    const struct node *node = &g->nodes[n];
    if (node->op_inputs < 2 || node->inputs[0] == NONE || node->inputs[1] == NONE)
        return STATUS_OK;
    const struct value *data = &g->values[node->inputs[0]], *index = &g->values[node->inputs[1]];
    if (!value_is_fixed(index) || !index->data)
        return STATUS_OK;
    struct desc desc = desc_dense(index->dtype, &index->shape, LAYOUT_PLAIN);
    return index_check(node, &data->shape, &desc, index->data, err);
}

static enum status add_draft(struct importer *im, const Onnx__NodeProto *node, struct draft *d,
                             int *outputs, struct error *err)
{
    struct graph *g = im->g;
    struct error why = {0};
    TRY(check_draft_types(g, d, err));
    fold_const_inputs(im, d, &why);
    TRY(check_draft_numbers(g, d, err));
    enum status status = graph_node_many(g, d->op, value_name(im, node), d->input_count, d->inputs,
                                         d->attr_count, d->attrs, d->output_count, outputs);
    if (status != STATUS_OK) {
        graph_failed(g, err);
        if (why.code == STATUS_UNSUPPORTED && status == STATUS_UNSUPPORTED)
            return FAIL(err, status,
                        "the contents of an input decide a shape, and %s; give the "
                        "contents with the import, or make it an initializer",
                        why.message);
        return status;
    }
    int n = g->node_count - 1;
    if (d->name && *d->name)
        g->nodes[n].name = arena_strdup(&g->arena, d->name);
    if (!g->nodes[n].name)
        return FAIL_NO_MEMORY(err);
    TRY(check_shapes(g, d->output_count, outputs, err));
    TRY(check_indices(g, n, err));
    TRY(count_outputs(g, n, err));
    struct error ignored;
    if (is_quantised_list(g, n))
        return STATUS_OK;
    status = fold_node(g, n, &FOLD_SMALL, &ignored);
    return status == STATUS_NO_MEMORY ? FAIL_NO_MEMORY(err) : STATUS_OK;
}

static enum status import_plain(struct importer *im, struct scope *scope,
                                const Onnx__NodeProto *node, struct error *err)
{
    struct draft d = {.op = text_of(node->op_type), .name = node->name, .opset = scope->opset};
    d.known = known_operator(node);
    if (!d.known)
        return unknown_operator(node, err);
    TRY(read_inputs(im, scope, node, &d, err));
    TRY(read_attrs(im, scope, node, &d, err));
    if (!d.output_count)
        return STATUS_OK; /* nobody wants it */
    TRY(translate_draft(im, &d, err));
    TRY(check_attrs(&d, err));
    int wanted = d.output_count;
    if (d.known->count_output)
        d.output_count = d.known->count_output + 1;
    int *outputs = arena_array(&im->scratch, (size_t)d.output_count, sizeof(int));
    if (!outputs)
        return FAIL_NO_MEMORY(err);
    if (wanted > d.output_count)
        return FAIL(err, STATUS_FAILED, "%s has no %d outputs", d.op, wanted);
    TRY(add_draft(im, node, &d, outputs, err));
    for (int k = 0; k < wanted; k++)
        TRY(scope_put(im, scope, node->output[k], outputs[k], err));
    return STATUS_OK;
}

/* Our Attention has a domain of its own, and does part of what ONNX's does. */
static bool is_attention(const struct scope *scope, const Onnx__NodeProto *node)
{
    enum { SINCE = 23 };
    return is_onnx_domain(node->domain) && scope->opset >= SINCE &&
           strcmp(text_of(node->op_type), op_attention.name) == 0;
}

static enum status import_attention_node(struct importer *im, struct scope *scope,
                                         const Onnx__NodeProto *node, struct error *err)
{
    struct draft d = {.op = op_attention.name, .name = node->name, .opset = scope->opset};
    int outputs[ATTENTION_OUTPUTS];
    TRY(read_inputs(im, scope, node, &d, err));
    TRY(read_attrs(im, scope, node, &d, err));
    TRY(import_attention(im, &d, node, outputs, err));
    for (size_t k = 0; k < node->n_output; k++)
        TRY(scope_put(im, scope, node->output[k], outputs[k], err));
    return STATUS_OK;
}

/* Constants of tensors are taken as they are; other forms go through the operator. */
static enum status import_constant(struct importer *im, struct scope *scope,
                                   const Onnx__NodeProto *node, struct error *err)
{
    const Onnx__AttributeProto *attr = scope_attr(scope, node, "value");
    if (!attr || !attr->t)
        return import_plain(im, scope, node, err);
    int value;
    if (node->n_output != 1 || node->n_input != 0)
        return FAIL(err, STATUS_FAILED, "a Constant has no inputs and one output");
    TRY(import_tensor(im, node->output[0], attr->t, false, &value, err));
    return scope_put(im, scope, node->output[0], value, err);
}

static enum status dispatch(struct importer *im, struct scope *scope, const Onnx__NodeProto *node,
                            struct error *err)
{
    const Onnx__FunctionProto *function = find_function(im, node);
    if (function)
        return import_call(im, scope, node, function, err);
    if (is_control(node))
        return import_control(im, scope, node, err);
    if (is_onnx_domain(node->domain) && strcmp(text_of(node->op_type), "Constant") == 0)
        return import_constant(im, scope, node, err);
    if (is_attention(scope, node))
        return import_attention_node(im, scope, node, err);
    return import_plain(im, scope, node, err);
}

static enum status import_node(struct importer *im, struct scope *scope,
                               const Onnx__NodeProto *node, struct error *err)
{
    if (node->n_output == 0)
        return STATUS_OK;
    if (node->n_output > 1 << 16 || node->n_input > 1 << 16)
        return UNSUPPORTED(err, "a node with more than 65536 inputs or outputs");
    if (dispatch(im, scope, node, err) == STATUS_OK)
        return STATUS_OK;
    const char *name = *text_of(node->name) ? node->name : node->output[0];
    if (strncmp(err->message, "node \"", 6) == 0) /* the graph has named it already */
        return error_context(err, "%s", text_of(node->op_type));
    return error_context(err, "%s node \"%s\"", text_of(node->op_type), name);
}

enum status import_nodes(struct importer *im, struct scope *scope, size_t count,
                         Onnx__NodeProto *const *nodes, struct error *err)
{
    for (size_t k = 0; k < count; k++)
        TRY(import_node(im, scope, nodes[k], err));
    return STATUS_OK;
}
