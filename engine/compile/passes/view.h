/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the elements of a value lie in another one, from which it was only reshaped, turned, cut
 * out and scaled. Models write heads and windows as chains of such nodes, each exporter in its own
 * order; what they come to is the same view.
 *
 * An axis of the value is walked in one or more parts, each with a size and a step in the origin's
 * row-major order: exchanging rows and columns and then calling both one axis gives an axis of two
 * parts. Axes of size 1 have none. */
#ifndef ENGINE_COMPILE_PASSES_VIEW_H
#define ENGINE_COMPILE_PASSES_VIEW_H

#include "engine/graph/op.h"

enum { VIEW_PARTS = 2 * RANK_MAX };

struct view {
    int origin;    /* a value of the graph */
    double factor; /* what its elements are multiplied with */
    int64_t start; /* the first element */
    struct shape shape;
    int parts; /* those of the first axis, then those of the second ... */
    int64_t dim[VIEW_PARTS], step[VIEW_PARTS];
};

/* A value itself. */
void view_whole(const struct graph *g, int value, struct view *view);
/* Of a value, as far up as it goes but through at most so many nodes that move elements; nodes that
 * multiply or divide by a fixed scalar do not count. With 0 of them the origin is the value itself,
 * or what was scaled. */
void view_of(const struct graph *g, int value, int moves, struct view *view);

/* The following change a view in place; false: that is no view, and it is in no defined state. */

/* From a node's input 0 to its first result. */
bool view_through(const struct graph *g, const struct node *node, struct view *view);
/* The same elements in the same order under another shape. */
bool view_reshape(struct view *view, const struct shape *shape);
/* Axis k of the result is axis perm[k]. */
bool view_turn(struct view *view, const int64_t *perm);

/* How often each element along an axis is repeated before the next one comes. */
int64_t view_repeats(const struct view *view, int axis);
/* Each of them once. */
void view_once(struct view *view, int axis);

/* The step of each axis, 0 where its size is 1; false: an axis has several. */
bool view_steps(const struct view *view, int64_t *step);
/* Whether it is the whole origin, in its order; the factor aside. */
bool view_is_whole(const struct graph *g, const struct view *view);

#endif
