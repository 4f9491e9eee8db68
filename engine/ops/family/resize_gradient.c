/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/resize_gradient.h"

#include <string.h>

#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"

enum { INPUTS_MOST = 4, ATTRS_MOST = 16 };

enum status resize_gradient(const struct gradient_call *c, struct error *err)
{
    const struct node *node = gradient_node(c);
    struct shape x = gradient_shape(c->g, gradient_in(c, 0));
    int inputs[INPUTS_MOST] = {c->dy[0]}, count = node->op_inputs;
    struct attr attrs[ATTRS_MOST];
    if (count > INPUTS_MOST || node->attr_count >= ATTRS_MOST)
        return UNSUPPORTED(err, "%d inputs and %d attributes", count, node->attr_count);
    for (int k = 1; k < count; k++)
        inputs[k] = node->inputs[k];
    if (node->attr_count)
        memcpy(attrs, node->attrs, (size_t)node->attr_count * sizeof(*attrs));
    attrs[node->attr_count] = attr_ints("output_shape", x.rank, x.dim);
    c->dx[0] =
        graph_node(c->g, op_resize_gradient.name, NULL, count, inputs, node->attr_count + 1, attrs);
    return STATUS_OK;
}
