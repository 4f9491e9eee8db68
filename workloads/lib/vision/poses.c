/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/vision/poses.h"

#include <math.h>

#include "workloads/lib/vision/canvas.h"

enum { NOSE, EYE, EAR = 3, SHOULDER = 5, ELBOW = 7, WRIST = 9, HIP = 11, KNEE = 13, ANKLE = 15 };

struct point {
    double x, y;
};

/* A point at a distance and an angle from straight down, to the side's outside. */
static struct point reach(struct point from, double side, double distance, double angle)
{
    return (struct point){from.x + side * distance * sin(angle), from.y + distance * cos(angle)};
}

/* Someone who faces us, the neck at (0, 0), in parts of the height. Left is to the right. */
static void draw_posture(struct draw *draw, struct point *joint)
{
    joint[NOSE] = (struct point){0, -0.1};
    for (int k = 0; k < 2; k++) {
        double side = k == 0 ? 1 : -1;
        joint[EYE + k] = (struct point){side * 0.035, -0.13};
        joint[EAR + k] = (struct point){side * 0.07, -0.11};
        joint[SHOULDER + k] = (struct point){side * 0.13, 0};
        joint[HIP + k] = (struct point){side * 0.08, 0.32};
        double arm = -0.3 + 2.4 * draw_uniform(draw), leg = -0.1 + 0.6 * draw_uniform(draw);
        double fore = arm + 1.6 * (draw_uniform(draw) - 0.3);
        double shin = leg + 0.8 * (draw_uniform(draw) - 0.7);
        joint[ELBOW + k] = reach(joint[SHOULDER + k], side, 0.16, arm);
        joint[WRIST + k] = reach(joint[ELBOW + k], side, 0.15, fore);
        joint[KNEE + k] = reach(joint[HIP + k], side, 0.22, leg);
        joint[ANKLE + k] = reach(joint[KNEE + k], side, 0.22, shin);
    }
}

/* Into the picture: leaning, scaled, moved. */
static double place(struct draw *draw, const struct shape *shape, struct point *joint)
{
    double height = (double)shape->dim[2], width = (double)shape->dim[3];
    double size = height * (0.75 + 0.25 * draw_uniform(draw));
    double lean = 0.6 * (draw_uniform(draw) - 0.5), c = cos(lean), s = sin(lean);
    double x = width * (0.4 + 0.2 * draw_uniform(draw));
    double y = height * (0.18 + 0.1 * draw_uniform(draw));
    for (int k = 0; k < POSE_JOINTS; k++) {
        struct point p = joint[k];
        joint[k] = (struct point){x + size * (c * p.x - s * p.y), y + size * (s * p.x + c * p.y)};
    }
    return size;
}

static struct canvas_line line(struct point from, struct point to, double radius, double hue)
{
    struct canvas_line l = {{from.x, from.y}, {to.x, to.y}, .radius = radius};
    canvas_hue(hue, l.colour);
    for (int c = 0; c < CANVAS_CHANNELS; c++)
        l.colour[c] *= 0.6f; /* crops lie within +-0.5: the mean is taken away, 255 divides them */
    return l;
}

/* From the back to the front; each limb has a hue of its own. */
static void paint_figure(const struct point *joint, double size, const struct shape *shape,
                         float *image)
{
    static const int limb[][2] = {
        {HIP, KNEE}, {KNEE, ANKLE}, {SHOULDER, HIP}, {SHOULDER, ELBOW}, {ELBOW, WRIST}};
    enum { LIMBS = 5, HUES = 2 * LIMBS + 3 };
    for (int k = 0; k < LIMBS; k++)
        for (int side = 0; side < 2; side++) {
            struct canvas_line l = line(joint[limb[k][0] + side], joint[limb[k][1] + side],
                                        0.03 * size, (double)(2 * k + side) / HUES);
            canvas_draw(&l, shape, image);
        }
    struct canvas_line head = line(joint[NOSE], joint[NOSE], 0.085 * size, 10.0 / HUES);
    canvas_draw(&head, shape, image);
    for (int k = NOSE; k < SHOULDER; k++) {
        double hue = k == NOSE ? 0.3 : (11.0 + (k + 1) % 2) / HUES;
        struct canvas_line spot = line(joint[k], joint[k], 0.02 * size, hue);
        canvas_draw(&spot, shape, image);
    }
}

static void hide_some(struct draw *draw, double size, const struct shape *shape, float *joints,
                      float *image)
{
    for (int k = 0; k < POSE_JOINTS; k++) {
        float *joint = joints + k * POSE_NUMBERS;
        struct point at = {(double)joint[0], (double)joint[1]};
        bool inside = joint[0] >= 0 && joint[1] >= 0 && joint[0] < (float)shape->dim[3] &&
                      joint[1] < (float)shape->dim[2];
        bool hidden = draw_uniform(draw) < 0.06;
        joint[2] = inside ? hidden ? 1 : 2 : 0;
        struct canvas_line blot = {{at.x, at.y}, {at.x, at.y}, .radius = 0.05 * size};
        if (inside && hidden)
            canvas_draw(&blot, shape, image);
    }
}

void poses_fill(const struct batch *batch)
{
    float *image = batch_input(batch, "crop"), *joints = batch_input(batch, "joints");
    int v = graph_find_value(batch->graph, "crop");
    if (!image || !joints || v == NONE)
        return;
    const struct shape *shape = &batch->graph->values[v].shape;
    int64_t size = shape_span(shape, 1, 4);
    for (int64_t n = 0; n < batch->size; n++, image += size) {
        struct draw draw = draw_begin(batch, n);
        struct point joint[POSE_JOINTS];
        draw_posture(&draw, joint);
        double height = place(&draw, shape, joint);
        canvas_ground(&draw, shape, image);
        paint_figure(joint, height, shape, image);
        for (int k = 0; k < POSE_JOINTS; k++) {
            joints[k * POSE_NUMBERS] = (float)joint[k].x;
            joints[k * POSE_NUMBERS + 1] = (float)joint[k].y;
        }
        hide_some(&draw, height, shape, joints, image);
        canvas_noise(&draw, size, image);
        joints += POSE_JOINTS * POSE_NUMBERS;
    }
}

/* ---- quality ---- */

/* The longer side of the box round the joints in the picture. */
static float extent(const float *joints)
{
    float low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int k = 0; k < POSE_JOINTS * POSE_NUMBERS; k += POSE_NUMBERS)
        for (int axis = 0; axis < 2 && joints[k + 2] > 0; axis++) {
            low[axis] = fminf(low[axis], joints[k + axis]);
            high[axis] = fmaxf(high[axis], joints[k + axis]);
        }
    return fmaxf(high[0] - low[0], high[1] - low[1]);
}

static double pck(const struct judged *judged)
{
    enum { PERSON = POSE_JOINTS * POSE_NUMBERS };
    const float *said = judged->answers, *true_ones = judged->targets;
    int64_t count = 0, found = 0;
    if (judged->target_type != DTYPE_F32 || judged->answer_count != judged->target_count)
        return NAN;
    for (int64_t person = 0; person < judged->target_count / PERSON; person++) {
        const float *joints = true_ones + person * PERSON, *answer = said + person * PERSON;
        float limit = 0.1f * extent(joints);
        for (int k = 0; k < PERSON; k += POSE_NUMBERS) {
            float off = hypotf(answer[k] - joints[k], answer[k + 1] - joints[k + 1]);
            count += joints[k + 2] > 0;
            found += joints[k + 2] > 0 && off <= limit;
        }
    }
    return count ? (double)found / (double)count : NAN;
}

const struct quality quality_pck = {.name = "PCK", .of = pck};
