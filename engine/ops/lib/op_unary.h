/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise operators of one input. A file of its own holds
 *
 *     static double value(double x, const struct node *node) { ... }
 *     UNARY_OP(relu, "Relu", value, .elementwise = 1);
 *
 * The fields after the function are those of struct unary. UNARY_OP_CASES brings test cases of its
 * own (a domain that [-3, 3) does not fit, integers), UNARY_OP_ATTRS attributes as well.
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
    double (*value)(double x, const struct node *node);
    int64_t (*integer)(int64_t x, enum dtype dtype); /* needed unless types is OP_FLOAT */
    enum op_types types;
    double elementwise, transcendentals; /* per element */
};

bool op_types_allow(enum op_types types, enum dtype dtype);
/* Fails unless input k, when present, has one of the types. */
enum status op_check_type(const struct infer *c, int k, enum op_types types, struct error *err);
/* Sets the cost of a node that computes each element of output 0 (no FLOPs for integers). */
void op_cost_each(const struct infer *c, double elementwise, double transcendentals,
                  struct cost *cost);

enum status unary_infer(const struct infer *c, const struct unary *unary, struct error *err);
enum status unary_reference(const struct ref_call *call, const struct unary *unary);

/* x in the type of y (same shape): floats are rounded, truncated towards zero, or tested for 0. */
/* Saturates; NaN becomes 0. */
void cast_reference(const struct ref_tensor *x, const struct ref_tensor *y);

#define UNARY_OP(symbol, onnx, function, ...)                                                      \
    UNARY_OP_CASES(symbol, onnx, function, unary_default_cases, __VA_ARGS__)

#define UNARY_OP_CASES(symbol, onnx, function, case_table, ...)                                    \
    UNARY_OP_ATTRS(symbol, onnx, function, NULL, case_table, __VA_ARGS__)

#define UNARY_OP_ATTRS(symbol, onnx, function, attr_names, case_table, ...)                        \
    static const struct unary unary_of = {.value = function, __VA_ARGS__};                         \
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
        op_cost_each(c, unary_of.elementwise, unary_of.transcendentals, cost);                     \
    }                                                                                              \
    REGISTER(op, symbol) = {.name = onnx,                                                          \
                            .inputs_min = 1,                                                       \
                            .inputs_max = 1,                                                       \
                            .outputs_min = 1,                                                      \
                            .outputs_max = 1,                                                      \
                            .attrs = attr_names,                                                   \
                            .layout = LAYOUT_RULE_ANY,                                             \
                            .infer = unary_shape,                                                  \
                            .cost = unary_price,                                                   \
                            .reference = unary_run,                                                \
                            .cases = case_table,                                                   \
                            .case_count = ARRAY_COUNT(case_table)}

static const struct op_case unary_default_cases[] __attribute__((unused)) = {
    {.name = "vector", .inputs = "f32[67]{-3:3}"},
    {.name = "image", .inputs = "f32[2,5,3,7]{-3:3}"},
    {.name = "double", .inputs = "f64[3,5]{-3:3}"},
    {.name = "half", .inputs = "f16[19]{-3:3}"},
    {.name = "special", .inputs = "f32[5]=nan,inf,-inf,0,-0"},
    {.name = "empty", .inputs = "f32[2,0,3]"},
};

#endif
