/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise operators of two (or any number of) inputs under numpy broadcasting:
 *
 *     static double value(double a, double b) { return a + b; }
 *     static int64_t integer(int64_t a, int64_t b, enum dtype dtype) { ... }
 *     BINARY_OP(add, "Add", cases, .value = value, .integer = integer, .elementwise = 1);
 *
 * VARIADIC_OP(sum, ...) folds its inputs from the left. Integers wrap to the width of their type
 * behind the reference; u64 is held with the same bits, so integer() looks at the type where the
 * sign matters. Costs follow the rule of engine/ops/lib/op_unary.h, per output element and pair.
 */
#ifndef ENGINE_OPS_LIB_OP_BINARY_H
#define ENGINE_OPS_LIB_OP_BINARY_H

#include "engine/ops/lib/op_unary.h"

struct binary {
    double (*value)(double a, double b);
    int64_t (*integer)(int64_t a, int64_t b, enum dtype dtype);
    enum op_types types;
    bool predicate; /* the result is bool */
    double elementwise, transcendentals;
};

/* The place in an operand while an output of shape `of` is walked in row-major order. */
struct walk {
    const struct shape *of;
    int64_t index[RANK_MAX], stride[RANK_MAX];
    int64_t at;
};

/* From element k of the output on. */
void walk_start(struct walk *walk, const struct shape *of, const struct shape *operand, int64_t k);
void walk_next(struct walk *walk);

enum status binary_infer(const struct infer *c, const struct binary *binary, struct error *err);
void binary_cost(const struct infer *c, const struct binary *binary, struct cost *cost);
enum status binary_reference(const struct ref_call *call, const struct binary *binary);

/* 1 for a < b with the signedness of dtype. */
bool integer_less(int64_t a, int64_t b, enum dtype dtype);

#define BINARY_OP(symbol, onnx, case_table, ...)                                                   \
    BINARY_OP_INPUTS(symbol, onnx, 2, 2, case_table, __VA_ARGS__)
#define VARIADIC_OP(symbol, onnx, case_table, ...)                                                 \
    BINARY_OP_INPUTS(symbol, onnx, 1, -1, case_table, __VA_ARGS__)

#define BINARY_OP_INPUTS(symbol, onnx, least, most, case_table, ...)                               \
    static const struct binary binary_of = {__VA_ARGS__};                                          \
    static enum status binary_shape(const struct infer *c, struct error *err)                      \
    {                                                                                              \
        return binary_infer(c, &binary_of, err);                                                   \
    }                                                                                              \
    static enum status binary_run(const struct ref_call *call, struct error *err)                  \
    {                                                                                              \
        (void)err;                                                                                 \
        return binary_reference(call, &binary_of);                                                 \
    }                                                                                              \
    static void binary_price(const struct infer *c, struct cost *cost)                             \
    {                                                                                              \
        binary_cost(c, &binary_of, cost);                                                          \
    }                                                                                              \
    REGISTER(op, symbol) = {.name = onnx,                                                          \
                            .inputs_min = least,                                                   \
                            .inputs_max = most,                                                    \
                            .outputs_min = 1,                                                      \
                            .outputs_max = 1,                                                      \
                            .layout = LAYOUT_RULE_ANY,                                             \
                            .infer = binary_shape,                                                 \
                            .cost = binary_price,                                                  \
                            .reference = binary_run,                                               \
                            .cases = case_table,                                                   \
                            .case_count = ARRAY_COUNT(case_table)}

#endif
