/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise operators of one float input: UNARY_OP(relu, "Relu", value, .elementwise = 1) in a
 * file of its own, with `static double value(double x, const struct node *node)`. Optional fields:
 * .transcendentals, .low and .high (the range of the test inputs), .attrs, .case_attrs, .any_type.
 */
#ifndef ENGINE_OP_UNARY_H
#define ENGINE_OP_UNARY_H

#include "engine/op.h"

struct unary {
    double elementwise, transcendentals;
    const char *const *attrs;
};

enum status unary_reference(const struct ref_call *call,
                            double (*value)(double x, const struct node *node));
void unary_cost(const struct infer *c, const struct unary *unary, struct cost *cost);

#define UNARY_OP(symbol, onnx, function, ...)                                                      \
    UNARY_OP_CASES(symbol, onnx, function, unary_default_cases, __VA_ARGS__)

#define UNARY_OP_CASES(symbol, onnx, function, case_table, ...)                                    \
    static const struct unary unary_of = {__VA_ARGS__};                                            \
    static enum status unary_run(const struct ref_call *call, struct error *err)                   \
    {                                                                                              \
        (void)err;                                                                                 \
        return unary_reference(call, function);                                                    \
    }                                                                                              \
    static void unary_price(const struct infer *c, struct cost *cost)                              \
    {                                                                                              \
        unary_cost(c, &unary_of, cost);                                                            \
    }                                                                                              \
    REGISTER(op, symbol) = {.name = onnx,                                                          \
                            .inputs_min = 1,                                                       \
                            .inputs_max = 1,                                                       \
                            .outputs_min = 1,                                                      \
                            .outputs_max = 1,                                                      \
                            .layout = LAYOUT_RULE_ANY,                                             \
                            .infer = infer_same,                                                   \
                            .cost = unary_price,                                                   \
                            .reference = unary_run,                                                \
                            .cases = case_table,                                                   \
                            .case_count = ARRAY_COUNT(case_table)}

static const struct op_case unary_default_cases[] __attribute__((unused)) = {
    {.name = "vector", .inputs = "f32[67]{-3:3}"},
    {.name = "image", .inputs = "f32[2,5,3,7]{-3:3}"},
};

#endif
