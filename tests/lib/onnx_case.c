/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/onnx_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "engine/compile/compile.h"
#include "workloads/onnx/onnx.h"

enum { TENSORS_MAX = 64, PATH_BYTES = 512 };

struct onnx_case {
    char folder[PATH_BYTES];
    struct file model;
    struct onnx_interface interface;
    struct onnx_binding bindings[TENSORS_MAX];
    void *inputs[TENSORS_MAX]; /* the bindings' contents */
    int binding_count;
    struct onnx_binding expected[TENSORS_MAX];
    void *outputs[TENSORS_MAX];
    int output_count;
    struct graph *g;
};

/* numpy has no bfloat16: the test data hold its bits as u16. */
static enum status load_tensor(const char *path, const struct onnx_port *port, struct desc *desc,
                               void **data, struct error *err)
{
    struct file file;
    TRY(file_map(path, &file, err));
    enum status status = onnx_tensor_parse(file.data, file.size, desc, data, NULL, err);
    file_unmap(&file);
    if (status == STATUS_OK && desc->dtype == DTYPE_U16 && port->dtype == DTYPE_BF16)
        desc->dtype = DTYPE_BF16;
    return status == STATUS_OK ? status : error_context(err, "%s", path);
}

/* Inputs that are no tensors of ours stay unbound: the importer says why it refuses them. */
static void load_inputs(struct onnx_case *c)
{
    for (int k = 0; k < c->interface.input_count && k < TENSORS_MAX; k++) {
        char path[PATH_BYTES + 64];
        struct error ignored;
        struct onnx_binding *binding = &c->bindings[c->binding_count];
        void **data = &c->inputs[c->binding_count];
        snprintf(path, sizeof(path), "%s/test_data_set_0/input_%d.pb", c->folder, k);
        const struct onnx_port *port = &c->interface.ports[k];
        if (load_tensor(path, port, &binding->desc, data, &ignored) != STATUS_OK)
            continue;
        binding->name = port->name;
        binding->data = *data;
        c->binding_count++;
    }
}

static enum status load_outputs(struct onnx_case *c, struct error *err)
{
    for (int k = 0; k < c->interface.output_count && k < TENSORS_MAX; k++) {
        char path[PATH_BYTES + 64];
        snprintf(path, sizeof(path), "%s/test_data_set_0/output_%d.pb", c->folder, k);
        const struct onnx_port *port = &c->interface.ports[c->interface.input_count + k];
        TRY(load_tensor(path, port, &c->expected[k].desc, &c->outputs[k], err));
        c->output_count++;
    }
    return STATUS_OK;
}

/* Counts of outputs of unknown size become outputs too, so that they can be read. */
static void add_counts(struct graph *g)
{
    int outputs = g->output_count;
    for (int k = 0; k < outputs; k++)
        if (g->values[g->outputs[k]].count != NONE)
            graph_output(g, g->values[g->outputs[k]].count);
}

static enum status open_case(struct onnx_case *c, char op[64], struct error *err)
{
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof(path), "%s/model.onnx", c->folder);
    TRY(file_map(path, &c->model, err));
    TRY(onnx_interface(c->model.data, c->model.size, &c->interface, err));
    snprintf(op, 64, "%s", c->interface.op);
    load_inputs(c);
    struct onnx_import_options options = {.bindings = c->bindings,
                                          .binding_count = c->binding_count};
    TRY(onnx_import_memory(c->model.data, c->model.size, c->folder, "model.onnx", &options, &c->g,
                           err));
    add_counts(c->g);
    return load_outputs(c, err);
}

enum status onnx_case_open(const char *folder, struct onnx_case **out, char op[64],
                           struct error *err)
{
    *out = NULL;
    op[0] = 0;
    struct onnx_case *c = calloc(1, sizeof(*c));
    if (!c)
        return FAIL_NO_MEMORY(err);
    snprintf(c->folder, sizeof(c->folder), "%s", folder);
    enum status status = open_case(c, op, err);
    if (status == STATUS_OK)
        *out = c;
    else
        onnx_case_close(c);
    return status;
}

void onnx_case_close(struct onnx_case *c)
{
    if (!c)
        return;
    graph_free(c->g);
    for (int k = 0; k < TENSORS_MAX; k++) {
        free(c->inputs[k]);
        free(c->outputs[k]);
    }
    free(c->interface.ports);
    file_unmap(&c->model);
    free(c);
}

const struct graph *onnx_case_graph(const struct onnx_case *c)
{
    return c->g;
}

/* ---- running ---- */

