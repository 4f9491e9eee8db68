/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/family/between_ranks.h"

#include <string.h>

#include "engine/ops/family/gradient.h"

enum status between_ranks_infer(const struct infer *c, int64_t *ranks, struct error *err)
{
    *ranks = node_int(c->node, "ranks", 1);
    if (*ranks < 1)
        return FAIL(err, STATUS_FAILED, "%s: ranks=%lld, must be 1 or more", c->node->op->name,
                    (long long)*ranks);
    return STATUS_OK;
}

enum status between_ranks_infer_cut(const struct infer *c, int64_t *ranks, struct error *err)
{
    const struct shape *x = &c->in[0]->shape;
    char text[96];
    TRY(between_ranks_infer(c, ranks, err));
    if (x->rank < 1 || x->dim[0] % *ranks)
        return FAIL(err, STATUS_FAILED, "%s: %s cannot be cut into %lld equal parts along axis 0",
                    c->node->op->name, shape_text(x, text), (long long)*ranks);
    return STATUS_OK;
}

enum dtype between_ranks_wire(const struct node *node)
{
    const char *wire = node_string(node, "wire", NULL);
    return wire ? dtype_from_name(wire) : DTYPE_NONE;
}

enum status between_ranks_infer_wire(const struct infer *c, struct error *err)
{
    const char *name = node_string(c->node, "wire", NULL);
    enum dtype wire = between_ranks_wire(c->node);
    if (!name || ((wire == DTYPE_F16 || wire == DTYPE_BF16) && c->in[0]->dtype == DTYPE_F32))
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED,
                "%s: wire=\"%s\": f32 can cross as f16 or bf16, and %s as it is", c->node->op->name,
                name, dtype_name(c->in[0]->dtype));
}

void between_ranks_copy(const struct ref_call *call, int64_t count)
{
    const struct ref_tensor *from = call->in[0];
    struct ref_tensor *to = call->out[0];
    if (from->f)
        memcpy(to->f, from->f, (size_t)count * sizeof(*to->f));
    else
        memcpy(to->i, from->i, (size_t)count * sizeof(*to->i));
}

void between_ranks_gradient(const struct gradient_call *c, const struct op *op)
{
    int64_t ranks = node_int(gradient_node(c), "ranks", 1);
    c->dx[0] = graph_node(c->g, op->name, NULL, INPUTS(c->dy[0]), ATTRS(attr_int("ranks", ranks)));
}
