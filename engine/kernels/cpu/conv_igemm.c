/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution as an implicit matrix product: rows are output pixels, the reduction runs over taps
 * and input channels, and what would be an im2col matrix is only a pointer per pixel and tap, made
 * for one block of rows at a time (the idea of XNNPACK's indirection buffer). Padding reads a row
 * of zeros; where much is padding (wide dilations), taps that read nothing else in a whole tile are
 * left out. A 1x1 convolution is the same with one tap. Any stride, dilation and padding, 1 to 3
 * spatial dimensions. Groups are batches of products; groups of few channels are merged until their
 * results fill a vector, with zeros in the packed weights where two groups do not meet. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "engine/kernels/lib/conv_source.h"

/* Usual borders are computed: the rates of direct convolutions stay comparable with their peak. */
static const double PADDING_LEFT_OUT = 1.0 / 3;

struct kernel_state {
    struct conv_shape shape;
    struct gemm_plan plan;
    struct gemm_post post;
    float *packed, *bias, *zeros;     /* packed NULL: in the workspace */
    int64_t merged, groups;           /* groups taken together, and how many of those */
    int64_t batch_dim[2], c_batch[2]; /* images (unless folded), groups */
    bool large;                       /* the result may be written past the caches */
    bool without_padding;             /* taps that read nothing else are left out */
    bool changing;                    /* weights come with each launch */
};

struct packing {
    const struct kernel_state *state;
    const float *weights;
    float *packed;
};

static struct gemm_size size_of(const struct kernel_query *q, const struct conv_shape *s)
{
    int64_t merged = conv_merged_groups(s);
    return (struct gemm_size){.batch = conv_batches(s) * s->window.group / merged,
                              .m = conv_rows(s),
                              .n = s->group_out * merged,
                              .taps = window_taps(&s->window),
                              .k = s->group_in * merged,
                              .threads = q->threads};
}

/* Floats between the rows of A that neighbouring pixels read. */
static int64_t row_floats(const struct conv_shape *s)
{
    return s->x_at[SPATIAL_MAX - 1] * s->window.stride[SPATIAL_MAX - 1];
}

/* Weights [M, C, taps] of merged group `index` in panels; zero between groups. */
static void pack_group(void *context, int64_t index, int thread)
{
    const struct packing *p = context;
    const struct conv_shape *s = &p->state->shape;
    const struct gemm_plan *plan = &p->state->plan;
    int64_t full = plan->size.vectors * VL, depth = plan->size.taps * plan->size.k;
    int64_t columns = plan->size.n, floats = gemm_packed_floats(plan);
    float *packed = p->packed + index * floats;
    (void)thread;
    memset(packed, 0, (size_t)floats * sizeof(float));
    for (int64_t m = 0; m < columns; m++) {
        const float *from = p->weights + (index * columns + m) * s->w_out;
        int64_t row = m / s->group_out * s->group_in, panel = m / full;
        int64_t width = gemm_panel_vectors(plan, panel) * VL;
        float *to = packed + panel * full * depth + row * width + m % full;
        for (int64_t c = 0; c < s->group_in; c++)
            for (int64_t t = 0; t < plan->size.taps; t++)
                to[(t * plan->size.k + c) * width] = from[c * s->w_in + t * s->w_tap];
    }
}

/* Which part of the taps of all pixels read padding. */
static double padding_share(const struct window *w)
{
    double inside = 1;
    for (int d = 0; d < SPATIAL_MAX; d++) {
        int64_t count = 0;
        for (int64_t tap = 0; tap < w->kernel[d]; tap++)
            for (int64_t out = 0; out < w->out[d]; out++) {
                int64_t at = out * w->stride[d] + tap * w->dilation[d] - w->pad_begin[d];
                count += at >= 0 && at < w->in[d];
            }
        inside *= (double)count / (double)(w->kernel[d] * w->out[d] + !w->out[d]);
    }
    return 1 - inside;
}

/* Batches are images, where they are not folded, and groups. */
static void set_batches(struct kernel_state *state)
{
    const struct conv_shape *s = &state->shape;
    state->merged = conv_merged_groups(s);
    state->groups = s->window.group / state->merged;
    int64_t columns = s->group_out * state->merged;
    state->batch_dim[0] = conv_batches(s);
    state->c_batch[0] = s->y_image;
    state->batch_dim[1] = state->groups;
    state->c_batch[1] = columns;
}

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *state,
                        struct error *why)
{
    struct conv_shape *s = &state->shape;
    TRY(conv_shape_from(q, CONV_PLAIN, s, why));
    if (s->window.group > 1 && s->group_in == 1 && s->group_out == 1 && window_is_flat(&s->window))
        return UNSUPPORTED(why, "depthwise");
    struct gemm_size size = size_of(q, s);
    state->without_padding = padding_share(&s->window) > PADDING_LEFT_OUT;
    state->large = desc_bytes(&q->out[0]) >= GEMM_STREAM_BYTES;
    state->plan = gemm_variant(&size, row_floats(s), state->large, variant);
    state->post = s->post;
    state->changing = !q->fixed[1];
    set_batches(state);
    return STATUS_OK;
}

