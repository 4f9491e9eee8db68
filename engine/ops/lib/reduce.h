/* SPDX-License-Identifier: Apache-2.0
 *
 * The reductions: REDUCE_OP(reduce_sum, "ReduceSum", 13, fold, fold_int, .elementwise = 1) in a
 * file of its own, with `static double fold(const double *x, int64_t n)` over the elements that
 * fall together and the same for integers (fold_int may be NULL: through fold, then cut off), and
 * `static enum status gradient(...)`. 13: the opset that made `axes` an input.
 */
#ifndef ENGINE_OPS_LIB_REDUCE_H
#define ENGINE_OPS_LIB_REDUCE_H

#include "engine/graph/op.h"

struct reducer {
    double (*fold)(const double *x, int64_t n);
    int64_t (*fold_int)(const int64_t *x, int64_t n);
    double elementwise, transcendentals; /* per input element */
};

/* Which axes a node reduces: the attribute or input `axes`, all when there are none (or none at
 * all with noop_with_empty_axes). axes NULL: those of the attribute. Fails on axes out of range. */
enum status reduce_axes(const struct node *node, const struct shape *x, int axis_count,
                        const int64_t *axes, bool reduced[RANK_MAX], struct error *err);
/* The shape after reduction of input 0, kept dimensions as `keepdims` says. */
enum status reduce_infer(const struct infer *c, struct error *err);
void reduce_cost(const struct infer *c, const struct reducer *reducer, struct cost *cost);
enum status reduce_reference(const struct ref_call *call, const struct reducer *reducer,
                             struct error *err);

/* Offsets of the elements of a tensor whose index varies along the chosen axes only, row-major.
 * free() it; NULL: out of memory. count: how many. */
int64_t *reduce_offsets(const struct shape *x, const bool chosen[RANK_MAX], int64_t *count);

extern const char *const reduce_attrs[];

#define REDUCE_OP(symbol, onnx, axes_opset, function, function_int, ...)                           \
    REDUCE_REGISTER(symbol, onnx, axes_opset, function, function_int, REDUCE_FIELDS(__VA_ARGS__),  \
                    .gradient = gradient)

#define REDUCE_FIELDS(...) __VA_ARGS__
#define REDUCE_REGISTER(symbol, onnx, axes_opset, function, function_int, costs, ...)              \
    static const struct attr_input axes_input[] = {{"axes", 1, axes_opset}, {NULL, 0, 0}};         \
    static const struct reducer reducer_of = {function, function_int, costs};                      \
    static enum status reduce_run(const struct ref_call *call, struct error *err)                  \
    {                                                                                              \
        return reduce_reference(call, &reducer_of, err);                                           \
    }                                                                                              \
    static void reduce_price(const struct infer *c, struct cost *cost)                             \
    {                                                                                              \
        reduce_cost(c, &reducer_of, cost);                                                         \
    }                                                                                              \
    REGISTER(op, symbol) = {.name = onnx,                                                          \
                            .narrow = NARROW_MATH,                                                 \
                            .inputs_min = 1,                                                       \
                            .inputs_max = 2,                                                       \
                            .attrs = reduce_attrs,                                                 \
                            .const_inputs = 1u << 1,                                               \
                            .layout = LAYOUT_RULE_AXIS,                                            \
                            .attr_inputs = axes_input,                                             \
                            .infer = reduce_infer,                                                 \
                            .cost = reduce_price,                                                  \
                            .reference = reduce_run,                                               \
                            __VA_ARGS__,                                                           \
                            OP_CASES(reduce_cases)}

static const struct op_case reduce_cases[] __attribute__((unused)) = {
    {.name = "all", .inputs = "f32[3,4,5]{0.5:2}"},
    {.name = "last_axis", .inputs = "f32[7,67]{0.5:2}", .attrs = "axes=[-1]"},
    {.name = "first_axis", .inputs = "f32[33,20]{0.5:2}", .attrs = "axes=[0] keepdims=0"},
    {.name = "middle_axis", .inputs = "f32[3,21,17]{0.5:2}", .attrs = "axes=[1]"},
    {.name = "image_to_channels",
     .inputs = "f32[2,19,7,6]{0.5:2}",
     .attrs = "axes=[2,3] keepdims=0"},
    {.name = "two_far_axes", .inputs = "f32[4,5,6,3]{0.5:2}", .attrs = "axes=[0,2]"},
    {.name = "axes_as_input", .inputs = "f32[4,5,6]{0.5:2} i64[2]=-1,0", .attrs = "keepdims=0"},
    {.name = "no_axes_nothing_to_do",
     .inputs = "f32[4,5]{0.5:2} i64[0]",
     .attrs = "noop_with_empty_axes=1"},
    {.name = "above_one", .inputs = "f32[6,31]{1:3}", .attrs = "axes=[1]"},
    {.name = "vector", .inputs = "f32[129]{0.5:2}", .attrs = "keepdims=0"},
    {.name = "of_nothing", .inputs = "f32[3,0,4]", .attrs = "axes=[1]"},
    {.name = "of_no_integers", .inputs = "i32[3,0,4]", .attrs = "axes=[1] keepdims=0"},
    {.name = "nan_in_rows",
     .inputs = "f32[3,5]=1,nan,3,2,9,4,5,6,7,nan,nan,9,8,7,6",
     .attrs = "axes=[1]"},
    {.name = "nan_in_columns",
     .inputs = "f32[5,3]=1,9,nan,nan,8,2,3,7,5,2,6,4,9,nan,6",
     .attrs = "axes=[0]"},
    {.name = "nan_beside_infinities",
     .inputs = "f32[2,3]=inf,nan,1,2,nan,-inf",
     .attrs = "axes=[1]"},
    {.name = "infinite", .inputs = "f32[2,3]=inf,1,2,3,4,5", .attrs = "axes=[1]"},
    /* Terms that devices split over blocks, or read by groups. */
    {.name = "one_long_row", .inputs = "f32[16416]{0.9:1.1}", .attrs = "keepdims=0"},
    {.name = "two_long_rows", .inputs = "f32[2,8197]{0.9:1.1}", .attrs = "axes=[1]"},
    {.name = "grouped_rows", .inputs = "f32[5,3,96]{0.5:1.5}", .attrs = "axes=[2]"},
    {.name = "long_columns", .inputs = "f32[1301,24]{0.9:1.1}", .attrs = "axes=[0]"},
    {.name = "long_odd_columns", .inputs = "f32[2,2050,3]{0.9:1.1}", .attrs = "axes=[1]"},
    {.name = "wide_columns", .inputs = "f32[2,5,2080]{0.5:2}", .attrs = "axes=[1] keepdims=0"},
    {.name = "channels_of_images", .inputs = "f32[3,2,16,160]{0.9:1.1}", .attrs = "axes=[0,2,3]"},
};

#endif
