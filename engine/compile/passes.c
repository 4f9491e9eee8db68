/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/compile/passes/rewrite.h"
#include "engine/compile/stages.h"

struct pass_row {
    const char *name;
    graph_pass *run;
    bool always; /* also with no_fuse: what kernels rely on */
    bool f8;     /* only where that precision was asked for */
    bool early;  /* before gradients are added, too */
    bool host;   /* not for devices, whose kernels cannot do what it leaves */
};

static const struct pass_row rows[] = {
    {"normalise", pass_normalise, true, false, true},
    {"absorb_f8", pass_absorb_f8, true, true, false}, /* before constant factors become wide */
    /* Its sums have an operand that repeats rows, which no device's epilogue takes. */
    {"share_product", pass_share_product, false, false, true, .host = true},
    {"fold_constants", pass_fold_constants, false, false, false},
    {"turn_conv_transpose", pass_turn_conv_transpose, false, false, false},
    {"fold_batch_norm", pass_fold_batch_norm, false, false, false},
    {"fuse_concat_norm", pass_fuse_concat_norm, false, false, false},
    {"find_gelu", pass_find_gelu, false, false, true},
    {"find_layer_norm", pass_find_layer_norm, false, false, true},
    {"find_attention", pass_find_attention, false, false, false},
    {"update_rows", pass_update_rows, false, false, false}, /* while sums are Adds */
    {"fuse_gate", pass_fuse_gate, false, false, false},     /* while ReLUs are nodes */
    {"fuse_epilogue", pass_fuse_epilogue, false, false, false},
    {"merge_qkv", pass_merge_qkv, false, false, false},
    {"absorb_transpose", pass_absorb_transpose, false, false, false}, /* attention's are gone */
    {"fuse_epilogue again", pass_fuse_epilogue, false, false,
     false}, /* the merged product's bias */
    {"fuse_chain", pass_fuse_chain, false, false, false},
};

static enum status end_pass(struct graph *g, const char *name, enum status status,
                            struct error *err)
{
    if (status != STATUS_OK)
        return error_context(err, "pass %s", name);
    graph_compact(g);
    if (graph_check(g, err) != STATUS_OK)
        return error_context(err, "after pass %s", name);
    return STATUS_OK;
}

/* Runs one pass and notes by how much it changed the work. */
static enum status run_pass(struct graph *g, const struct pass_row *row, struct pass_log *log,
                            struct error *err)
{
    double before = log ? graph_flops(g) : 0;
    TRY(end_pass(g, row->name, row->run(g, err), err));
    double change = log ? graph_flops(g) - before : 0;
    if (change != 0)
        log->changes[log->count++] = (struct pass_change){row->name, change};
    return STATUS_OK;
}

static bool for_device(const struct exe_options *options)
{
    return options->device && strcmp(options->device, "cpu") != 0;
}

enum status passes_run(struct graph *g, const struct exe_options *options, struct pass_log *log,
                       struct error *err)
{
    _Static_assert(ARRAY_COUNT(rows) <= PASS_CHANGES_MAX, "every pass may change the work");
    enum dtype floats = precision_floats(options->precision);
    if (log)
        log->count = 0;
    for (int k = 0; k < ARRAY_COUNT(rows); k++)
        if ((!options->no_fuse || rows[k].always) && (!rows[k].host || !for_device(options)) &&
            (!rows[k].f8 || options->precision == PRECISION_F8))
            TRY(run_pass(g, &rows[k], log, err));
    return floats == DTYPE_F32 ? STATUS_OK
                               : end_pass(g, "narrow", pass_narrow(g, floats, err), err);
}

enum status graph_find_patterns(struct graph *graph, struct error *err)
{
    for (int k = 0; k < ARRAY_COUNT(rows); k++)
        if (rows[k].early)
            TRY(run_pass(graph, &rows[k], NULL, err));
    return STATUS_OK;
}

enum status graph_cost_in(const struct graph *graph, enum precision precision,
                          struct graph_cost *cost, struct error *err)
{
    struct exe_options narrowing = {.precision = precision, .no_fuse = true};
    graph_cost(graph, cost);
    if (precision_floats(precision) == DTYPE_F32 && precision != PRECISION_F8)
        return STATUS_OK;
    struct graph *narrow = graph_copy(graph);
    enum status status = narrow ? passes_run(narrow, &narrowing, NULL, err) : FAIL_NO_MEMORY(err);
    if (status == STATUS_OK) {
        struct graph_cost moved;
        graph_cost(narrow, &moved);
        cost->bytes_streamed = moved.bytes_streamed;
        cost->bytes_compulsory = moved.bytes_compulsory;
    }
    graph_free(narrow);
    return status;
}
