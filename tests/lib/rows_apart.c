/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/rows_apart.h"

#include <string.h>

enum { GAP = 3 }; /* elements between two rows */

static int innermost(const struct desc *desc)
{
    for (int d = desc->shape.rank - 1; d >= 0; d--)
        if (desc->shape.dim[d] > 1 && desc->stride[d] == 1)
            return d;
    return NONE;
}

static bool has_several(const struct desc *desc)
{
    int d = innermost(desc);
    return d != NONE && shape_count(&desc->shape) > desc->shape.dim[d];
}

bool has_rows(const struct graph *g)
{
    const struct node *node = &g->nodes[0];
    for (int k = 0; k < node->output_count; k++) {
        const struct value *v = node->outputs[k] == NONE ? NULL : &g->values[node->outputs[k]];
        struct desc desc = v ? desc_dense(v->dtype, &v->shape, LAYOUT_PLAIN) : (struct desc){0};
        if (v && has_several(&desc))
            return true;
    }
    return false;
}

static int64_t offset_of(const struct desc *desc, int64_t element)
{
    int64_t at = 0;
    for (int d = desc->shape.rank - 1; d >= 0; d--) {
        at += element % desc->shape.dim[d] * desc->stride[d];
        element /= desc->shape.dim[d];
    }
    return at;
}

enum status rows_apart(struct arena *arena, struct desc *desc, struct apart *apart,
                       struct error *err)
{
    size_t size = dtype_size(desc->dtype);
    int row = innermost(desc);
    if (!has_several(desc))
        return STATUS_OK;
    int64_t width = desc->shape.dim[row];
    for (int d = 0; d < desc->shape.rank; d++)
        if (d != row)
            desc->stride[d] = desc->stride[d] / width * (width + GAP);
    apart->skew = size;
    apart->bytes = desc_bytes(desc) + GAP * size;
    apart->mask = arena_array(arena, apart->bytes, 1);
    if (!apart->mask)
        return FAIL_NO_MEMORY(err);
    for (int64_t k = 0; k < shape_count(&desc->shape); k++)
        memset(apart->mask + apart->skew + (size_t)offset_of(desc, k) * size, 1, size);
    return STATUS_OK;
}

enum status gaps_intact(const struct apart *apart, unsigned char *data, int left_over,
                        struct error *err)
{
    for (size_t b = 0; apart->mask && b < apart->bytes; b++) {
        if (apart->mask[b])
            continue;
        if (data[b] != (unsigned char)left_over)
            return FAIL(err, STATUS_INVALID, "wrote between rows of the result, at byte %zu", b);
        data[b] = 0;
    }
    return STATUS_OK;
}
