/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/graph/op.h"

#include <string.h>

#include "engine/graph/op_list.h"

static const struct op *const ops[] = {
#define X(name) &op_##name,
#include "op_list.inc"
#undef X
};

int op_count(void)
{
    return ARRAY_COUNT(ops);
}

const struct op *op_at(int index)
{
    return ops[index];
}

const struct op *op_find(const char *name, const char *domain)
{
    for (int k = 0; k < ARRAY_COUNT(ops); k++) {
        const char *own = ops[k]->domain ? ops[k]->domain : "";
        if (strcmp(ops[k]->name, name) == 0 && strcmp(own, domain ? domain : "") == 0)
            return ops[k];
    }
    return NULL;
}

const struct op *op_named(const char *name)
{
    const struct op *found = op_find(name, NULL);
    for (int k = 0; k < ARRAY_COUNT(ops) && !found; k++)
        found = strcmp(ops[k]->name, name) == 0 ? ops[k] : NULL;
    return found;
}
