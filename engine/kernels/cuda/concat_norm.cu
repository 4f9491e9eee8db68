/* SPDX-License-Identifier: Apache-2.0
 *
 * Concat of channels with a factor and a shift per channel and an activation, as the passes make of
 * batch norms after concatenations: one reading of the pieces, one writing of the result. A thread
 * has 16 bytes of neighbouring results, or one of them, and finds the piece that they come from by
 * bisection; neighbouring threads nearly always have the same one. */
#include "engine/kernels/cuda/lib/math.h"
#include "engine/kernels/cuda/lib/query.h"

enum { PIECES_MAX = 128, MUL = 0, ADD, ACT };

struct joined {
    const void *in[PIECES_MAX];
    unsigned start[PIECES_MAX + 1]; /* first channel of each piece, and after the last */
    const void *factor, *shift;     /* of the result's type, too */
    void *y;
    unsigned count;                    /* of groups of `width` results */
    struct divisor channels, by_plane; /* by_plane: in groups; channels-last: channels in groups */
    unsigned plane, pieces;
    int type, act;
    float a, b;
};

/* last: channels-last, where a group is neighbouring channels of a position; else it is
 * neighbouring positions of a channel. */
template <int width, bool last>
__global__ void __launch_bounds__(BLOCK) concat_norm_groups(const __grid_constant__ struct joined k)
{
    KERNEL_BEGIN();
    unsigned step = gridDim.x * BLOCK;
    for (unsigned g = blockIdx.x * BLOCK + threadIdx.x; g < k.count; g += step) {
        unsigned row = divide(g, last ? k.channels : k.by_plane); /* a position; or a channel */
        unsigned rest = (g - row * (last ? k.channels : k.by_plane).d) * width;
        unsigned image = last ? row : divide(row, k.channels);
        unsigned channel = last ? rest : row - image * k.channels.d,
                 piece = part_of(k.start, k.pieces, channel);
        unsigned first = k.start[piece], size = k.start[piece + 1] - first;
        size_t from = (size_t)image * size + (channel - first);
        struct group<width> v =
            group_as<width>(k.type, k.in[piece], last ? from : from * k.plane + rest);
        constexpr int own = last ? width : 1; /* factors of a group */
        struct group<own> by = group_as<own>(k.type, k.factor, channel),
                          plus = group_as<own>(k.type, k.shift, channel);
#pragma unroll
        for (int e = 0; e < width; e++)
            v.v[e] = v.v[e] * by.v[last ? e : 0] + plus.v[last ? e : 0];
        activate_group(v, k.act, k.a, k.b);
        group_store_as<width>(k.type, k.y, (size_t)g * width, v);
    }
}

/* ---- hooks ---- */

struct kernel_state {
    struct joined k; /* pointers are left open */
    unsigned char piece[PIECES_MAX];
    int factor, shift; /* inputs */
    int width;
    bool last; /* channels-last */
    struct cuda_grid grid;
};

static bool per_channel(const struct kernel_query *q, int post, enum post_kind kind)
{
    const struct post *p = &q->node->posts[post];
    if (p->kind != kind)
        return false;
    const struct desc *s = &q->in[p->input];
    int64_t channels = q->out[0].shape.dim[1];
    return s->dtype == q->out[0].dtype && s->shape.rank >= 3 &&
           shape_count(&s->shape) == channels && s->shape.dim[s->shape.rank - 3] == channels;
}

static bool all_lie(const struct kernel_query *q, bool (*lies)(const struct desc *desc))
{
    for (int k = 0; k < q->node->op_inputs; k++)
        if (!lies(&q->in[k]))
            return false;
    return lies(&q->out[0]);
}

static enum status check(const struct kernel_query *q, struct error *why)
{
    const struct node *node = q->node;
    int64_t axis = cuda_host->node_int(node, "axis", 1);
    TRY(floats_supported(q, 0, node->op_inputs, why));
    if (q->out[0].shape.rank != 4 || (axis != 1 && axis != -3) || node->op_inputs > PIECES_MAX)
        return REFUSE(why, "only channels of images, at most %d pieces", PIECES_MAX);
    if (node->post_count < 2 || node->post_count > 3 || !per_channel(q, MUL, POST_MUL) ||
        !per_channel(q, ADD, POST_ADD))
        return REFUSE(why, "only with a factor and a shift per channel");
    if (node->post_count == 3 && node->posts[ACT].kind != POST_ACT)
        return REFUSE(why, "only an activation may follow factor and shift");
    if (!all_lie(q, cuda_host->desc_is_plain) && !all_lie(q, cuda_host->desc_is_nhwc))
        return REFUSE(why, "inputs and output lie differently");
    return fits_index(&q->out[0]) ? STATUS_OK : REFUSE(why, "more than 2^31 elements");
}

/* Pieces with channels; returns how many elements all of them begin at a multiple of. */
static int find_pieces(const struct kernel_query *q, struct kernel_state *s)
{
    struct joined *k = &s->k;
    int by = group_width(q->out[0].dtype, 0);
    for (int i = 0; i < q->node->op_inputs; i++) {
        unsigned channels = (unsigned)q->in[i].shape.dim[1];
        int own = group_width(q->out[0].dtype, channels);
        if (channels == 0)
            continue;
        by = own < by ? own : by;
        s->piece[k->pieces++] = (unsigned char)i;
        k->start[k->pieces] = k->start[k->pieces - 1] + channels;
    }
    return by;
}

static enum status plan(const struct kernel_query *q, int, struct kernel_state *s,
                        struct error *why)
{
    TRY(check(q, why));
    const int64_t *y = q->out[0].shape.dim;
    const struct post *posts = q->node->posts;
    struct joined *k = &s->k;
    int whole = find_pieces(q, s);
    s->factor = posts[MUL].input;
    s->shift = posts[ADD].input;
    k->type = q->out[0].dtype;
    s->last = !all_lie(q, cuda_host->desc_is_plain);
    k->plane = (unsigned)(y[2] * y[3]);
    int by = s->width = s->last ? whole : group_width(q->out[0].dtype, k->plane);
    k->count = (unsigned)(shape_count(&q->out[0].shape) / by);
    k->channels = divisor_of(s->last ? y[1] / by : y[1]);
    k->by_plane = divisor_of(s->last ? 1 : k->plane / by);
    if (q->node->post_count > ACT) {
        k->act = posts[ACT].act;
        k->a = posts[ACT].a;
        k->b = posts[ACT].b;
    }
    s->grid = grid_for(q, k->count);
    return STATUS_OK;
}

static void launch(const struct kernel_state *state, const struct kernel_args *args)
{
    struct joined k = state->k;
    for (unsigned i = 0; i < k.pieces; i++)
        k.in[i] = args->in[state->piece[i]];
    k.factor = args->in[state->factor];
    k.shift = args->in[state->shift];
    k.y = args->out[0];
    if (state->last)
        LAUNCH_WIDTH(state->width, (concat_norm_groups<width, true>), state->grid, cuda_size(BLOCK),
                     0, &k, args);
    else
        LAUNCH_WIDTH(state->width, (concat_norm_groups<width, false>), state->grid,
                     cuda_size(BLOCK), 0, &k, args);
}

static const char *const ops[] = {"Concat", NULL};

CUDA_KERNEL(concat_norm) = {CUDA_NAME(concat_norm), .ops = ops, CUDA_PLAN, CUDA_HOOK(launch)};
