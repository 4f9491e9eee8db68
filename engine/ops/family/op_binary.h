/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise operators of two (or any number of) inputs under numpy broadcasting:
 *
 *     static int64_t integer(int64_t a, int64_t b, enum dtype dtype) { ... }
 *     static enum status gradient(const struct gradient_call *c, struct error *err) { ... }
 *     BINARY_FUNCTION_OP(add, "Add", FN_ADD, cases, .integer = integer, .types = OP_NUMBER);
 *
 * BINARY_OP(equal, "Equal", cases, .value = ...) where the value on floats is no function of the
 * vocabulary, which has no gradient then; VARIADIC_OP(sum, ...) takes its inputs together from the
 * left. Integers wrap to the width of their type after the reference; u64 is held with the same
 * bits, so integer() looks at the type where the sign matters. Costs follow the rule of
 * engine/ops/lib/op_unary.h, per output element and pair.
 */
#ifndef ENGINE_OPS_FAMILY_OP_BINARY_H
#define ENGINE_OPS_FAMILY_OP_BINARY_H

#include "engine/ops/lib/op_unary.h"

struct binary {
    enum function function;              /* on floats, if value is NULL */
    double (*value)(double a, double b); /* on floats */
    int64_t (*integer)(int64_t a, int64_t b, enum dtype dtype);
    enum op_types types;
    bool predicate;                      /* the result is bool */
    double elementwise, transcendentals; /* per element; of a function: its own */
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
    BINARY_REGISTER(symbol, onnx, 2, 2, FN_COPY,                                                   \
                    BINARY_FIELDS(.no_gradient = "its result is a truth value"), case_table,       \
                    __VA_ARGS__)
#define BINARY_FUNCTION_OP(symbol, onnx, function_code, case_table, ...)                           \
    BINARY_REGISTER(symbol, onnx, 2, 2, function_code, BINARY_FIELDS(.gradient = gradient),        \
                    case_table, __VA_ARGS__)
#define VARIADIC_OP(symbol, onnx, function_code, case_table, ...)                                  \
    BINARY_REGISTER(symbol, onnx, 1, -1, function_code, BINARY_FIELDS(.gradient = gradient),       \
                    case_table, __VA_ARGS__)

#define BINARY_FIELDS(...) __VA_ARGS__
#define BINARY_REGISTER(symbol, onnx, min, max, function_code, rule, case_table, ...)              \
    static const struct binary binary_of = {.function = function_code, __VA_ARGS__};               \
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
                            .inputs_min = min,                                                     \
                            .inputs_max = max,                                                     \
                            .function = function_code,                                             \
                            .layout = LAYOUT_RULE_ANY,                                             \
                            .infer = binary_shape,                                                 \
                            .cost = binary_price,                                                  \
                            .reference = binary_run,                                               \
                            rule,                                                                  \
                            OP_CASES(case_table)}

/* ---- cases ---- */

/* Floats of every way to broadcast; the second operand of a range like "{0.5:2}", or "". */
#define BINARY_RANDOM_CASES(range)                                                                 \
    {.name = "same", .inputs = "f32[2,3,4] f32[2,3,4]" range},                                     \
        {.name = "image", .inputs = "f32[2,5,3,7] f32[2,5,3,7]" range},                            \
        {.name = "channels", .inputs = "f32[2,5,3,7] f32[5,1,1]" range "!"},                       \
        {.name = "row", .inputs = "f32[6,33] f32[33]" range "!"},                                  \
        {.name = "scalar", .inputs = "f32[2,5,3,7] f32[]=0.5"},                                    \
        {.name = "left", .inputs = "f32[5] f32[3,1]" range},                                       \
        {.name = "both", .inputs = "f32[2,1,3,1] f32[4,1,7]" range},                               \
        {.name = "per_image", .inputs = "f32[2,5,3,7] f32[2,5,1,1]" range},                        \
        {.name = "double", .inputs = "f64[3,5] f64[5]" range},                                     \
        {.name = "half", .inputs = "f16[3,5] f16[5]" range},                                       \
    {                                                                                              \
        .name = "empty", .inputs = "f32[0,3] f32[3]"                                               \
    }
