/* SPDX-License-Identifier: Apache-2.0
 * Shi, Bai, Belongie, CVPR 2017, sections 3.3 and 3.4; thresholds as AI Matrix sets them. */
#include "workloads/lib/losses.h"
#include "workloads/lib/vision/detector_loss.h"
#include "workloads/lib/vision/pages.h"
#include "workloads/lib/vision/seglink.h"

enum { X, Y, WIDTH, HEIGHT, SINE, COSINE };

static int number(struct graph *g, double value)
{
    return graph_const_f32(g, (float)value);
}

static int sub(struct graph *g, int a, int b)
{
    return binary(g, "Sub", a, b);
}

static int where(struct graph *g, int condition, int x, int y)
{
    return graph_node(g, "Where", NULL, INPUTS(condition, x, y), NO_ATTRS);
}

static int column(struct graph *g, int x, int64_t k)
{
    return slice(g, x, (struct range){2, k, k + 1, 1});
}

/* The best word of every cell, [N, S]. */
struct matched {
    int classes; /* i64: 1, 0; -1: does not count */
    int word;    /* f32: its number; -1: of class 0, -2: of class -1 */
    int hot;     /* [N, S, PAGE_WORDS]: 1 at its number */
};

/* Where a point x, y off the centre of a line lies along it and across it. */
static int turned(struct graph *g, int x, int y, int cosine, int sine)
{
    return add(g, mul(g, x, cosine), mul(g, y, sine));
}

/* How far a word's height is from the anchor, a factor from 1 on, of words round the cell's centre
 * [N, W, S]; else many. */
static int misfits(struct graph *g, int words, const struct seglink_tables *t)
{
    const int64_t row[] = {1, 1, t->cells};
    int centre_x = reshape(g, column(g, t->centres, 0), 3, row);
    int centre_y = reshape(g, column(g, t->centres, 1), 3, row);
    int anchor = reshape(g, column(g, t->sizes, 0), 3, row), half = number(g, 0.5);
    int x = sub(g, centre_x, column(g, words, X)), y = sub(g, centre_y, column(g, words, Y));
    int cosine = column(g, words, COSINE), sine = column(g, words, SINE);
    int along = turned(g, x, y, cosine, sine);
    int down = turned(g, y, x, cosine, unary(g, "Neg", sine));
    int wide = mul(g, column(g, words, WIDTH), half), high = mul(g, column(g, words, HEIGHT), half);
    int inside = binary(g, "And", binary(g, "Less", unary(g, "Abs", along), wide),
                        binary(g, "Less", unary(g, "Abs", down), high));
    int height = binary(g, "Max", column(g, words, HEIGHT), number(g, 1));
    int ratio =
        binary(g, "Max", binary(g, "Div", anchor, height), binary(g, "Div", height, anchor));
    return where(g, inside, ratio, number(g, 1e6));
}

static struct matched match(struct graph *g, int words, const struct seglink_tables *t)
{
    struct matched m;
    int ratio = misfits(g, words, t);
    int best = graph_node(g, "ReduceMin", NULL, INPUTS(ratio),
                          ATTRS(attr_ints_of("axes", 1), attr_int("keepdims", 0)));
    int which = graph_node(g, "ArgMin", NULL, INPUTS(ratio),
                           ATTRS(attr_int("axis", 1), attr_int("keepdims", 0)));
    int on = binary(g, "Less", best, number(g, 1.7)), off = binary(g, "Less", number(g, 2), best);
    int out = where(g, off, number(g, 0), number(g, -1));
    m.classes = cast(g, where(g, on, number(g, 1), out), DTYPE_I64);
    m.word = where(g, on, cast(g, which, DTYPE_F32), sub(g, out, number(g, 1)));
    m.hot = one_hot(g, which, PAGE_WORDS);
    return m;
}

/* Part [low, high) of the word that lies over the cell, both along the word from the cell's centre;
 * the segment's middle and width. */
struct part {
    int middle, width;
};

static struct part part_over(struct graph *g, int along, int width, int anchor)
{
    int half = number(g, 0.5), reach = mul(g, anchor, half), side = mul(g, width, half);
    int low = binary(g, "Max", sub(g, along, side), unary(g, "Neg", reach));
    int high = binary(g, "Min", add(g, along, side), reach);
    int length = binary(g, "Max", sub(g, high, low), number(g, 1));
    return (struct part){mul(g, add(g, low, high), half), length};
}

