/* SPDX-License-Identifier: Apache-2.0
 *
 * Field numbers are those of onnx.proto. */
#include "workloads/onnx/open_dims.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "workloads/onnx/wire.h"

/* Fields: all that are looked at, those of inputs and of initialisers too, of which each is
 * compared with each: more than any model needs, and over in about a second. */
enum { FIELDS_LOOKED_AT = 200000000, OPEN_DIMS_MAX = 4096 };

/* An input of the model. */
struct port {
    const char *name;
    struct wire_span shape; /* at NULL: the file does not say it */
};

struct reader {
    struct arena *arena;
    struct open_dims *dims;
    struct port *ports;
    size_t count, capacity;
    int64_t left; /* fields that may still be looked at */
};

static const char *text_of_field(struct arena *arena, const struct wire_field *f)
{
    int length = f->value < INT_MAX ? (int)f->value : 0;
    return f->body.at ? arena_printf(arena, "%.*s", length, (const char *)f->body.at) : "";
}

/* ---- inputs ---- */

static bool is_same_text(const struct wire_field *a, const struct wire_field *b)
{
    return a->body.at && b->body.at && a->value == b->value &&
           memcmp(a->body.at, b->body.at, (size_t)a->value) == 0;
}

/* Whether an initialiser of the graph has this input's name. */
static bool is_initialised(struct wire_span graph, const struct wire_field *name, int64_t *left)
{
    struct wire_field f, its;
    while (wire_next(&graph, &f, left))
        if (f.number == 5 && wire_find(f.body, 8, &its, left) && is_same_text(&its, name))
            return true;
    return false;
}

/* False: no memory. */
static bool add_port(struct reader *r, struct wire_span input, const struct wire_field *name)
{
    static const uint64_t way[] = {2, 1, 2}; /* type, tensor, shape */
    struct port *ports =
        arena_grow(r->arena, r->ports, &r->capacity, r->count + 1, sizeof(*r->ports));
    if (!ports)
        return false;
    r->ports = ports;
    struct port *port = &ports[r->count++];
    struct wire_field f = {.body = input};
    port->name = text_of_field(r->arena, name);
    for (int k = 0; k < ARRAY_COUNT(way); k++)
        if (!wire_find(f.body, way[k], &f, &r->left))
            f.body.at = NULL;
    port->shape = f.body;
    return port->name;
}

/* Of the model's message; inputs with an initialiser of their name are none. */
static bool read_ports(struct reader *r, struct wire_span model)
{
    struct wire_field graph, f, name;
    if (!wire_find(model, 7, &graph, &r->left) || !graph.body.at)
        return false;
    struct wire_span at = graph.body;
    while (wire_next(&at, &f, &r->left)) {
        if (f.number != 11)
            continue;
        bool named = wire_find(f.body, 1, &name, &r->left);
        if (named && is_initialised(graph.body, &name, &r->left))
            continue;
        if (!add_port(r, f.body, &name))
            return false;
    }
    return r->left > 0;
}

/* ---- their dimensions ---- */

struct dimension {
    bool open;
    int64_t size;
    const char *symbol;
};

/* Dimension k, the next one of a shape. Exporters write -1 for "any", and 0 of the first; further
 * back 0 is an empty tensor. False: there is none. */
static bool next_dimension(struct reader *r, struct wire_span *shape, int k, struct dimension *d)
{
    struct wire_field f, part;
    do {
        if (!shape->at || !wire_next(shape, &f, &r->left))
            return false;
    } while (f.number != 1);
    *d = (struct dimension){.open = true, .symbol = ""};
    if (wire_find(f.body, 1, &part, &r->left)) {
        d->size = (int64_t)part.value;
        d->open = d->size < 0 || (d->size == 0 && k == 0);
    } else if (wire_find(f.body, 2, &part, &r->left)) {
        d->symbol = text_of_field(r->arena, &part);
    }
    return d->symbol;
}

const char *open_dim_name(struct arena *arena, const char *symbol, const char *input, int dim)
{
    return *symbol ? symbol : arena_printf(arena, "%s.%d", input, dim);
}

const struct open_dim *open_dims_find(const struct open_dims *dims, const char *name)
{
    for (size_t k = 0; k < dims->count; k++)
        if (strcmp(dims->list[k].name, name) == 0)
            return &dims->list[k];
    return NULL;
}

/* The entry of that name, which may be new. NULL: no memory, or more than any model has. */
static struct open_dim *enter(struct reader *r, const char *name)
{
    struct open_dims *dims = r->dims;
    r->left -= (int64_t)dims->count;
    const struct open_dim *known = name ? open_dims_find(dims, name) : NULL;
    if (known)
        return &dims->list[known - dims->list];
    if (!name || dims->count == OPEN_DIMS_MAX)
        return NULL;
    struct open_dim *list =
        arena_grow(r->arena, dims->list, &dims->capacity, dims->count + 1, sizeof(*list));
    if (!list)
        return NULL;
    dims->list = list;
    list[dims->count] = (struct open_dim){.name = name};
    return &list[dims->count++];
}

static bool read_dims(struct reader *r, const struct port *port)
{
    struct wire_span shape = port->shape;
    struct dimension d;
    for (int k = 0; next_dimension(r, &shape, k, &d); k++) {
        if (k == 0 && !d.open && !r->dims->fixed_batch)
            r->dims->fixed_batch = d.size;
        if (!d.open)
            continue;
        struct open_dim *dim = enter(r, open_dim_name(r->arena, d.symbol, port->name, k));
        if (!dim)
            return false;
        *(k ? &dim->later : &dim->first) = true;
    }
    return true;
}

static void find_batch(struct open_dims *dims)
{
    bool apart = dims->fixed_batch;
    for (size_t k = 0; k < dims->count; k++)
        apart = apart || (dims->list[k].first && !dims->list[k].later);
    for (size_t k = 0; k < dims->count; k++)
        dims->list[k].batch = dims->list[k].first && !(apart && dims->list[k].later);
}

bool open_dims_read(const void *bytes, size_t size, struct arena *arena, struct open_dims *dims)
{
    const unsigned char *start = bytes;
    struct reader r = {.arena = arena, .dims = dims, .left = FIELDS_LOOKED_AT};
    *dims = (struct open_dims){0};
    if (!size || !read_ports(&r, (struct wire_span){start, start + size}))
        return false;
    for (size_t k = 0; k < r.count; k++)
        if (!read_dims(&r, &r.ports[k]))
            return false;
    find_batch(dims);
    return r.left > 0;
}

/* ---- sizes that are given ---- */

enum status open_dim_size(const char *const *given, int count, const char *name, int64_t *size,
                          struct error *err)
{
    size_t length = strlen(name);
    *size = 0;
    for (int k = 0; k < count; k++) {
        const char *text = given[k];
        if (strncmp(text, name, length) != 0 || text[length] != '=')
            continue;
        char *end;
        errno = 0;
        *size = strtoll(text + length + 1, &end, 10);
        if (end == text + length + 1 || *end || errno || *size < 1)
            return FAIL(err, STATUS_FAILED, "dimension \"%s\" must be a positive number", text);
    }
    return STATUS_OK;
}

int64_t open_dims_batch(const struct open_dims *dims, const char *const *given, int count)
{
    int64_t batch = 0, size;
    for (size_t k = 0; k < dims->count; k++) {
        if (!dims->list[k].batch)
            continue;
        if (open_dim_size(given, count, dims->list[k].name, &size, NULL) != STATUS_OK || !size)
            return 1;
        batch = batch ? batch : size;
    }
    return batch ? batch : dims->fixed_batch ? dims->fixed_batch : 1;
}
