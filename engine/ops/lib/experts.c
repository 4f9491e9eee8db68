/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/experts.h"

enum status experts_check_list(const struct infer *c, int k, int64_t entries, struct error *err)
{
    char text[96];
    const struct value *list = c->in[k];
    if (list->dtype != DTYPE_I64 || list->shape.rank != 1 || list->shape.dim[0] != entries)
        return FAIL(err, STATUS_FAILED, "%s: input %d is %s%s, not i64[%lld]", c->node->op->name, k,
                    dtype_name(list->dtype), shape_text(&list->shape, text), (long long)entries);
    return STATUS_OK;
}

enum status experts_check_offsets(const struct node *node, const struct ref_tensor *offsets,
                                  int64_t rows, struct error *err)
{
    int64_t before = 0;
    for (int64_t e = 0; e < offsets->count; e++) {
        bool end = e == 0 || e == offsets->count - 1;
        int64_t at = offsets->i[e];
        if (at < before || at > rows || (end && at != (e ? rows : 0)))
            return FAIL(err, STATUS_FAILED, "%s: expert %lld begins at row %lld of %lld",
                        node->op->name, (long long)e, (long long)at, (long long)rows);
        before = at;
    }
    return STATUS_OK;
}

enum status experts_check_order(const struct node *node, const struct ref_tensor *order,
                                struct error *err)
{
    for (int64_t i = 0; i < order->count; i++)
        if (order->i[i] < 0 || order->i[i] >= order->count)
            return FAIL(err, STATUS_FAILED, "%s: place %lld of %lld", node->op->name,
                        (long long)order->i[i], (long long)order->count);
    return STATUS_OK;
}
