/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/conv_shape.h"

enum status conv_shape_from(const struct node *node, const struct shape *x,
                            const struct shape *weights, struct window *window, struct shape *y,
                            struct error *err)
{
    char text_x[96], text_w[96];
    if (x->rank != weights->rank || x->rank < 3)
        return FAIL(err, STATUS_FAILED, "%s: input %s, weights %s: ranks must agree, 3 or more",
                    node->op->name, shape_text(x, text_x), shape_text(weights, text_w));
    TRY(window_from_node(node, x, weights->dim + 2, window, err));
    if (x->dim[1] != weights->dim[1] * window->group || weights->dim[0] % window->group != 0)
        return FAIL(err, STATUS_FAILED, "%s: input %s, weights %s, group %lld do not go together",
                    node->op->name, shape_text(x, text_x), shape_text(weights, text_w),
                    (long long)window->group);
    *y = (struct shape){.rank = x->rank, .dim = {x->dim[0], weights->dim[0]}};
    for (int k = 0; k < window->rank; k++)
        y->dim[2 + k] = window->out[k];
    return STATUS_OK;
}
