/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/verify.h"

#include <math.h>
#include <stdlib.h>

/* Integers alone leave nothing to round. */
static bool is_exact(const struct graph *graph)
{
    for (int v = 0; v < graph->value_count; v++)
        if (dtype_is_float(graph->values[v].dtype))
            return false;
    return true;
}

static double bound_of(const struct graph *graph, const struct exe *exe)
{
    double bound = is_exact(graph) ? 0 : 1e-5;
    for (int s = 0; s < exe_step_count(exe); s++)
        bound = fmax(bound, exe_step_at(exe, s).kernel->rel_error);
    return bound;
}

static bool is_set(const struct graph *graph, const struct value *value)
{
    unsigned sets = value->producer == NONE ? 0 : graph->nodes[value->producer].op->row_sets;
    return sets >> value->producer_out & 1;
}

static enum status compare(const struct graph *graph, const struct exe *exe,
                           const struct ref_tensor *expected, double *worst, struct error *err)
{
    *worst = 0;
    for (int k = 0; k < graph->output_count; k++) {
        const struct value *value = &graph->values[graph->outputs[k]];
        struct ref_tensor got;
        TRY(ref_from_data(&got, value->dtype, &value->shape, exe_output(exe, k), err));
        double error = is_set(graph, value) ? ref_set_error(&got, &expected[k])
                                            : ref_rel_error(&got, &expected[k]);
        *worst = fmax(*worst, error);
        ref_release(&got);
    }
    return STATUS_OK;
}

enum status verify_exe(const struct graph *graph, struct exe *exe, struct verification *out,
                       struct error *err)
{
    *out = (struct verification){.error = NAN, .bound = bound_of(graph, exe)};
    struct ref_tensor *expected = calloc((size_t)graph->output_count, sizeof(*expected));
    if (!expected)
        return FAIL_NO_MEMORY(err);
    exe_run(exe);
    exe_run(exe);
    enum status status = exe_status(exe, err);
    if (status == STATUS_OK)
        status = reference_run(graph, NULL, expected, exe_pool(exe), err);
    if (status == STATUS_OK)
        status = compare(graph, exe, expected, &out->error, err);
    if (status == STATUS_OK)
        status = exe_status(exe, err); /* of the copies */
    for (int k = 0; k < graph->output_count; k++)
        ref_release(&expected[k]);
    free(expected);
    return status;
}