/* What the offsets [N, S, 6] of cells on text are to be, the inverse of the decoder's geometry. */
static int offsets_of(struct graph *g, int words, const struct matched *m,
                      const struct seglink_tables *t)
{
    int word = graph_node(g, "MatMul", NULL, INPUTS(m->hot, words), NO_ATTRS);
    int anchor = column(g, t->sizes, 0);
    int x = sub(g, column(g, word, X), column(g, t->centres, 0));
    int y = sub(g, column(g, word, Y), column(g, t->centres, 1));
    int cosine = column(g, word, COSINE), sine = column(g, word, SINE);
    int against = unary(g, "Neg", sine);
    struct part p = part_over(g, turned(g, x, y, cosine, sine), column(g, word, WIDTH), anchor);
    int down = turned(g, y, x, cosine, against);
    int height = binary(g, "Max", column(g, word, HEIGHT), number(g, 1));
    int parts[] = {binary(g, "Div", turned(g, p.middle, down, cosine, against), anchor),
                   binary(g, "Div", turned(g, down, p.middle, cosine, sine), anchor),
                   unary(g, "Log", binary(g, "Div", p.width, anchor)),
                   unary(g, "Log", binary(g, "Div", height, anchor)),
                   sine,
                   cosine};
    return mul(g, concat(g, 2, PAGE_NUMBERS, parts), number(g, 10));
}

/* Classes of links [N, E]: 1 between cells of one word, -1 where a cell does not count or the map
 * ends, else 0. */
static int link_classes(struct graph *g, const struct matched *m, const struct seglink_tables *t)
{
    int64_t *from = arena_array(&g->arena, (size_t)t->links + 1, sizeof(*from));
    int64_t *to = arena_array(&g->arena, (size_t)t->links + 1, sizeof(*to));
    for (int64_t k = 0; from && to && k < t->links; k++) {
        from[k] = t->edge[2 * k];
        to[k] = t->edge[2 * k + 1] == NONE ? t->cells : t->edge[2 * k + 1];
    }
    /* One more cell, which does not count: off the map. */
    int word = graph_node(
        g, "Pad", NULL,
        INPUTS(m->word, graph_const_i64(g, 4, (const int64_t[]){0, 0, 0, 1}), number(g, -2)),
        NO_ATTRS);
    int first = gather(g, word, graph_const(g, NULL, DTYPE_I64, shape_of(t->links), from), 1);
    int second = gather(g, word, graph_const(g, NULL, DTYPE_I64, shape_of(t->links), to), 1);
    int least = binary(g, "Min", first, second), largest = binary(g, "Max", first, second);
    int apart = binary(g, "Less", least, largest), none = binary(g, "Less", least, number(g, 0));
    int out = where(g, binary(g, "Less", least, number(g, -1)), number(g, -1), number(g, 0));
    return cast(g, where(g, binary(g, "Or", apart, none), out, number(g, 1)), DTYPE_I64);
}

struct seglink_targets seglink_targets(struct graph *g, const struct seglink *net, int words)
{
    struct seglink_tables t = seglink_tables(g, net);
    if (!t.edge || g->failed)
        return (struct seglink_targets){NONE, NONE, NONE};
    struct matched m = match(g, words, &t);
    return (struct seglink_targets){m.classes, link_classes(g, &m, &t),
                                    offsets_of(g, words, &m, &t)};
}

static int per_positive(struct graph *g, int sum, int positive)
{
    return binary(g, "Div", sum, binary(g, "Max", sum_of(g, positive), number(g, 1)));
}

int seglink_loss(struct graph *g, const struct seglink *net)
{
    int words = graph_input(g, "words", DTYPE_F32, shape_of(net->batch, PAGE_WORDS, PAGE_NUMBERS),
                            (struct fill){.kind = FILL_UNIFORM, .a = 0, .b = 1});
    struct seglink_targets t = seglink_targets(g, net, words);
    int on = is_positive(g, t.cells), linked = is_positive(g, t.links);
    int text = sum_of_hard(g, class_losses(g, net->segments, t.cells), t.cells, 3);
    int link = sum_of_hard(g, class_losses(g, net->links, t.links), t.links, 3);
    int place = place_loss(g, net->offsets, t.offsets, on);
    return add(g, per_positive(g, add(g, text, place), on), per_positive(g, link, linked));
}
