/* SPDX-License-Identifier: Apache-2.0
 *
 * Recursive descent: sum := product (+|- product)*; product := factor (*|/ factor)*; factor :=
 * number | name | -factor | (sum). */
#include "profilers/lib/formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64 }; /* of parentheses and signs: text comes from files */

struct parser {
    const char *text, *at;
    const struct formula_value *values;
    int count, depth;
    struct error *err;
};

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
static const char digits[] = "0123456789.";

static enum status parse_sum(struct parser *p, double *value);
static enum status parse_factor(struct parser *p, double *value);

static char peek(struct parser *p)
{
    p->at += strspn(p->at, " \t\n");
    return *p->at;
}

static enum status complain(const struct parser *p, const char *what)
{
    return FAIL(p->err, STATUS_FAILED, "formula \"%.200s\", column %d: %s", p->text,
                (int)(p->at - p->text) + 1, what);
}

static enum status parse_name(struct parser *p, double *value)
{
    size_t length = strspn(p->at, letters);
    for (int k = 0; k < p->count; k++) {
        const char *name = p->values[k].name;
        if (strlen(name) != length || strncmp(name, p->at, length) != 0)
            continue;
        *value = p->values[k].value;
        p->at += length;
        return STATUS_OK;
    }
    return complain(p, "no event has this id");
}

static enum status parse_number(struct parser *p, double *value)
{
    char *end;
    if (p->at[0] == '0' && (p->at[1] == 'x' || p->at[1] == 'X'))
        return complain(p, "numbers are decimal");
    *value = strtod(p->at, &end);
    if (end == p->at)
        return complain(p, "a number expected");
    p->at = end;
    return STATUS_OK;
}

static enum status parse_inner(struct parser *p, double *value)
{
    char next = peek(p);
    if (next == '-') {
        p->at++;
        TRY(parse_factor(p, value));
        *value = -*value;
        return STATUS_OK;
    }
    if (next == '(') {
        p->at++;
        TRY(parse_sum(p, value));
        if (peek(p) != ')')
            return complain(p, "\")\" expected");
        p->at++;
        return STATUS_OK;
    }
    if (next && strchr(digits, next))
        return parse_number(p, value);
    if (next && strchr(letters, next))
        return parse_name(p, value);
    return complain(p, "a number, an id or \"(\" expected");
}

static enum status parse_factor(struct parser *p, double *value)
{
    *value = 0;
    if (p->depth >= DEPTH_MAX)
        return complain(p, "nested too deep");
    p->depth++;
    enum status status = parse_inner(p, value);
    p->depth--;
    return status;
}

static enum status parse_product(struct parser *p, double *value)
{
    TRY(parse_factor(p, value));
    for (char next = peek(p); next == '*' || next == '/'; next = peek(p)) {
        double other = 0;
        p->at++;
        TRY(parse_factor(p, &other));
        *value = next == '*' ? *value * other : other == 0 ? NAN : *value / other;
    }
    return STATUS_OK;
}

static enum status parse_sum(struct parser *p, double *value)
{
    TRY(parse_product(p, value));
    for (char next = peek(p); next == '+' || next == '-'; next = peek(p)) {
        double other = 0;
        p->at++;
        TRY(parse_product(p, &other));
        *value = next == '+' ? *value + other : *value - other;
    }
    return STATUS_OK;
}

enum status formula_evaluate(const char *text, const struct formula_value *values, int count,
                             double *result, struct error *err)
{
    struct parser parser = {text, text, values, count, 0, err};
    TRY(parse_sum(&parser, result));
    return peek(&parser) ? complain(&parser, "an operator expected") : STATUS_OK;
}

bool formula_uses(const char *text, const char *name)
{
    for (const char *at = text; *at;) {
        size_t length = strspn(at, letters);
        if (length == strlen(name) && strncmp(at, name, length) == 0)
            return true;
        at += length ? length : 1;
    }
    return false;
}
