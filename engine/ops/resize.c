/* SPDX-License-Identifier: Apache-2.0
 * Resize: nearest, linear and cubic interpolation in all coordinate systems of opsets 10 to 19;
 * antialias and keep_aspect_ratio_policy are refused. See engine/ops/lib/resize.h. */
#include "engine/ops/lib/resize.h"
#include "engine/ops/family/resize_gradient.h"

static const char *const attrs[] = {"mode",
                                    "coordinate_transformation_mode",
                                    "nearest_mode",
                                    "cubic_coeff_a",
                                    "exclude_outside",
                                    "extrapolation_value",
                                    "axes",
                                    "antialias",
                                    "keep_aspect_ratio_policy",
                                    NULL};

static const struct op_case cases[] = {
    {.name = "nearest", .inputs = "f32[2,3,4,5] - f32[4]=1,1,2,2"},
    {.name = "nearest_floor",
     .inputs = "f32[1,16,5,7] - f32[4]=1,1,2,3",
     .attrs = "coordinate_transformation_mode=\"asymmetric\" nearest_mode=\"floor\""},
    {.name = "nearest_sizes",
     .inputs = "f32[1,3,7,6] - - i64[4]=1,3,4,9",
     .attrs = "nearest_mode=\"ceil\""},
    {.name = "prefer_ceil",
     .inputs = "i32[1,1,4,4] - f32[4]=1,1,1.6,0.7",
     .attrs = "nearest_mode=\"round_prefer_ceil\""},
    {.name = "opset10", .inputs = "f32[1,2,6,6] f32[4]=1,1,0.5,2"},
    {.name = "for_nn",
     .inputs = "f32[1,1,5,5] - - i64[4]=1,1,7,3",
     .attrs = "coordinate_transformation_mode=\"tf_half_pixel_for_nn\""},
    {.name = "linear", .inputs = "f32[2,3,4,5] - f32[4]=1,1,2,2", .attrs = "mode=\"linear\""},
    {.name = "linear_wide",
     .inputs = "f32[1,33,5,6] - - i64[4]=1,33,9,11",
     .attrs = "mode=\"linear\" coordinate_transformation_mode=\"align_corners\""},
    {.name = "linear_down",
     .inputs = "f32[1,16,9,8] - - i64[4]=1,16,4,3",
     .attrs = "mode=\"linear\" coordinate_transformation_mode=\"pytorch_half_pixel\""},
    {.name = "linear_asymmetric",
     .inputs = "f32[1,2,3,4] - f32[4]=1,1,2.5,1.5",
     .attrs = "mode=\"linear\" coordinate_transformation_mode=\"asymmetric\""},
    {.name = "linear_symmetric",
     .inputs = "f32[1,2,4,5] - f32[4]=1,1,1.3,0.7",
     .attrs = "mode=\"linear\" coordinate_transformation_mode=\"half_pixel_symmetric\""},
    {.name = "line", .inputs = "f32[2,3,10] - - i64[3]=2,3,17", .attrs = "mode=\"linear\""},
    {.name = "volume", .inputs = "f32[1,2,3,4,3] - f32[5]=1,1,2,1.5,2", .attrs = "mode=\"linear\""},
    {.name = "axes", .inputs = "f32[2,3,4,5] - f32[2]=2,3", .attrs = "mode=\"linear\" axes=[3,2]"},
    {.name = "cubic", .inputs = "f32[1,2,4,5] - f32[4]=1,1,2,1.7", .attrs = "mode=\"cubic\""},
    {.name = "cubic_exclude",
     .inputs = "f32[1,2,5,4] - f32[4]=1,1,0.8,2",
     .attrs = "mode=\"cubic\" cubic_coeff_a=-0.5 exclude_outside=1"},
    {.name = "crop",
     .inputs = "f32[1,2,4,5] f32[8]=0,0,0.4,-0.2,1,1,0.7,1.3 - i64[4]=1,2,3,4",
     .attrs = "mode=\"linear\" coordinate_transformation_mode=\"tf_crop_and_resize\" "
              "extrapolation_value=10.0"},
};

REGISTER(op, resize) = {
    .name = "Resize",
    .narrow = NARROW_MATH,
    .narrow_inputs = 1u << 0,
    .inputs_min = 1,
    .inputs_max = 4,
    .attrs = attrs,
    .const_inputs = 1u << 1 | 1u << 2 | 1u << 3,
    .layout = LAYOUT_RULE_AXIS,
    .infer = resize_infer,
    .cost = resize_cost,
    .reference = resize_reference,
    .gradient = resize_gradient,
    OP_CASES(cases),
};
