/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a node's attributes. Apart from the rest of the graph because plug-ins link it. */
#include <string.h>

#include "engine/graph/op.h"

const struct attr *node_attr(const struct node *node, const char *name)
{
    for (int k = 0; k < node->attr_count; k++)
        if (strcmp(node->attrs[k].name, name) == 0)
            return &node->attrs[k];
    return NULL;
}

int64_t node_int(const struct node *node, const char *name, int64_t fallback)
{
    const struct attr *attr = node_attr(node, name);
    return attr && attr->kind == ATTR_INT ? attr->i : fallback;
}

double node_float(const struct node *node, const char *name, double fallback)
{
    const struct attr *attr = node_attr(node, name);
    if (attr && attr->kind == ATTR_INT)
        return (double)attr->i;
    return attr && attr->kind == ATTR_FLOAT ? attr->f : fallback;
}

const char *node_string(const struct node *node, const char *name, const char *fallback)
{
    const struct attr *attr = node_attr(node, name);
    return attr && attr->kind == ATTR_STRING ? attr->s : fallback;
}

int node_ints(const struct node *node, const char *name, int64_t *values, int max)
{
    const struct attr *attr = node_attr(node, name);
    if (!attr || attr->kind != ATTR_INTS)
        return 0;
    for (int k = 0; k < attr->count && k < max; k++)
        values[k] = attr->ints[k];
    return attr->count;
}

void node_parameters(const struct node *node, double *parameters)
{
    const struct op *op = node->op;
    bool more = op->attrs != NULL;
    for (int k = 0; k < 2; k++) {
        more = more && op->attrs[k];
        parameters[k] = more ? node_float(node, op->attrs[k], op->defaults[k]) : 0;
    }
}
