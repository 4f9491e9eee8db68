/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/compile/compile.h"
#include "engine/compile/passes/rewrite.h"
#include "engine/compile/stages.h"
#include "engine/run/provider.h"

struct pass_row {
    const char *name;
    graph_pass *run;
    bool always; /* also with no_fuse: what kernels rely on */
    bool f8;     /* only where that precision was asked for */
    bool early;  /* before gradients are added, too */
    bool host;   /* not for devices, whose kernels cannot do what it leaves */
    bool device; /* for devices alone */
    bool native; /* makes what only native kernels compute, of what others can */
};

static const struct pass_row rows[] = {
    {.name = "normalise", .run = pass_normalise, .always = true, .early = true},
    {.name = "absorb_f8",
     .run = pass_absorb_f8,
     .always = true,
     .f8 = true}, /* this and the next five before constant factors become wide */
    {.name = "drop_idle", .run = pass_drop_idle},
    /* On devices, where sums of floats would decide, the exact nodes stay. */
    {.name = "turn_q_linear", .run = pass_turn_q_linear, .host = true},
    {.name = "absorb_bytes", .run = pass_absorb_bytes, .host = true, .native = true},
    {.name = "keep_bytes", .run = pass_keep_bytes, .host = true, .native = true},
    {.name = "absorb_codes", .run = pass_absorb_codes, .host = true, .native = true},
    {.name = "turn_einsum", .run = pass_turn_einsum}, /* weights are moved by fold_constants */
    /* Its sums have an operand that repeats rows, which no device's epilogue takes. */
    {.name = "share_product", .run = pass_share_product, .early = true, .host = true},
    {.name = "fold_constants", .run = pass_fold_constants},
    /* Its bias is a column, which no device's epilogue takes. */
    {.name = "turn_product", .run = pass_turn_product, .host = true},
    {.name = "turn_conv_transpose", .run = pass_turn_conv_transpose},
    {.name = "fold_batch_norm", .run = pass_fold_batch_norm},
    {.name = "merge_branches", .run = pass_merge_branches}, /* with their norms in them */
    {.name = "fuse_concat_norm", .run = pass_fuse_concat_norm},
    {.name = "find_gelu", .run = pass_find_gelu, .early = true},
    {.name = "keep_bytes again",
     .run = pass_keep_bytes,
     .host = true,
     .native = true}, /* a Gelu is one function */
    {.name = "find_layer_norm", .run = pass_find_layer_norm, .early = true},
    {.name = "find_attention", .run = pass_find_attention},
    {.name = "cancel_transpose", .run = pass_cancel_transpose},   /* it brings heads side by side */
    {.name = "fold_constants again", .run = pass_fold_constants}, /* sums of its masks */
    {.name = "find_rotary", .run = pass_find_rotary},             /* angles are folded */
    /* What is fixed is folded no more: it would stay as floats. */
    {.name = "unpack_codes", .run = pass_unpack_codes, .device = true},
    {.name = "undo_moves", .run = pass_undo_moves},
    {.name = "update_rows", .run = pass_update_rows}, /* while sums are Adds */
    {.name = "absorb_expand", .run = pass_absorb_expand, .host = true},
    {.name = "join_embeddings", .run = pass_join_embeddings}, /* while sums are Adds */
    {.name = "merge_products", .run = pass_merge_products},
    {.name = "fuse_gate", .run = pass_fuse_gate}, /* while ReLUs are nodes */
    {.name = "fuse_epilogue", .run = pass_fuse_epilogue, .host = true},
    {.name = "fuse_epilogue", .run = pass_fuse_on_device, .device = true},
    {.name = "merge_qkv", .run = pass_merge_qkv},
    {.name = "absorb_transpose", .run = pass_absorb_transpose}, /* attention's are gone */
    /* The merged product's bias. */
    {.name = "fuse_epilogue again", .run = pass_fuse_epilogue, .host = true},
    {.name = "fuse_epilogue again", .run = pass_fuse_on_device, .device = true},
    {.name = "fuse_chain", .run = pass_fuse_chain},
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
    if (log && change != 0)
        log->changes[log->count++] = (struct pass_change){row->name, change};
    return STATUS_OK;
}

enum status passes_run(struct graph *g, const struct exe_options *options,
                       const struct narrow_judge *judge, struct pass_log *log, struct error *err)
{
    _Static_assert(ARRAY_COUNT(rows) <= PASS_CHANGES_MAX, "every pass may change the work");
    enum dtype floats = precision_floats(options->precision);
    if (log)
        log->count = 0;
    for (int k = 0; k < ARRAY_COUNT(rows); k++)
        if ((!options->no_fuse || rows[k].always) &&
            !(device_is_host(options->device) ? rows[k].device : rows[k].host) &&
            (!rows[k].native || provider_allowed(options->providers, "native")) &&
            (!rows[k].f8 || options->precision == PRECISION_F8))
            TRY(run_pass(g, &rows[k], log, err));
    return floats == DTYPE_F32 ? STATUS_OK
                               : end_pass(g, "narrow", pass_narrow(g, floats, judge, err), err);
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
    enum status status =
        narrow ? passes_run(narrow, &narrowing, NULL, NULL, err) : FAIL_NO_MEMORY(err);
    if (status == STATUS_OK) {
        struct graph_cost moved;
        graph_cost(narrow, &moved);
        cost->bytes_streamed = moved.bytes_streamed;
        cost->bytes_compulsory = moved.bytes_compulsory;
    }
    graph_free(narrow);
    return status;
}
