/* SPDX-License-Identifier: Apache-2.0
 *
 * With ceil_mode the last window must start inside the input or its leading padding: the rule of
 * Caffe, which ONNX 19 made explicit. auto_pad follows the text of Conv-11 and AveragePool-19.
 */
#include "engine/ops/lib/window.h"

#include <stdlib.h>
#include <string.h>

#include "engine/graph/op.h"

enum auto_pad { PAD_NOTSET, PAD_SAME_UPPER, PAD_SAME_LOWER, PAD_VALID };

/* Sizes stay below this, so that no product of two of them overflows. */
#define SIZE_LIMIT  INT64_C(0x7fffffff)
#define COUNT_LIMIT 0x1p40

/* An attribute with one integer per spatial dimension (or two: pads); kept as it is if absent. */
static enum status read_ints(const struct node *node, const char *name, int want, int64_t least,
                             int64_t *values, struct error *err)
{
    int64_t read[2 * SPATIAL_MAX];
    int count = node_ints(node, name, read, want);
    if (count == 0)
        return STATUS_OK;
    if (count != want)
        return FAIL(err, STATUS_FAILED, "%s: attribute %s has %d entries, the input needs %d",
                    node->op->name, name, count, want);
    for (int k = 0; k < want; k++) {
        if (read[k] < least || read[k] > SIZE_LIMIT)
            return FAIL(err, STATUS_FAILED, "%s: attribute %s has the entry %lld, least is %lld",
                        node->op->name, name, (long long)read[k], (long long)least);
        values[k] = read[k];
    }
    return STATUS_OK;
}

