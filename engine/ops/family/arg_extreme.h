/* SPDX-License-Identifier: Apache-2.0
 * What ArgMax and ArgMin share: the place of the extreme element along one axis. */
#ifndef ENGINE_OPS_FAMILY_ARG_EXTREME_H
#define ENGINE_OPS_FAMILY_ARG_EXTREME_H

#include "engine/graph/op.h"

extern const char *const arg_attrs[];

enum status arg_infer(const struct infer *c, struct error *err);
void arg_cost(const struct infer *c, struct cost *cost);
enum status arg_reference(const struct ref_call *call, bool largest, struct error *err);
/* x[a] < x[b], whatever the type. */
bool ref_less(const struct ref_tensor *x, int64_t a, int64_t b);

static const struct op_case arg_cases[] __attribute__((unused)) = {
    {.name = "first", .inputs = "f32[5,7]"},
    {.name = "last", .inputs = "f32[3,67]", .attrs = "axis=-1 keepdims=0"},
    {.name = "classes", .inputs = "f32[2,21,5,4]", .attrs = "axis=1"},
    {.name = "ties", .inputs = "f32[3,4]=1,2,2,1,3,3,1,1,0,0,0,0", .attrs = "axis=1"},
    {.name = "last_tie",
     .inputs = "i32[2,4]=1,2,2,1,3,3,1,1",
     .attrs = "axis=1 select_last_index=1"},
    {.name = "bytes", .inputs = "u8[4,9]{0:200}", .attrs = "axis=1 keepdims=0"},
    {.name = "vector", .inputs = "f32[130]", .attrs = "keepdims=0"},
    /* Lines that devices split over blocks. */
    {.name = "long_line", .inputs = "f32[8193]", .attrs = "keepdims=0"},
    {.name = "long_ties", .inputs = "i32[2,9000]{0:5}", .attrs = "axis=1"},
    {.name = "long_last_ties", .inputs = "i32[2,9000]{0:5}", .attrs = "axis=1 select_last_index=1"},
    {.name = "long_columns", .inputs = "i32[2,1500,3]{0:900}", .attrs = "axis=1"},
    {.name = "long_last_columns",
     .inputs = "u8[700,40]{0:9}",
     .attrs = "axis=0 select_last_index=1 keepdims=0"},
};

#endif
