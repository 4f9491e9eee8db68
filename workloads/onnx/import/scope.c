/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/system/hash.h"
#include "workloads/onnx/import/import.h"

struct scope scope_inside(const struct scope *parent)
{
    return (struct scope){.parent = parent,
                          .opset = parent->opset,
                          .call_attrs = parent->call_attrs,
                          .call_attr_count = parent->call_attr_count};
}

static size_t slot_of(const struct scope *scope, const char *name)
{
    size_t mask = scope->cap - 1, at = (size_t)hash_fnv1a(name) & mask;
    while (scope->names[at] && strcmp(scope->names[at], name) != 0)
        at = (at + 1) & mask;
    return at;
}

static bool grow(struct importer *im, struct scope *scope)
{
    struct scope old = *scope;
    scope->cap = old.cap ? old.cap * 4 : 64;
    scope->names = arena_array(&im->scratch, scope->cap, sizeof(*scope->names));
    scope->values = arena_array(&im->scratch, scope->cap, sizeof(*scope->values));
    if (!scope->names || !scope->values)
        return false;
    for (size_t k = 0; k < old.cap; k++) {
        if (!old.names[k])
            continue;
        size_t at = slot_of(scope, old.names[k]);
        scope->names[at] = old.names[k];
        scope->values[at] = old.values[k];
    }
    return true;
}

enum status scope_put(struct importer *im, struct scope *scope, const char *name, int value,
                      struct error *err)
{
    if (!name || !*name)
        return STATUS_OK;
    if (scope->count * 2 >= scope->cap && !grow(im, scope))
        return FAIL_NO_MEMORY(err);
    size_t at = slot_of(scope, name);
    if (scope->names[at])
        return FAIL(err, STATUS_FAILED, "the name \"%s\" is given to two values", name);
    scope->names[at] = name;
    scope->values[at] = value;
    scope->count++;
    return STATUS_OK;
}

int scope_find(const struct scope *scope, const char *name)
{
    if (!name || !*name)
        return NONE;
    for (; scope; scope = scope->parent) {
        if (!scope->cap)
            continue;
        size_t at = slot_of(scope, name);
        if (scope->names[at])
            return scope->values[at];
    }
    return UNKNOWN_NAME;
}

enum status scope_get(const struct scope *scope, const char *name, int *value, struct error *err)
{
    *value = scope_find(scope, name);
    if (*value != UNKNOWN_NAME)
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED,
                "\"%s\" is made by no node before it (nodes must stand in order of execution)",
                name);
}

const Onnx__AttributeProto *scope_resolve(const struct scope *scope,
                                          const Onnx__AttributeProto *attr)
{
    if (!attr->ref_attr_name || !*attr->ref_attr_name)
        return attr;
    for (size_t k = 0; k < scope->call_attr_count; k++)
        if (strcmp(text_of(scope->call_attrs[k]->name), attr->ref_attr_name) == 0)
            return scope->call_attrs[k];
    return NULL;
}

const Onnx__AttributeProto *scope_attr(const struct scope *scope, const Onnx__NodeProto *node,
                                       const char *name)
{
    for (size_t k = 0; k < node->n_attribute; k++)
        if (strcmp(text_of(node->attribute[k]->name), name) == 0)
            return scope_resolve(scope, node->attribute[k]);
    return NULL;
}
