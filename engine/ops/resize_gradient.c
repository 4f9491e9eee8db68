/* SPDX-License-Identifier: Apache-2.0
 * ResizeGradient: the gradient of a loss by the image that Resize or Upsample read, of that by the
 * result, which is input 0. Attributes and further inputs are those of the resizing; output_shape
 * is the image's shape. */
#include "engine/ops/lib/resize.h"

static const char *const attrs[] = {"mode",
                                    "coordinate_transformation_mode",
                                    "nearest_mode",
                                    "cubic_coeff_a",
                                    "exclude_outside",
                                    "extrapolation_value",
                                    "axes",
                                    "scales",
                                    "antialias",
                                    "keep_aspect_ratio_policy",
                                    "output_shape",
                                    NULL};

static const struct op_case cases[] = {
    {.name = "nearest",
     .inputs = "f32[2,3,8,10] - f32[4]=1,1,2,2",
     .attrs = "output_shape=[2,3,4,5]"},
    {.name = "nearest_wide",
     .inputs = "f32[1,70,10,14] - f32[4]=1,1,2,2",
     .attrs = "output_shape=[1,70,5,7] coordinate_transformation_mode=\"asymmetric\" "
              "nearest_mode=\"floor\""},
    {.name = "nearest_sizes",
     .inputs = "f32[1,3,4,9] - - i64[4]=1,3,4,9",
     .attrs = "output_shape=[1,3,7,6] nearest_mode=\"ceil\""},
    {.name = "opset10",
     .inputs = "f32[1,2,3,12] f32[4]=1,1,0.5,2",
     .attrs = "output_shape=[1,2,6,6]"},
    {.name = "attribute",
     .inputs = "f32[2,3,6,4]",
     .attrs = "output_shape=[2,3,4,2] scales=[1.0,1.0,1.5,2.0]"},
    {.name = "linear",
     .inputs = "f32[2,3,8,10] - f32[4]=1,1,2,2",
     .attrs = "output_shape=[2,3,4,5] mode=\"linear\""},
    {.name = "linear_wide",
     .inputs = "f32[1,33,9,11] - - i64[4]=1,33,9,11",
     .attrs = "output_shape=[1,33,5,6] mode=\"linear\" "
              "coordinate_transformation_mode=\"align_corners\""},
    {.name = "linear_down",
     .inputs = "f32[1,16,4,3] - - i64[4]=1,16,4,3",
     .attrs = "output_shape=[1,16,9,8] mode=\"linear\" "
              "coordinate_transformation_mode=\"pytorch_half_pixel\""},
    {.name = "line",
     .inputs = "f32[2,3,17] - - i64[3]=2,3,17",
     .attrs = "output_shape=[2,3,10] mode=\"linear\""},
    {.name = "volume",
     .inputs = "f32[1,2,6,6,6] - f32[5]=1,1,2,1.5,2",
     .attrs = "output_shape=[1,2,3,4,3] mode=\"linear\""},
    {.name = "cubic",
     .inputs = "f32[1,2,8,8] - f32[4]=1,1,2,1.7",
     .attrs = "output_shape=[1,2,4,5] mode=\"cubic\""},
    {.name = "crop",
     .inputs = "f32[1,2,3,4] f32[8]=0,0,0.4,-0.2,1,1,0.7,1.3 - i64[4]=1,2,3,4",
     .attrs = "output_shape=[1,2,4,5] mode=\"linear\" "
              "coordinate_transformation_mode=\"tf_crop_and_resize\" extrapolation_value=10.0"},
};

REGISTER(op, resize_gradient) = {
    .name = "ResizeGradient",
    .domain = "ridge",
    .inputs_min = 1,
    .inputs_max = 4,
    .attrs = attrs,
    .const_inputs = 1u << 1 | 1u << 2 | 1u << 3,
    .layout = LAYOUT_RULE_AXIS,
    .infer = resize_gradient_infer,
    .cost = resize_cost,
    .reference = resize_gradient_reference,
    .no_gradient = "nothing is trained through a gradient",
    OP_CASES(cases),
};
