/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/lib/conv_source.h"

#include "base/numbers/integers.h"

/* One tap, every pixel, one after the other in memory. */
static bool is_linear(const struct conv_shape *s)
{
    const struct window *w = &s->window;
    int64_t expected = s->x_at[2];
    for (int d = SPATIAL_MAX - 1; d >= 0; d--) {
        if (w->kernel[d] != 1 || w->stride[d] != 1 || w->out[d] != w->in[d])
            return false;
        if (w->in[d] > 1 && s->x_at[d] != expected)
            return false;
        expected *= w->in[d];
    }
    return s->images == 1 || !s->folded || s->x_image == expected;
}

/* An output position; its pixels run along the last dimension. */
struct place {
    int64_t image, at[SPATIAL_MAX];
};

static struct place place_of(const struct conv_shape *s, int64_t image, int64_t pixel)
{
    struct place p = {.image = image + pixel / s->pixels};
    pixel %= s->pixels;
    for (int d = SPATIAL_MAX - 1; d >= 0; d--) {
        p.at[d] = pixel % s->window.out[d];
        pixel /= s->window.out[d];
    }
    return p;
}

/* To the first pixel of the next line. */
static void next_line(const struct conv_shape *s, struct place *p)
{
    p->at[2] = 0;
    if (++p->at[1] < s->window.out[1])
        return;
    p->at[1] = 0;
    if (++p->at[0] < s->window.out[0])
        return;
    p->at[0] = 0;
    p->image++;
}

/* One tap of `run` pixels of a line; x is where the first of them reads. */
static void point_tap(const struct conv_source *from, const char *line, int64_t x, int64_t run,
                      const float **to)
{
    const struct conv_shape *s = from->shape;
    int64_t in = s->window.in[2], stride = s->window.stride[2], pixel = s->x_at[2] * from->bytes;
    if (x >= 0 && x + (run - 1) * stride < in) {
        line += x * pixel;
        for (int64_t m = 0; m < run; m++)
            to[m] = (const float *)(const void *)(line + m * stride * pixel);
        return;
    }
    for (int64_t m = 0; m < run; m++, x += stride)
        to[m] = (uint64_t)x < (uint64_t)in ? (const float *)(const void *)(line + x * pixel)
                                           : from->zeros;
}

static void point_line(const struct conv_source *from, const struct place *p, int64_t run,
                       const float **to, int64_t step)
{
    const struct conv_shape *s = from->shape;
    const struct window *w = &s->window;
    const char *image = from->x + p->image * s->x_image * from->bytes;
    int64_t first[SPATIAL_MAX];
    for (int d = 0; d < SPATIAL_MAX; d++)
        first[d] = p->at[d] * w->stride[d] - w->pad_begin[d];
    for (int64_t a = 0; a < w->kernel[0]; a++) {
        int64_t z = first[0] + a * w->dilation[0];
        for (int64_t b = 0; b < w->kernel[1]; b++) {
            int64_t y = first[1] + b * w->dilation[1];
            bool inside = (uint64_t)z < (uint64_t)w->in[0] && (uint64_t)y < (uint64_t)w->in[1];
            const char *line = image + (z * s->x_at[0] + y * s->x_at[1]) * from->bytes;
            for (int64_t c = 0; c < w->kernel[2]; c++, to += step) {
                if (inside)
                    point_tap(from, line, first[2] + c * w->dilation[2], run, to);
                for (int64_t m = 0; !inside && m < run; m++)
                    to[m] = from->zeros;
            }
        }
    }
}

void conv_source_rows(const struct gemm_rows *wanted, const float **to, int64_t step)
{
    const struct conv_source *from = wanted->source;
    const struct conv_shape *s = from->shape;
    int64_t count = wanted->count;
    int64_t image = wanted->batch / from->groups;
    struct conv_source group = *from;
    group.x += wanted->batch % from->groups * from->group_bytes;
    if (from->linear) {
        const char *x = group.x + (image * s->x_image + wanted->row * s->x_at[2]) * from->bytes;
        for (int64_t m = 0; m < count; m++)
            to[m] = (const float *)(const void *)(x + m * s->x_at[2] * from->bytes);
        return;
    }
    struct place place = place_of(s, image, wanted->row);
    while (count > 0) {
        int64_t run = s->window.out[2] - place.at[2];
        run = smaller(run, count);
        point_line(&group, &place, run, to, step);
        next_line(s, &place);
        to += run;
        count -= run;
    }
}

struct conv_source conv_source_of(const struct conv_shape *shape, size_t bytes, const void *x,
                                  const void *zeros)
{
    return (struct conv_source){.shape = shape,
                                .bytes = (int64_t)bytes,
                                .x = x,
                                .zeros = zeros,
                                .linear = is_linear(shape),
                                .groups = shape->window.group,
                                .group_bytes = shape->group_in * (int64_t)bytes};
}