static void set_inputs(const struct onnx_case *c, struct exe *exe)
{
    for (int i = 0; i < c->g->input_count; i++) {
        const struct value *value = &c->g->values[c->g->inputs[i]];
        for (int k = 0; k < c->binding_count; k++)
            if (strcmp(c->bindings[k].name, value->name) == 0)
                memcpy(exe_input(exe, i), c->bindings[k].data, desc_bytes(&c->bindings[k].desc));
    }
}

/* How many entries along count_axis are real. */
static int64_t real_rows(const struct onnx_case *c, const struct exe *exe,
                         const struct value *value)
{
    for (int k = 0; k < c->g->output_count; k++)
        if (c->g->outputs[k] == value->count)
            return *(const int64_t *)exe_output(exe, k);
    return 0;
}

/* The tensor without its padding. */
static enum status crop(struct ref_tensor *got, int axis, int64_t rows, struct error *err)
{
    struct ref_tensor whole = *got;
    struct shape shape = whole.shape;
    if (rows < 0 || rows > shape.dim[axis])
        return FAIL(err, STATUS_INVALID, "%lld entries of %lld are said to be real",
                    (long long)rows, (long long)shape.dim[axis]);
    int64_t inner = shape_span(&shape, axis + 1, shape.rank), full = shape.dim[axis] * inner;
    int64_t outer = shape_span(&shape, 0, axis), part = rows * inner;
    for (int64_t n = 0; n < outer; n++) {
        if (got->f)
            memmove(got->f + n * part, got->f + n * full, (size_t)part * 8);
        else
            memmove(got->i + n * part, got->i + n * full, (size_t)part * 8);
    }
    got->shape.dim[axis] = rows;
    got->count = outer * part;
    return STATUS_OK;
}

/* The data of onnx 1.12 truncate to bf16 where the standard now rounds: one unit of difference. */
static double tolerance_of(enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? 0x1p-7 : 1e-3;
}

/* What the rounding of sums may leave where they cancel: it follows the greatest value. */
static double residue_of(const struct ref_tensor *want)
{
    double greatest = 1;
    for (int64_t k = 0; want->f && k < want->count; k++)
        greatest = isfinite(want->f[k]) ? fmax(greatest, fabs(want->f[k])) : greatest;
    return 1e-7 * greatest;
}

static enum status compare(const struct ref_tensor *got, const struct ref_tensor *want,
                           struct error *err)
{
    char a[96], b[96];
    double tolerance = tolerance_of(want->dtype), residue = residue_of(want);
    if (got->dtype != want->dtype || !shape_equal(&got->shape, &want->shape))
        return FAIL(err, STATUS_INVALID, "%s%s instead of %s%s", dtype_name(got->dtype),
                    shape_text(&got->shape, a), dtype_name(want->dtype),
                    shape_text(&want->shape, b));
    for (int64_t k = 0; k < want->count; k++) {
        double x = ref_get(got, k), y = ref_get(want, k);
        bool same = x == y || (isnan(x) && isnan(y)) ||
                    (want->f && isfinite(y) && fabs(x - y) <= residue + tolerance * fabs(y));
        if (!same)
            return FAIL(err, STATUS_INVALID, "%.9g instead of %.9g at element %lld", x, y,
                        (long long)k);
    }
    return STATUS_OK;
}

static enum status check_output(const struct onnx_case *c, const struct exe *exe, int k,
                                struct error *err)
{
    struct ref_tensor got = {0}, want = {0};
    const struct value *value = &c->g->values[c->g->outputs[k]];
    const struct desc *desc = &c->expected[k].desc;
    enum status status = ref_from_data(&got, value->dtype, &value->shape, exe_output(exe, k), err);
    if (status == STATUS_OK)
        status = ref_from_data(&want, desc->dtype, &desc->shape, c->outputs[k], err);
    if (status == STATUS_OK && value->count != NONE)
        status = crop(&got, value->count_axis, real_rows(c, exe, value), err);
    if (status == STATUS_OK)
        status = compare(&got, &want, err);
    ref_release(&got);
    ref_release(&want);
    return status == STATUS_OK ? status : error_context(err, "output %d", k);
}

enum status onnx_case_check(const struct onnx_case *c, const struct exe_options *options,
                            struct error *err)
{
    struct exe *exe;
    TRY(exe_new(c->g, options, &exe, err));
    enum status status = STATUS_OK;
    for (int run = 0; run < 2 && status == STATUS_OK; run++) {
        set_inputs(c, exe);
        exe_run(exe);
        for (int k = 0; k < c->output_count && status == STATUS_OK; k++)
            status = check_output(c, exe, k, err);
    }
    exe_free(exe);
    return status;
}