#define BINARY_SPECIAL_CASE                                                                        \
    {                                                                                              \
        .name = "special",                                                                         \
        .inputs = "f32[2,5]=1,nan,inf,-inf,0,-1,-0,inf,2,3 f32[5]=inf,1,-inf,0,nan"                \
    }
/* Of additions and products. */
#define ARITHMETIC_CASES                                                                           \
    BINARY_RANDOM_CASES(""), BINARY_SPECIAL_CASE,                                                  \
        {.name = "bytes", .inputs = "u8[7]=0,1,2,128,200,254,255 u8[7]=0,255,3,128,100,1,255"},    \
        {.name = "signed", .inputs = "i32[2,3]{-50:50} i32[3]{-9:9}"},                             \
        {.name = "wide", .inputs = "i64[4] i64[4]"},                                               \
    {                                                                                              \
        .name = "wrap", .inputs = "i8[4]=127,-128,100,-100 i8[4]=1,-1,100,-100"                    \
    }
/* Of any number of inputs. NaN is not the second operand: a maximum may take either. */
#define VARIADIC_CASES                                                                             \
    {.name = "one", .inputs = "f32[2,3,4]"},                                                       \
        {.name = "three", .inputs = "f32[2,3] f32[2,3] f32[2,3]"},                                 \
        {.name = "three_broadcast", .inputs = "f32[2,1,4] f32[3,1] f32[]=0.25"},                   \
        BINARY_RANDOM_CASES(""),                                                                   \
    {                                                                                              \
        .name = "special",                                                                         \
        .inputs = "f32[2,5]=1,nan,inf,-inf,0,-1,-0,inf,2,3 f32[5]=inf,1,-inf,0,2"                  \
    }
/* Of the greater and the less of integers. */
#define EXTREME_CASES                                                                              \
    VARIADIC_CASES, {.name = "bytes", .inputs = "u8[4]=0,7,200,255 u8[4]=3,2,7,16"},               \
        {.name = "signed", .inputs = "i8[2,3]{-50:50} i8[3]{-9:9}"},                               \
        {.name = "wide", .inputs = "i64[4]{-50:50} i64[4] i64[4]"},                                \
    {                                                                                              \
        .name = "unsigned",                                                                        \
        .inputs = "u64[2]=18446744073709551615,9 u64[2]=2,18446744073709551614"                    \
    }
/* Of comparisons. */
#define COMPARISON_CASES                                                                           \
    {.name = "ties", .inputs = "f32[2,5]=1,nan,inf,-inf,0,2,-0,3,4,5 f32[5]=1,nan,inf,inf,-0"},    \
        {.name = "same", .inputs = "f32[2,3,4] f32[2,3,4]"},                                       \
        {.name = "image", .inputs = "f32[2,5,3,7] f32[2,5,3,7]"},                                  \
        {.name = "channels", .inputs = "f32[2,5,3,7] f32[5,1,1]!"},                                \
        {.name = "left", .inputs = "f32[5] f32[3,1]"},                                             \
        {.name = "double", .inputs = "f64[3,5] f64[5]"},                                           \
        {.name = "bytes", .inputs = "u8[67]{0:4} u8[67]{0:4}"},                                    \
        {.name = "signed", .inputs = "i32[3,5]{-3:3} i32[5]{-3:3}"},                               \
        {.name = "wide", .inputs = "i64[67]{0:4} i64[1]=2"},                                       \
        {.name = "beyond_double",                                                                  \
         .inputs = "i64[2]=9007199254740993,-9007199254740993 "                                    \
                   "i64[2]=9007199254740992,-9007199254740992"},                                   \
    {                                                                                              \
        .name = "unsigned",                                                                        \
        .inputs = "u64[3]=18446744073709551615,9,1 u64[3]=2,18446744073709551614,1"                \
    }
/* Of truth values. */
#define LOGIC_CASES                                                                                \
    {.name = "same", .inputs = "bool[2,3,4] bool[2,3,4]"},                                         \
        {.name = "image", .inputs = "bool[2,5,3,7] bool[2,5,3,7]"},                                \
        {.name = "broadcast", .inputs = "bool[2,5,3,7] bool[5,1,1]"},                              \
    {                                                                                              \
        .name = "left", .inputs = "bool[5] bool[3,1]"                                              \
    }

#endif
