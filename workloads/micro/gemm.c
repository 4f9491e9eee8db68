/* SPDX-License-Identifier: Apache-2.0
 *
 * One matrix product, A [m, k] times B' with B [n, k], both known only at run time. The lists are
 * those of AI Matrix's micro benchmark. bf16 has results of bf16; i8 is signed times signed with
 * results of i32, which ONNX has no transposed product for: a Transpose that compilation takes away
 * (engine/compile/passes/absorb_transpose.c). f8 are factors of e4m3 with results of bf16: ONNX has
 * no product of them, so they are cast to bf16, which is exact; compilation for a device takes the
 * casts away (engine/compile/passes/absorb_f8.c), on the CPU they are done. */
#include <string.h>

#include "workloads/lib/cases.h"
#include "workloads/lib/limits.h"

static const char *const lists[] = {"own", "performance", "pressure", NULL};
static const struct param params[] = {
    {"m", "1024", NULL, "rows of the result"},
    {"n", "1024", NULL, "columns of the result"},
    {"k", "1024", NULL, "length of the sums"},
    {"list", "own", lists, "where the sizes come from: m, n, k, or a list of AI Matrix"},
    {"case", "1", NULL, "which of the list: 1 to 30 (performance; i8: 35), 1 to 4 (pressure)"},
    {.name = NULL},
};

struct sizes {
    int64_t m, n, k;
};

/* performance: each m = n with each k; the last m = n is for i8 alone. */
static struct sizes sizes_of(struct graph *g, const struct workload_config *config)
{
    static const int64_t sides[] = {1024, 5120, 9216, 13312, 17408, 21504, 25600};
    static const int64_t depths[] = {1024, 5120, 9216, 13312, 17408};
    static const int64_t cubes[] = {512, 1024, 5120, 10240};
    static const char *const own[] = {"case", NULL}, *const listed[] = {"m", "n", "k", NULL};
    const char *list = config_text(config, "list");
    if (!unset_beside(g, config, "list", strcmp(list, "own") == 0 ? own : listed))
        return (struct sizes){1, 1, 1};
    if (strcmp(list, "performance") == 0) {
        int count = ARRAY_COUNT(sides) - (config->precision != PRECISION_I8);
        count *= ARRAY_COUNT(depths);
        int at = case_index(g, config, "case", count);
        int64_t side = at < 0 ? 1 : sides[at / ARRAY_COUNT(depths)];
        return (struct sizes){side, side, at < 0 ? 1 : depths[at % ARRAY_COUNT(depths)]};
    }
    if (strcmp(list, "pressure") == 0) {
        int at = case_index(g, config, "case", ARRAY_COUNT(cubes));
        int64_t side = at < 0 ? 1 : cubes[at];
        return (struct sizes){side, side, side};
    }
    return (struct sizes){config_int(config, "m"), config_int(config, "n"),
                          config_int(config, "k")};
}

static int product(struct graph *g, enum dtype dtype, struct shape a_shape, struct shape b_shape)
{
    struct fill fill = {.kind = FILL_NORMAL, .a = 0, .b = 1};
    int a = graph_input(g, "a", dtype, a_shape, fill);
    int b = graph_input(g, "b", dtype, b_shape, fill);
    return graph_node(g, "Gemm", "gemm", INPUTS(a, b), ATTRS(attr_int("transB", 1)));
}

static int widened(struct graph *g, const char *name, const char *wide, struct shape shape)
{
    struct fill fill = {.kind = FILL_NORMAL, .a = 0, .b = 1};
    int v = graph_input(g, name, DTYPE_F8E4M3, shape, fill);
    return graph_node(g, "Cast", wide, INPUTS(v), ATTRS(attr_int("to", 16)));
}

static int product_of_f8(struct graph *g, struct shape a_shape, struct shape b_shape)
{
    int a = widened(g, "a", "a_wide", a_shape), b = widened(g, "b", "b_wide", b_shape);
    return graph_node(g, "Gemm", "gemm", INPUTS(a, b), ATTRS(attr_int("transB", 1)));
}

static int product_of_bytes(struct graph *g, struct shape a_shape, struct shape b_shape)
{
    struct fill fill = {.kind = FILL_INDEX, .a = -128, .b = 128};
    int64_t perm[] = {1, 0};
    int a = graph_input(g, "a", DTYPE_I8, a_shape, fill);
    int b = graph_input(g, "b", DTYPE_I8, b_shape, fill);
    int turned =
        graph_node(g, "Transpose", "b_turned", INPUTS(b), ATTRS(attr_ints("perm", 2, perm)));
    return graph_node(g, "MatMulInteger", "gemm", INPUTS(a, turned), NO_ATTRS);
}

static void build(struct graph *g, const struct workload_config *config)
{
    struct sizes s = sizes_of(g, config);
    g->batch = 1; /* rows are no items */
    struct shape a = shape_of(s.m, s.k), b = shape_of(s.n, s.k);
    int c = config->precision == PRECISION_I8 ? product_of_bytes(g, a, b)
            : config->precision == PRECISION_F8
                ? product_of_f8(g, a, b)
                : product(g, config->precision == PRECISION_BF16 ? DTYPE_BF16 : DTYPE_F32, a, b);
    graph_rename(g, c, "c");
    graph_output(g, c);
}

REGISTER(workload, gemm) = {
    .name = "gemm",
    .domain = "micro",
    .task = "matrix product",
    .summary =
        "C = A B' in f32, bf16, i8 (s8 x s8, sums and result i32) or f8, any size or those of "
        "AI Matrix",
    .source = "AI Matrix micro benchmark, after DeepBench",
    .params = params,
    .batch = 1,
    .batch_is_one = true,
    .precisions = 1u << PRECISION_BF16 | 1u << PRECISION_I8 | 1u << PRECISION_F8,
    .build = build,
};
