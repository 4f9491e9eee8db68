/* SPDX-License-Identifier: Apache-2.0
 *
 * Which nodes of a graph the CPU's kernels compute with floats of 16 bits: those are asked, with
 * the tensors that a node would have. What none of them accepts stays f32. The reference counts
 * where it was asked for by name. */
#include <stdlib.h>

#include "engine/compile/passes/rewrite.h"
#include "engine/compile/stages.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/narrow.h"
#include "engine/run/device.h"
#include "engine/run/kernels.h"
#include "engine/run/provider.h"

/* A node as the kernels would see it. */
struct asked {
    const struct graph *g;
    const struct node *node;
    enum dtype floats;
    enum layout layout; /* of images */
    struct desc *descs; /* inputs, then outputs */
    const void **fixed;
    void **made; /* of fixed: to be freed */
};

/* Numbers that a plan may want to read: shapes, factors, clamps. */
enum { READ_MAX = 4096 };

static struct desc desc_of(const struct asked *a, int v, bool narrow)
{
    const struct value *value = &a->g->values[v];
    bool image = value->shape.rank >= 3 && !value_is_fixed(value);
    enum dtype dtype = narrow && value->dtype == DTYPE_F32 ? a->floats : value->dtype;
    return desc_dense(dtype, &value->shape, image ? a->layout : LAYOUT_PLAIN);
}

/* What is known of a fixed value, in the type that it would have. Large weights are only shown to
 * be there: zeros, which cost no memory before they are read. */
static enum status show_fixed(struct asked *a, int k, enum dtype dtype, struct error *err)
{
    const struct value *value = &a->g->values[a->node->inputs[k]];
    int64_t count = shape_count(&value->shape);
    if (value->data && value->dtype == dtype) {
        a->fixed[k] = value->data;
        return STATUS_OK;
    }
    a->fixed[k] = a->made[k] = calloc((size_t)count + 1, dtype_size(dtype));
    if (!a->made[k])
        return FAIL_NO_MEMORY(err);
    if (count > READ_MAX)
        return STATUS_OK;
    if (value->dtype == dtype) {
        value_materialise(value, a->made[k]);
        return STATUS_OK;
    }
    float numbers[READ_MAX];
    value_materialise(value, numbers);
    floats_store(dtype, numbers, a->made[k], count);
    return STATUS_OK;
}

static enum status describe(struct asked *a, struct error *err)
{
    const struct node *node = a->node;
    for (int k = 0; k < node->input_count; k++) {
        int v = node->inputs[k];
        if (v == NONE)
            continue;
        a->descs[k] = desc_of(a, v, k >= node->op_inputs || narrow_takes(node->op, k));
        if (value_is_fixed(&a->g->values[v]))
            TRY(show_fixed(a, k, a->descs[k].dtype, err));
    }
    for (int k = 0; k < node->output_count; k++) {
        struct desc *out = &a->descs[node->input_count + k]; /* of zeros so far */
        if (node->outputs[k] != NONE)
            *out = desc_of(a, node->outputs[k], true);
    }
    return STATUS_OK;
}

static bool is_accepted(const struct asked *a, const struct exe_options *options)
{
    const struct node *node = a->node;
    struct error why;
    struct kernel_query q = {.node = node,
                             .in_count = node->input_count,
                             .out_count = node->output_count,
                             .in = a->descs,
                             .out = a->descs + node->input_count,
                             .fixed = a->fixed,
                             .threads = 1};
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        bool wanted = kernel_is_reference(kernel)
                          ? provider_named(options->providers, kernel->provider)
                          : provider_allowed(options->providers, kernel->provider);
        if (wanted && !kernel->device && kernel->isa <= options->isa &&
            kernel_computes(kernel, node->op) && kernel_accepts(kernel, &q, &why) == STATUS_OK)
            return true;
    }
    return false;
}

static enum status judge(const void *context, const struct graph *g, int n, bool *narrow,
                         struct error *err)
{
    const struct exe_options *options = context;
    const struct node *node = &g->nodes[n];
    size_t ins = (size_t)node->input_count + 1, all = ins + (size_t)node->output_count;
    struct asked a = {.g = g, .node = node, .floats = precision_floats(options->precision)};
    bool images = node->op->layout == LAYOUT_RULE_CHANNELS_LAST;
    a.layout = images ? LAYOUT_NHWC : LAYOUT_PLAIN;
    a.descs = calloc(all, sizeof(*a.descs));
    a.fixed = calloc(ins, sizeof(*a.fixed));
    a.made = calloc(ins, sizeof(*a.made));
    enum status status = a.descs && a.fixed && a.made ? describe(&a, err) : FAIL_NO_MEMORY(err);
    *narrow = status == STATUS_OK && (node->op->alias || is_accepted(&a, options));
    for (size_t k = 0; a.made && k < ins; k++)
        free(a.made[k]);
    free(a.descs);
    free(a.fixed);
    free(a.made);
    return status;
}

struct narrow_judge narrow_judge_of(const struct exe_options *options)
{
    bool host = device_is_host(options->device);
    return (struct narrow_judge){host ? judge : NULL, options};
}