static enum status read_auto_pad(const struct node *node, enum auto_pad *mode, struct error *err)
{
    static const char *const names[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    const char *text = node_string(node, "auto_pad", "NOTSET");
    for (int k = 0; k < ARRAY_COUNT(names); k++)
        if (strcmp(text, names[k]) == 0) {
            *mode = (enum auto_pad)k;
            return STATUS_OK;
        }
    return FAIL(err, STATUS_FAILED,
                "%s: auto_pad \"%s\" is none of NOTSET, SAME_UPPER, "
                "SAME_LOWER, VALID",
                node->op->name, text);
}

/* Everything but the output sizes and the pads that auto_pad decides. */
static enum status read_window(const struct node *node, const struct shape *x,
                               const int64_t *kernel, struct window *w, struct error *err)
{
    int rank = x->rank - 2;
    if (rank < 1 || rank > SPATIAL_MAX)
        return UNSUPPORTED(err, "%s: input of rank %d; 3 to %d are supported", node->op->name,
                           x->rank, SPATIAL_MAX + 2);
    *w = (struct window){.rank = rank, .group = node_int(node, "group", 1)};
    if (w->group < 1)
        return FAIL(err, STATUS_FAILED, "%s: group %lld is not positive", node->op->name,
                    (long long)w->group);
    int64_t pads[2 * SPATIAL_MAX] = {0};
    for (int k = 0; k < rank; k++) {
        w->stride[k] = w->dilation[k] = 1;
        w->kernel[k] = kernel ? kernel[k] : 0;
        w->in[k] = x->dim[k + 2];
        if (w->in[k] > SIZE_LIMIT || w->kernel[k] > SIZE_LIMIT)
            return UNSUPPORTED(err, "%s: spatial size %lld", node->op->name, (long long)w->in[k]);
    }
    TRY(read_ints(node, "kernel_shape", rank, 1, w->kernel, err));
    TRY(read_ints(node, "strides", rank, 1, w->stride, err));
    TRY(read_ints(node, "dilations", rank, 1, w->dilation, err));
    TRY(read_ints(node, "pads", 2 * rank, 0, pads, err));
    for (int k = 0; k < rank; k++) {
        w->pad_begin[k] = pads[k];
        w->pad_end[k] = pads[rank + k];
        if (w->kernel[k] < 1)
            return FAIL(err, STATUS_FAILED, "%s: kernel_shape is missing or 0", node->op->name);
        if (kernel && w->kernel[k] != kernel[k])
            return FAIL(err, STATUS_FAILED, "%s: kernel_shape says %lld, the weights have %lld",
                        node->op->name, (long long)w->kernel[k], (long long)kernel[k]);
    }
    return STATUS_OK;
}

static int64_t reach(const struct window *w, int k)
{
    return (w->kernel[k] - 1) * w->dilation[k] + 1;
}

static void split_pad(struct window *w, int k, int64_t total, bool more_at_end)
{
    int64_t less = total / 2;
    w->pad_begin[k] = more_at_end ? less : total - less;
    w->pad_end[k] = total - w->pad_begin[k];
}

static void resolve_same(struct window *w, int k, bool more_at_end)
{
    w->out[k] = (w->in[k] + w->stride[k] - 1) / w->stride[k];
    int64_t total = (w->out[k] - 1) * w->stride[k] + reach(w, k) - w->in[k];
    split_pad(w, k, total > 0 ? total : 0, more_at_end);
}

static void resolve_given(struct window *w, int k, bool ceil_mode)
{
    int64_t room = w->in[k] + w->pad_begin[k] + w->pad_end[k] - reach(w, k);
    if (ceil_mode) /* a window may be larger than the input, too, by less than a stride */
        room += w->stride[k] - 1;
    if (room < 0) {
        w->out[k] = 0;
        return;
    }
    w->out[k] = room / w->stride[k] + 1;
    if (ceil_mode && (w->out[k] - 1) * w->stride[k] >= w->in[k] + w->pad_begin[k])
        w->out[k]--;
}

/* Counts of taps and positions that fit an int64_t with room to spare. */
static enum status check_counts(const struct node *node, const struct window *w, struct error *err)
{
    double taps = 1, positions = 1;
    for (int k = 0; k < w->rank; k++) {
        taps *= (double)w->kernel[k];
        positions *= (double)w->out[k];
    }
    if (taps > COUNT_LIMIT || positions > COUNT_LIMIT)
        return UNSUPPORTED(
            err,
            "%s: a window of %.4g elements and a result of %.4g positions, which take "
            "%.4g GB per image and channel in f32: more than is supported",
            node->op->name, taps, positions, positions * 4e-9);
    return STATUS_OK;
}

enum status window_from_node(const struct node *node, const struct shape *x, const int64_t *kernel,
                             struct window *window, struct error *err)
{
    enum auto_pad mode = PAD_NOTSET;
    TRY(read_window(node, x, kernel, window, err));
    TRY(read_auto_pad(node, &mode, err));
    bool ceil_mode = mode == PAD_NOTSET && node_int(node, "ceil_mode", 0) != 0;
    for (int k = 0; k < window->rank; k++) {
        if (mode == PAD_VALID)
            window->pad_begin[k] = window->pad_end[k] = 0;
        if (mode == PAD_SAME_UPPER || mode == PAD_SAME_LOWER)
            resolve_same(window, k, mode == PAD_SAME_UPPER);
        else
            resolve_given(window, k, ceil_mode);
        if (window->out[k] < 1)
            return FAIL(err, STATUS_FAILED,
                        "%s: a window of %lld does not fit into %lld with pads %lld and %lld",
                        node->op->name, (long long)reach(window, k), (long long)window->in[k],
                        (long long)window->pad_begin[k], (long long)window->pad_end[k]);
    }
    return check_counts(node, window, err);
}

/* out = stride (in - 1) + output_padding + reach - pads, solved for out or for pads. */
static void resolve_transposed(struct window *w, int k, enum auto_pad mode, int64_t extra,
                               int64_t wanted)
{
    int64_t full = (w->in[k] - 1) * w->stride[k] + extra + reach(w, k);
    bool same = mode == PAD_SAME_UPPER || mode == PAD_SAME_LOWER;
    if (mode == PAD_VALID)
        w->pad_begin[k] = w->pad_end[k] = 0;
    if (!wanted && same)
        wanted = w->in[k] * w->stride[k];
    if (wanted) {
        int64_t total = full - wanted;
        split_pad(w, k, total > 0 ? total : 0, mode == PAD_SAME_UPPER);
        w->out[k] = wanted;
        return;
    }
    w->out[k] = full - w->pad_begin[k] - w->pad_end[k];
}

enum status window_transposed_from_node(const struct node *node, const struct shape *x,
                                        const int64_t *kernel, struct window *window,
                                        struct error *err)
{
    enum auto_pad mode = PAD_NOTSET;
    int64_t extra[SPATIAL_MAX] = {0}, wanted[2 + SPATIAL_MAX] = {0};
    TRY(read_window(node, x, kernel, window, err));
    TRY(read_auto_pad(node, &mode, err));
    TRY(read_ints(node, "output_padding", window->rank, 0, extra, err));
    int named = node_ints(node, "output_shape", wanted, 2 + SPATIAL_MAX);
    if (named && named != window->rank && named != window->rank + 2)
        return FAIL(err, STATUS_FAILED, "ConvTranspose: output_shape has %d entries, not %d", named,
                    window->rank);
    for (int k = 0; k < window->rank; k++) {
        int64_t size = named ? wanted[named - window->rank + k] : 0;
        resolve_transposed(window, k, mode, extra[k], size);
        if (window->out[k] < 1)
            return FAIL(err, STATUS_FAILED, "ConvTranspose: spatial output %d would have size %lld",
                        k, (long long)window->out[k]);
    }
    return check_counts(node, window, err);
}

struct window window_to_3d(const struct window *window)
{
    struct window w = {.rank = SPATIAL_MAX, .group = window->group};
    int lead = SPATIAL_MAX - window->rank;
    for (int k = 0; k < SPATIAL_MAX; k++) {
        int at = k - lead;
        w.kernel[k] = at < 0 ? 1 : window->kernel[at];
        w.stride[k] = at < 0 ? 1 : window->stride[at];
        w.dilation[k] = at < 0 ? 1 : window->dilation[at];
        w.pad_begin[k] = at < 0 ? 0 : window->pad_begin[at];
        w.pad_end[k] = at < 0 ? 0 : window->pad_end[at];
        w.in[k] = at < 0 ? 1 : window->in[at];
        w.out[k] = at < 0 ? 1 : window->out[at];
    }
    return w;
}

bool window_is_flat(const struct window *w)
{
    return w->in[0] == 1 && w->kernel[0] == 1 && w->out[0] == 1 && w->pad_begin[0] == 0;
}

static int64_t product(const int64_t *size, int count)
{
    int64_t total = 1;
    for (int k = 0; k < count; k++)
        total *= size[k];
    return total;
}

int64_t window_in_count(const struct window *window)
{
    return product(window->in, window->rank);
}

int64_t window_out_count(const struct window *window)
{
    return product(window->out, window->rank);
}

int64_t window_taps(const struct window *window)
{
    return product(window->kernel, window->rank);
}

/* Where tap `tap` of output `out` lies along dimension k; -1: in the padding. */
static int64_t source_at(const struct window *w, int k, int64_t tap, int64_t out, bool transposed)
{
    int64_t at = out * w->stride[k] - w->pad_begin[k] + tap * w->dilation[k];
    if (transposed) {
        at = out + w->pad_begin[k] - tap * w->dilation[k];
        if (at < 0 || at % w->stride[k] != 0)
            return -1;
        at /= w->stride[k];
    }
    return at < 0 || at >= w->in[k] ? -1 : at;
}

int64_t *window_offsets(const struct window *window, bool transposed)
{
    int64_t taps = window_taps(window), positions = window_out_count(window);
    if ((double)taps * (double)positions > COUNT_LIMIT)
        return NULL;
    int64_t *table = malloc((size_t)(taps * positions) * sizeof(*table));
    if (!table)
        return NULL;
    for (int64_t i = 0; i < taps * positions; i++) {
        int64_t tap = i / positions, out = i % positions, offset = 0, step = 1;
        for (int k = window->rank - 1; k >= 0 && offset >= 0; k--) {
            int64_t at =
                source_at(window, k, tap % window->kernel[k], out % window->out[k], transposed);
            tap /= window->kernel[k];
            out /= window->out[k];
            offset = at < 0 ? -1 : offset + at * step;
            step *= window->in[k];
        }
        table[i] = offset;
    }
    return table;
}
