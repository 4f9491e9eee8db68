/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise operators of one input. One whose value is a function of the vocabulary is
 *
 *     FUNCTION_OP(erf, "Erf", FN_ERF, unary_usual_cases);
 *
 * any other, whose value asin(x) is,
 *
 *     UNARY_OP(asin, "Asin", asin, cases, .elementwise = 1, .transcendentals = 1);
 *
 * Cost per output element: an addition, multiplication, comparison with selection (max, abs), a
 * rounding or a call of exp, log, division ... is 1 FLOP, calls being counted in transcendentals
 * too. Where the stated convention (docs/method.md) gives a whole function a price (sigmoid 4,
 * tanh 5, GELU 12) that price holds. Integers cost no FLOPs.
 */
#ifndef ENGINE_OPS_LIB_OP_UNARY_H
#define ENGINE_OPS_LIB_OP_UNARY_H

#include "engine/graph/op.h"

/* Which element types an operator takes. */
enum op_types {
    OP_FLOAT = 0, /* f16, bf16, f32, f64 */
    OP_SIGNED,    /* those and signed integers */
    OP_NUMBER,    /* those and unsigned integers */
    OP_UNSIGNED,  /* unsigned integers alone */
    OP_BOOL,      /* bool alone */
    OP_ANY,
};

struct unary {
    double (*value)(double x);                       /* NULL: the operator's function */
    int64_t (*integer)(int64_t x, enum dtype dtype); /* needed unless types is OP_FLOAT */
    enum op_types types;
    double elementwise, transcendentals; /* per element; of a function: its own */
};

/* Fails unless input k, when present, has one of the types. */
enum status op_check_type(const struct infer *c, int k, enum op_types types, struct error *err);
/* Sets the cost of a node that computes each element of output 0 (no FLOPs for integers). */
void op_cost_each(const struct infer *c, double elementwise, double transcendentals,
                  struct cost *cost);

enum status unary_infer(const struct infer *c, const struct unary *unary, struct error *err);
void unary_cost(const struct infer *c, const struct unary *unary, struct cost *cost);
enum status unary_reference(const struct ref_call *call, const struct unary *unary);

/* The gradient rule of a function of the vocabulary, by its slope; stands with the other rules that
 * operators share (engine/ops/family/gradient.c). */
enum status gradient_of_function(const struct gradient_call *call, struct error *err);

/* x in the type of y (same shape): floats are rounded, truncated towards zero, or tested for 0. */
void cast_reference(const struct ref_tensor *x, const struct ref_tensor *y);

/* Of a function of the vocabulary (engine/graph/function.h), without and with attributes. */
#define FUNCTION_OP(symbol, onnx, function_code, case_table)                                       \
    FUNCTION_OP_INTEGER(symbol, onnx, function_code, case_table, .types = OP_FLOAT)
#define FUNCTION_OP_ATTRS(symbol, onnx, function_code, attr_names, case_table, ...)                \
    UNARY_REGISTER(symbol, onnx, case_table, UNARY_FIELDS(.types = OP_FLOAT), .attrs = attr_names, \
                   .function = function_code, .gradient = gradient_of_function,                    \
                   .defaults = {__VA_ARGS__})
/* Of one that integers have as well: .integer and .types follow. */
#define FUNCTION_OP_INTEGER(symbol, onnx, function_code, case_table, ...)                          \
    UNARY_REGISTER(symbol, onnx, case_table, UNARY_FIELDS(__VA_ARGS__), .function = function_code, \
                   .gradient = gradient_of_function)
/* Any other: function is its value, the fields of struct unary follow. */
#define UNARY_OP(symbol, onnx, function, case_table, ...)                                          \
    UNARY_REGISTER(symbol, onnx, case_table, UNARY_FIELDS(.value = (function), __VA_ARGS__),       \
                   .no_gradient = "no workload learns through it")

#define UNARY_FIELDS(...) __VA_ARGS__
#define UNARY_REGISTER(symbol, onnx, case_table, unary_fields, ...)                                \
    static const struct unary unary_of = {unary_fields};                                           \
    static enum status unary_shape(const struct infer *c, struct error *err)                       \
    {                                                                                              \
        return unary_infer(c, &unary_of, err);                                                     \
    }                                                                                              \
    static enum status unary_run(const struct ref_call *call, struct error *err)                   \
    {                                                                                              \
        (void)err;                                                                                 \
        return unary_reference(call, &unary_of);                                                   \
    }                                                                                              \
    static void unary_price(const struct infer *c, struct cost *cost)                              \
    {                                                                                              \
        unary_cost(c, &unary_of, cost);                                                            \
    }                                                                                              \
    REGISTER(op, symbol) = {.name = onnx,                                                          \
                            .inputs_min = 1,                                                       \
                            .inputs_max = 1,                                                       \
                            .layout = LAYOUT_RULE_ANY,                                             \
                            .infer = unary_shape,                                                  \
                            .cost = unary_price,                                                   \
                            .reference = unary_run,                                                \
                            OP_CASES(case_table),                                                  \
                            __VA_ARGS__}

/* ---- cases ---- */

/* Random numbers of a range like "{-3:3}" in several shapes and types. */
#define UNARY_RANDOM_CASES(range)                                                                  \
    {.name = "vector", .inputs = "f32[67]" range},                                                 \
        {.name = "image", .inputs = "f32[2,5,3,7]" range},                                         \
        {.name = "double", .inputs = "f64[3,5]" range},                                            \
    {                                                                                              \
        .name = "half", .inputs = "f16[19]" range                                                  \
    }
#define UNARY_CASES(range, special_values)                                                         \
    UNARY_RANDOM_CASES(range), {.name = "empty", .inputs = "f32[2,0,3]"},                          \
    {                                                                                              \
        .name = "special", .inputs = special_values                                                \
    }

static const struct op_case unary_usual_cases[] __attribute__((unused)) = {
    UNARY_CASES("{-3:3}", "f32[5]=nan,inf,-inf,0,-0"),
};

#endif
