/* SPDX-License-Identifier: Apache-2.0
 *
 * HannWindow, HammingWindow, BlackmanWindow: a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N), N = size
 * if periodic, size - 1 if symmetric. Input 0 is the size.
 */
#ifndef ENGINE_OPS_FAMILY_COSINE_WINDOW_H
#define ENGINE_OPS_FAMILY_COSINE_WINDOW_H

#include "engine/graph/op.h"

extern const char *const cosine_window_attrs[];

enum status cosine_window_infer(const struct infer *c, struct error *err);
void cosine_window_cost(const struct infer *c, struct cost *cost);
void cosine_window_reference(const struct ref_call *call, double a0, double a1, double a2);

#define COSINE_WINDOW_OP(symbol, onnx, a0, a1, a2)                                                 \
    static enum status window_run(const struct ref_call *call, struct error *err)                  \
    {                                                                                              \
        (void)err;                                                                                 \
        cosine_window_reference(call, a0, a1, a2);                                                 \
        return STATUS_OK;                                                                          \
    }                                                                                              \
    REGISTER(op, symbol) = {.name = onnx,                                                          \
                            .inputs_min = 1,                                                       \
                            .inputs_max = 1,                                                       \
                            .attrs = cosine_window_attrs,                                          \
                            .const_inputs = 1u << 0,                                               \
                            .infer = cosine_window_infer,                                          \
                            .cost = cosine_window_cost,                                            \
                            .reference = window_run,                                               \
                            .no_gradient = "it is made of a length",                               \
                            OP_CASES(cosine_window_cases)}

/* output_datatype 11: f64 */
static const struct op_case cosine_window_cases[] __attribute__((unused)) = {
    {.name = "periodic", .inputs = "i64[]=20"},
    {.name = "symmetric", .inputs = "i32[]=33", .attrs = "periodic=0"},
    {.name = "f64", .inputs = "i64[]=16", .attrs = "output_datatype=11"},
};

#endif
