/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/strided.h"

#include <string.h>

void strided_broadcast(const struct desc *desc, int rank, int64_t *stride)
{
    for (int d = 0; d < rank; d++) {
        int own = desc ? d - (rank - desc->shape.rank) : -1;
        stride[d] = own >= 0 && desc->shape.dim[own] != 1 ? desc->stride[own] : 0;
    }
}

/* Outermost first by the strides of operand 0; dimensions of size 1 are left out. */
static int memory_order(const struct desc *space, int *order)
{
    int count = 0;
    for (int d = 0; d < space->shape.rank; d++) {
        if (space->shape.dim[d] == 1)
            continue;
        int at = count++;
        for (; at > 0 && space->stride[order[at - 1]] < space->stride[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    return count;
}

static bool continues(const struct strided *s, int outer, const int64_t (*stride)[RANK_MAX],
                      int inner, int64_t inner_dim)
{
    for (int k = 0; k < s->operands; k++)
        if (s->stride[k][outer] != stride[k][inner] * inner_dim)
            return false;
    return true;
}

void strided_init(struct strided *s, const struct desc *const *descs, int operands)
{
    int64_t stride[STRIDED_OPERANDS][RANK_MAX] = {{0}};
    int order[RANK_MAX];
    const struct shape *shape = &descs[0]->shape;
    *s = (struct strided){.operands = operands};
    for (int k = 0; k < operands; k++)
        strided_broadcast(descs[k], shape->rank, stride[k]);
    int count = memory_order(descs[0], order);
    for (int d = 0; d < count; d++) {
        int64_t dim = shape->dim[order[d]];
        bool joins = s->rank > 0 &&
                     continues(s, s->rank - 1, (const int64_t(*)[RANK_MAX])stride, order[d], dim);
        int to = joins ? s->rank - 1 : s->rank++;
        s->dim[to] = joins ? s->dim[to] * dim : dim;
        for (int k = 0; k < operands; k++)
            s->stride[k][to] = stride[k][order[d]];
    }
    if (s->rank == 0)
        s->dim[s->rank++] = 1;
    s->row = s->dim[s->rank - 1];
    s->rows = 1;
    for (int d = 0; d < s->rank - 1; d++)
        s->rows *= s->dim[d];
}

int64_t strided_at(const struct strided *s, int k, int64_t row)
{
    int64_t at = 0;
    for (int d = s->rank - 2; d >= 0; d--) {
        at += row % s->dim[d] * s->stride[k][d];
        row /= s->dim[d];
    }
    return at;
}

bool strided_is_full(const struct strided *s, int k)
{
    int64_t dense = 1;
    for (int d = s->rank - 1; d >= 0; d--) {
        if (s->stride[k][d] != dense && s->dim[d] != 1)
            return false;
        dense *= s->dim[d];
    }
    return true;
}

bool strided_is_scalar(const struct strided *s, int k)
{
    for (int d = 0; d < s->rank; d++)
        if (s->stride[k][d] != 0)
            return false;
    return true;
}

bool strided_is_vector(const struct strided *s, int k)
{
    for (int d = 0; d < s->rank - 1; d++)
        if (s->stride[k][d] != 0)
            return false;
    return s->stride[k][s->rank - 1] == 1;
}
