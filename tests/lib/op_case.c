/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/op_case.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/family/narrow.h"

enum { INPUTS_MAX = 32, ATTRS_MAX = 32, OUTPUTS_MAX = 16 };

struct parser {
    struct graph *g;
    const struct op *op;
    const char *start, *at; /* the text and how far it is read */
    enum dtype floats;      /* wanted for what is written as f32 */
    struct error *err;
};

/* "TYPE[DIMS]" and what follows it. */
struct tensor_text {
    enum dtype dtype;
    struct shape shape;
    bool literal, constant, ranged;
    double low, high;
    void *data; /* literal: native contents in the arena of the graph */
};

static enum status wrong(const struct parser *p, const char *what)
{
    return FAIL(p->err, STATUS_FAILED, "%s at \"%.24s\" (character %d of \"%.100s\")", what, p->at,
                (int)(p->at - p->start), p->start);
}

static void skip_blanks(struct parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool at_end(const struct parser *p)
{
    return !*p->at || isspace((unsigned char)*p->at);
}

static bool take(struct parser *p, char c)
{
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

/* ---- numbers ---- */

static enum status parse_int(struct parser *p, int64_t *value)
{
    char *end;
    errno = 0;
    long long parsed = strtoll(p->at, &end, 10);
    if (end == p->at || errno)
        return wrong(p, "an integer is expected");
    *value = parsed;
    p->at = end;
    return STATUS_OK;
}

static enum status parse_float(struct parser *p, double *value)
{
    char *end;
    *value = strtod(p->at, &end);
    if (end == p->at)
        return wrong(p, "a number is expected");
    p->at = end;
    return STATUS_OK;
}

/* Whether the number here is written as an integer: digits and nothing that makes it a float. */
static bool looks_integer(const char *text)
{
    text += *text == '-' || *text == '+';
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && !strchr(".eE", text[digits] ? text[digits] : ' ');
}

static bool take_word(struct parser *p, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

/* One literal of an integer type; what does not fit the width is an error. */
static enum status parse_literal_int(struct parser *p, enum dtype dtype, int64_t *value)
{
    bool yes = take_word(p, "true");
    if (yes || take_word(p, "false")) {
        *value = yes;
        return dtype == DTYPE_BOOL ? STATUS_OK : wrong(p, "true and false are for bool only");
    }
    if (dtype == DTYPE_U64 && *p->at != '-') {
        char *end;
        errno = 0;
        *value = (int64_t)strtoull(p->at, &end, 10);
        if (end == p->at || errno)
            return wrong(p, "an unsigned integer is expected");
        p->at = end;
        return STATUS_OK;
    }
    TRY(parse_int(p, value));
    int bits = dtype == DTYPE_BOOL ? 1 : (int)dtype_size(dtype) * 8 - !dtype_is_unsigned(dtype);
    int64_t limit = bits >= 63 ? INT64_MAX : (INT64_C(1) << bits) - 1;
    int64_t least = dtype_is_unsigned(dtype) ? 0 : -limit - 1;
    if (*value < least || *value > limit)
        return wrong(p, "a literal before here does not fit its type");
    return STATUS_OK;
}

/* ---- tensors ---- */

static enum status parse_literals(struct parser *p, struct tensor_text *t)
{
    int64_t count = shape_count(&t->shape), given = 0;
    bool is_float = dtype_is_float(t->dtype);
    double *f = arena_array(&p->g->arena, (size_t)count + 1, sizeof(*f));
    int64_t *i = arena_array(&p->g->arena, (size_t)count + 1, sizeof(*i));
    t->data = arena_array(&p->g->arena, (size_t)count + 1, dtype_size(t->dtype));
    if (!f || !i || !t->data)
        return FAIL_NO_MEMORY(p->err);
    t->literal = true;
    for (bool more = !at_end(p); more; more = take(p, ',')) {
        int64_t slot = given < count ? given : count; /* the spare one: counted, then refused */
        TRY(is_float ? parse_float(p, &f[slot]) : parse_literal_int(p, t->dtype, &i[slot]));
        given++;
    }
    if (given != count && given != 1)
        return FAIL(p->err, STATUS_FAILED, "%lld literals for %lld elements in \"%.100s\"",
                    (long long)given, (long long)count, p->start);
    for (int64_t k = 1; given == 1 && k < count; k++) {
        f[k] = f[0];
        i[k] = i[0];
    }
    struct ref_tensor tensor = {.dtype = t->dtype,
                                .shape = t->shape,
                                .count = count,
                                .f = is_float ? f : NULL,
                                .i = is_float ? NULL : i};
    ref_to_data(&tensor, t->data);
    return STATUS_OK;
}

static enum status parse_type(struct parser *p, struct tensor_text *t)
{
    char name[8];
    size_t length = strcspn(p->at, "[ \t\n");
    if (length >= sizeof(name) || p->at[length] != '[')
        return wrong(p, "TYPE[DIMS] is expected");
    memcpy(name, p->at, length);
    name[length] = 0;
    t->dtype = dtype_from_name(name);
    if (t->dtype == DTYPE_NONE)
        return wrong(p, "no element type has this name");
    if (t->dtype == DTYPE_F32)
        t->dtype = p->floats;
    p->at += length + 1;
    for (bool more = *p->at != ']'; more; more = take(p, ',')) {
        if (t->shape.rank == RANK_MAX)
            return wrong(p, "too many dimensions");
        TRY(parse_int(p, &t->shape.dim[t->shape.rank]));
        if (t->shape.dim[t->shape.rank++] < 0)
            return wrong(p, "a dimension before here is negative");
    }
    return take(p, ']') ? STATUS_OK : wrong(p, "',' or ']' is expected");
}

static enum status parse_range(struct parser *p, struct tensor_text *t)
{
    TRY(parse_float(p, &t->low));
    if (!take(p, ':'))
        return wrong(p, "':' is expected in {low:high}");
    TRY(parse_float(p, &t->high));
    t->ranged = true;
    if (t->low > t->high)
        return wrong(p, "low is above high before here");
    return take(p, '}') ? STATUS_OK : wrong(p, "'}' is expected");
}

static enum status parse_tensor(struct parser *p, struct tensor_text *t)
{
    *t = (struct tensor_text){0};
    TRY(parse_type(p, t));
    while (!at_end(p)) {
        if (take(p, '='))
            TRY(parse_literals(p, t));
        else if (take(p, '{'))
            TRY(parse_range(p, t));
        else if (take(p, '!'))
            t->constant = true;
        else
            return wrong(p, "'=', '{', '!' or a blank is expected");
    }
    if (t->literal && (t->constant || t->ranged))
        return wrong(p, "literal contents exclude '!' and {low:high}");
    return STATUS_OK;
}

static int add_tensor(struct graph *g, const struct tensor_text *t, int index)
{
    bool is_float = dtype_is_float(t->dtype);
    struct fill fill = {.kind = is_float ? FILL_UNIFORM : FILL_INDEX, .a = t->low, .b = t->high};
    char name[16];
    snprintf(name, sizeof(name), "in%d", index);
    if (!t->ranged) {
        fill.a = is_float ? -1 : 0;
        fill.b = is_float ? 1 : t->dtype == DTYPE_BOOL ? 2 : 10;
    }
    if (t->literal)
        return graph_const(g, name, t->dtype, t->shape, t->data);
    return t->constant ? graph_param(g, name, t->dtype, t->shape, fill)
                       : graph_input(g, name, t->dtype, t->shape, fill);
}

/* ---- attributes ---- */

static enum status parse_string(struct parser *p, const char **text)
{
    const char *end = strchr(p->at, '"');
    if (!end)
        return wrong(p, "a '\"' is missing after the text");
    char *copy = arena_copy(&p->g->arena, p->at, (size_t)(end - p->at) + 1);
    if (!copy)
        return FAIL_NO_MEMORY(p->err);
    copy[end - p->at] = 0;
    *text = copy;
    p->at = end + 1;
    return STATUS_OK;
}

static enum status parse_item(struct parser *p, const char **string, double *f, int64_t *i,
                              enum attr_kind *kind)
{
    skip_blanks(p);
    if (take(p, '"')) {
        *kind = ATTR_STRINGS;
        TRY(parse_string(p, string));
    } else if (looks_integer(p->at)) {
        TRY(parse_int(p, i));
        *f = (double)*i;
    } else {
        *kind = ATTR_FLOATS;
        TRY(parse_float(p, f));
    }
    skip_blanks(p);
    return STATUS_OK;
}

static enum status parse_list(struct parser *p, struct attr *attr)
{
    struct arena *arena = &p->g->arena;
    size_t room = strlen(p->at); /* more than there can be items */
    const char **strings = arena_array(arena, room, sizeof(*strings));
    double *floats = arena_array(arena, room, sizeof(*floats));
    int64_t *ints = arena_array(arena, room, sizeof(*ints));
    if (!strings || !floats || !ints)
        return FAIL_NO_MEMORY(p->err);
    attr->kind = ATTR_INTS;
    skip_blanks(p);
    for (bool more = *p->at != ']'; more; more = take(p, ',')) {
        int k = attr->count++;
        TRY(parse_item(p, &strings[k], &floats[k], &ints[k], &attr->kind));
    }
    attr->ints = attr->kind == ATTR_INTS ? ints : NULL;
    attr->floats = attr->kind == ATTR_FLOATS ? floats : NULL;
    attr->strings = attr->kind == ATTR_STRINGS ? strings : NULL;
    for (int k = 0; attr->strings && k < attr->count; k++)
        if (!strings[k])
            return wrong(p, "texts and numbers are mixed in the list before here");
    return take(p, ']') ? STATUS_OK : wrong(p, "',' or ']' is expected");
}

static enum status parse_value(struct parser *p, struct attr *attr)
{
    struct tensor_text tensor;
    if (take(p, '[')) {
        TRY(parse_list(p, attr));
    } else if (take(p, '"')) {
        attr->kind = ATTR_STRING;
        TRY(parse_string(p, &attr->s));
    } else if (looks_integer(p->at)) {
        attr->kind = ATTR_INT;
        TRY(parse_int(p, &attr->i));
    } else if (isalpha((unsigned char)*p->at) && p->at[strcspn(p->at, "[ ")] == '[') {
        TRY(parse_tensor(p, &tensor));
        if (!tensor.literal)
            return wrong(p, "a tensor attribute needs literal contents before here");
        attr->kind = ATTR_TENSOR;
        attr->desc = desc_dense(tensor.dtype, &tensor.shape, LAYOUT_PLAIN);
        attr->data = tensor.data;
    } else {
        attr->kind = ATTR_FLOAT;
        TRY(parse_float(p, &attr->f));
    }
    return at_end(p) ? STATUS_OK : wrong(p, "a blank is expected");
}

static enum status parse_attr(struct parser *p, struct attr *attr)
{
    *attr = (struct attr){0};
    size_t length = strcspn(p->at, "= ");
    char *name = arena_alloc(&p->g->arena, length + 1);
    if (!name)
        return FAIL_NO_MEMORY(p->err);
    if (!length || p->at[length] != '=')
        return wrong(p, "NAME=VALUE is expected");
    memcpy(name, p->at, length);
    attr->name = name;
    const char *const *known = p->op->attrs;
    while (known && *known && strcmp(*known, name) != 0)
        known++;
    if (!known || !*known)
        return wrong(p, "the operator does not list this attribute");
    p->at += length + 1;
    return parse_value(p, attr);
}

/* ---- the graph ---- */

static enum status parse_inputs(struct parser *p, const char *text, int *inputs, int *count)
{
    const enum dtype floats = p->floats;
    p->start = p->at = text ? text : "";
    for (skip_blanks(p); *p->at; skip_blanks(p)) {
        struct tensor_text tensor;
        if (*count == INPUTS_MAX)
            return wrong(p, "too many inputs");
        if (p->at[0] == '-' && (!p->at[1] || isspace((unsigned char)p->at[1]))) {
            p->at++;
            inputs[(*count)++] = NONE;
            continue;
        }
        p->floats = narrow_takes(p->op, *count) ? floats : DTYPE_F32;
        TRY(parse_tensor(p, &tensor));
        inputs[*count] = add_tensor(p->g, &tensor, *count);
        (*count)++;
    }
    return STATUS_OK;
}

static enum status parse_attrs(struct parser *p, const char *text, struct attr *attrs, int *count)
{
    p->start = p->at = text ? text : "";
    p->floats = DTYPE_F32;
    for (skip_blanks(p); *p->at; skip_blanks(p)) {
        if (*count == ATTRS_MAX)
            return wrong(p, "too many attributes");
        TRY(parse_attr(p, &attrs[*count]));
        (*count)++;
    }
    return STATUS_OK;
}

static enum status build(struct parser *p, const struct op_case *c)
{
    int inputs[INPUTS_MAX], outputs[OUTPUTS_MAX], input_count = 0, attr_count = 0;
    int output_count = c->outputs ? c->outputs : 1;
    struct attr attrs[ATTRS_MAX];
    TRY(parse_inputs(p, c->inputs, inputs, &input_count));
    TRY(parse_attrs(p, c->attrs, attrs, &attr_count));
    if (output_count > OUTPUTS_MAX)
        return FAIL(p->err, STATUS_FAILED, "%d outputs wanted, at most %d are supported",
                    output_count, OUTPUTS_MAX);
    graph_node_many(p->g, p->op->name, "node", input_count, inputs, attr_count, attrs, output_count,
                    outputs);
    for (int k = 0; k < output_count; k++)
        graph_output(p->g, outputs[k]);
    TRY(graph_check(p->g, p->err));
    if (p->g->nodes[0].op != p->op)
        return FAIL(p->err, STATUS_FAILED, "the name finds an operator of another domain");
    return STATUS_OK;
}

struct graph *op_case_graph_in(const struct op *op, const struct op_case *c, enum dtype floats,
                               struct error *err)
{
    struct parser p = {.op = op, .err = err, .floats = floats, .g = graph_new(op->name)};
    if (!p.g) {
        FAIL_NO_MEMORY(err);
        return NULL;
    }
    if (build(&p, c) == STATUS_OK)
        return p.g;
    error_context(err, "%s/%s", op->name, c->name);
    graph_free(p.g);
    return NULL;
}

struct graph *op_case_graph(const struct op *op, const struct op_case *c, struct error *err)
{
    return op_case_graph_in(op, c, DTYPE_F32, err);
}