static int variants(const struct kernel_state *s)
{
    return gemm_variant_count(&s->plan.size, row_floats(&s->shape), s->large);
}

/* By the words on padding the report knows that fewer operations are done than are counted. */
static void describe(const struct kernel_state *s, char *text, size_t size)
{
    gemm_describe(&s->plan, text, size);
    size_t used = strlen(text);
    if (s->without_padding)
        snprintf(text + used, size - used, " without padding");
}

static size_t weight_bytes(const struct kernel_state *s)
{
    return (size_t)(gemm_packed_floats(&s->plan) * s->groups) * sizeof(float);
}

static size_t workspace(const struct kernel_state *s)
{
    return gemm_workspace(&s->plan) + (s->changing ? weight_bytes(s) : 0);
}

static float *panels(const struct kernel_state *s, const struct kernel_args *args)
{
    size_t before = gemm_workspace(&s->plan);
    return s->packed ? s->packed : (float *)(void *)((char *)args->workspace + before);
}

static enum status prepare(const struct kernel_query *q, struct kernel_state *state,
                           size_t *packed_bytes, struct error *err)
{
    size_t weights = state->changing ? 0 : weight_bytes(state);
    size_t bias_bytes =
        (size_t)(state->shape.out_channels + gemm_bias_floats(&state->plan)) * sizeof(float);
    size_t zero_bytes = (size_t)(state->shape.channels + VL) * sizeof(float);
    state->packed = weights ? memory_alloc(weights) : NULL;
    state->bias = memory_alloc(bias_bytes);
    state->zeros = memory_alloc(zero_bytes);
    if ((weights && !state->packed) || !state->bias || !state->zeros)
        return FAIL_NO_MEMORY(err);
    memset(state->zeros, 0, zero_bytes);
    memset(state->bias, 0, bias_bytes);
    gemm_post_take_bias(q, &state->post, state->bias, state->shape.out_channels);
    for (int k = 0; k < state->post.count; k++)
        state->post.steps[k].batch[1] = state->c_batch[1] * state->post.steps[k].column;
    *packed_bytes = weights + bias_bytes + zero_bytes;
    return STATUS_OK;
}

static void pack(struct kernel_state *state, const struct kernel_args *args)
{
    struct packing packing = {state, args->in[1], panels(state, args)};
    if (state->shape.window.group > 1)
        pool_run(args->pool, state->groups, pack_group, &packing);
    else
        conv_pack(&state->shape, &state->plan, packing.weights, args->pool, packing.packed);
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    const struct conv_shape *s = &state->shape;
    struct conv_source source = conv_source_of(s, sizeof(float), args->in[0], state->zeros);
    source.groups = state->groups;
    source.group_bytes *= state->merged;
    struct gemm_call call = {.rows = conv_source_rows,
                             .source = &source,
                             .zeros = state->without_padding ? state->zeros : NULL,
                             .b = panels(state, args),
                             .b_batch = gemm_packed_floats(&state->plan),
                             .b_period = state->groups,
                             .bias = state->bias,
                             .bias_batch = s->group_out * state->merged,
                             .c = args->out[0],
                             .c_row = s->y_pixel,
                             .post = &state->post,
                             .in = args->in,
                             .batch_rank = 2,
                             .batch_dim = state->batch_dim,
                             .c_batch = state->c_batch,
                             .workspace = args->workspace};
    gemm_run(&state->plan, &call, args->pool);
}

static void release(struct kernel_state *state)
{
    memory_free(state->packed);
    memory_free(state->bias);
    memory_free(state->zeros);
}

REGISTER_KERNEL(conv_igemm) = {
    NATIVE(conv_igemm),   .ops = OPS("Conv"),
    .packs = 1u << 1,     .state_size = sizeof(struct kernel_state),
    .plan = plan,         .variants = variants,
    .describe = describe, .workspace = workspace,
    .prepare = prepare,   .pack = pack,
    .launch = launch,     .release = release,
};
