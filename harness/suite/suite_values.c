/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/suite/suite_values.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/options.h"

enum { VALUES_MAX = 1024 };

/* What one axis is being made of. */
struct axis_reader {
    struct suite *suite;
    const struct suite_key *key;
    const struct suite_place *place;
    struct suite_value *values;
    int count;
    struct error *err;
};

enum status suite_complain(const struct suite_place *place, struct error *err, const char *format,
                           ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (place->line == 0)
        return FAIL(err, STATUS_FAILED, "%s%s%s", place->file, *place->file ? ": " : "", text);
    return FAIL(err, STATUS_FAILED, "%s:%d: %s%s%s: %s", place->file, place->line, place->table,
                *place->table && *place->key ? "." : "", place->key, text);
}

static const char *type_name(const struct suite_key *key)
{
    static const char *const names[] = {"a string", "strings", "an integer", "a number",
                                        "true or false"};
    return names[key->type];
}

static const char *article(const char *noun)
{
    return strchr("aeiou", noun[0]) ? "an" : "a";
}

static enum status wrong_type(const struct axis_reader *r, const struct toml_value *value)
{
    const char *is = toml_kind_name(value->kind);
    if (value->kind == TOML_TEXT && r->key->choices && r->key->type == SUITE_INT)
        return suite_complain(r->place, r->err, "needs an integer or \"%s\", got \"%.60s\"",
                              r->key->choices[0], value->text);
    if (value->kind == TOML_TEXT)
        return suite_complain(r->place, r->err, "needs %s, got the string \"%.60s\"",
                              type_name(r->key), value->text);
    return suite_complain(r->place, r->err, "needs %s, got %s %s", type_name(r->key), article(is),
                          is);
}

static enum status check_choice(const struct axis_reader *r, const char *text)
{
    char list[200] = "";
    size_t used = 0;
    int count = 0;
    for (const char *const *choice = r->key->choices; choice && *choice; choice++, count++) {
        if (strcmp(*choice, text) == 0)
            return STATUS_OK;
        if (used < sizeof(list))
            used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", count ? ", " : "",
                                     *choice);
    }
    struct error why = {0};
    if (r->key->check && r->key->check(text, &why) != STATUS_OK)
        return suite_complain(r->place, r->err, "%s", why.message);
    if (!r->key->choices)
        return STATUS_OK;
    const char *near = nearest_word(text, r->key->choices, count);
    if (near)
        return suite_complain(r->place, r->err, "\"%.60s\" is not known, did you mean \"%s\"?",
                              text, near);
    return suite_complain(r->place, r->err, "\"%.60s\" is none of: %s", text, list);
}

static enum status check_range(const struct axis_reader *r, double number, const char *text)
{
    const struct suite_key *key = r->key;
    if (number >= key->min && number <= key->max)
        return STATUS_OK;
    if (key->min > 0 && key->min < 1e-100) /* above zero, however little */
        return suite_complain(r->place, r->err, "%s is not above 0 and at most %g", text, key->max);
    return suite_complain(r->place, r->err, "%s is not in %g to %.10g", text, key->min, key->max);
}

static enum status append(struct axis_reader *r, struct suite_value value)
{
    for (int k = 0; k < r->count; k++)
        if (strcmp(r->values[k].text, value.text) == 0)
            return STATUS_OK; /* threads = [1, "all"] with one CPU */
    if (r->count == VALUES_MAX)
        return suite_complain(r->place, r->err, "more than %d values", VALUES_MAX);
    r->values[r->count++] = value;
    return STATUS_OK;
}

static enum status append_integer(struct axis_reader *r, int64_t integer, bool is_word)
{
    const char *text = arena_printf(&r->suite->arena, "%lld", (long long)integer);
    if (!text)
        return FAIL_NO_MEMORY(r->err);
    TRY(check_range(r, (double)integer, text));
    return append(r, (struct suite_value){text, integer, (double)integer, integer != 0, is_word});
}

/* The integer that a value of a SUITE_INT key stands for. */
static enum status integer_of(const struct axis_reader *r, const struct toml_value *value,
                              int64_t *integer)
{
    if (value->kind == TOML_INT) {
        *integer = value->integer;
        return STATUS_OK;
    }
    if (value->kind != TOML_TEXT || !r->key->choices)
        return wrong_type(r, value);
    if (strcmp(value->text, r->key->choices[0]) != 0)
        return wrong_type(r, value);
    *integer = r->suite->cpus;
    return STATUS_OK;
}

/* A parameter with choices takes version = 1.5 for version = "1.5". */
static enum status append_text(struct axis_reader *r, const struct toml_value *value)
{
    const char *text = value->text;
    bool number = value->kind == TOML_INT || value->kind == TOML_FLOAT;
    if (number && r->key->table == TABLE_WORKLOAD && r->key->choices)
        text = arena_printf(&r->suite->arena, "%.10g", value->number);
    else if (value->kind != TOML_TEXT)
        return wrong_type(r, value);
    text = text ? arena_strdup(&r->suite->arena, text) : NULL;
    if (!text)
        return FAIL_NO_MEMORY(r->err);
    TRY(check_choice(r, text));
    return append(r, (struct suite_value){.text = text});
}

static enum status append_number(struct axis_reader *r, const struct toml_value *value)
{
    if (value->kind != TOML_INT && value->kind != TOML_FLOAT)
        return wrong_type(r, value);
    const char *text = arena_printf(&r->suite->arena, "%.10g", value->number);
    if (!text)
        return FAIL_NO_MEMORY(r->err);
    TRY(check_range(r, value->number, text));
    return append(r, (struct suite_value){.text = text, .number = value->number});
}

static enum status append_scalar(struct axis_reader *r, const struct toml_value *value)
{
    int64_t integer;
    switch (r->key->type) {
    case SUITE_TEXT:
    case SUITE_WORDS:
        return append_text(r, value);
    case SUITE_INT:
        TRY(integer_of(r, value, &integer));
        return append_integer(r, integer, value->kind == TOML_TEXT);
    case SUITE_NUMBER:
        return append_number(r, value);
    case SUITE_BOOL:
        if (value->kind != TOML_BOOL)
            return wrong_type(r, value);
        return append(r, (struct suite_value){.text = value->truth ? "true" : "false",
                                              .integer = value->truth,
                                              .truth = value->truth});
    }
    return STATUS_OK;
}

/* { from = 1, to = 64, times = 2 } or plus = 8; the last value is always `to`. */
static enum status append_range(struct axis_reader *r, const struct toml_value *range)
{
    static const char *const words[] = {"from", "to", "times", "plus"};
    int64_t number[4] = {0, 0, 0, 0};
    bool given[4] = {false};
    for (const struct toml_value *part = range->first; part; part = part->next) {
        int k = 0;
        while (k < 4 && strcmp(part->key, words[k]) != 0)
            k++;
        if (k == 4)
            return suite_complain(r->place, r->err,
                                  "a range has from, to, and times or plus; not \"%.60s\"",
                                  part->key);
        TRY(integer_of(r, part, &number[k]));
        given[k] = true;
    }
    if (!given[0] || !given[1] || given[2] == given[3])
        return suite_complain(r->place, r->err,
                              "a range is { from = 1, to = 64, times = 2 } or { ..., plus = 8 }");
    if (number[0] < 1 || number[1] < number[0] || (double)number[1] > r->key->max)
        return suite_complain(r->place, r->err, "the range from %lld to %lld is empty or too wide",
                              (long long)number[0], (long long)number[1]);
    if (given[2] ? number[2] < 2 : number[3] < 1)
        return suite_complain(r->place, r->err, "%s = %lld does not go from %lld to %lld",
                              given[2] ? "times" : "plus",
                              (long long)(given[2] ? number[2] : number[3]), (long long)number[0],
                              (long long)number[1]);
    int64_t at = number[0];
    while (at < number[1]) { /* a factor is looked at before it is applied: no overflow */
        TRY(append_integer(r, at, false));
        if (given[2])
            at = at > number[1] / number[2] ? number[1] : at * number[2];
        else
            at = at > number[1] - number[3] ? number[1] : at + number[3];
    }
    return append_integer(r, number[1], false);
}

/* Several words that are one value. */
static enum status join(struct axis_reader *r)
{
    char text[1000] = "";
    size_t used = 0;
    for (int k = 0; k < r->count && used < sizeof(text); k++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", k ? "," : "",
                                 r->values[k].text);
    if (used >= sizeof(text))
        return suite_complain(r->place, r->err, "longer than %zu characters", sizeof(text));
    char *copy = arena_strdup(&r->suite->arena, text);
    if (!copy)
        return FAIL_NO_MEMORY(r->err);
    r->values[0] = (struct suite_value){.text = copy};
    r->count = 1;
    return STATUS_OK;
}

static enum status append_all(struct axis_reader *r, const struct toml_value *value)
{
    const struct suite_key *key = r->key;
    if (value->kind == TOML_TABLE && key->type == SUITE_INT && key->sweeps)
        return append_range(r, value);
    if (value->kind != TOML_ARRAY)
        return append_scalar(r, value);
    if (!key->sweeps && key->type != SUITE_WORDS)
        return suite_complain(r->place, r->err, "takes one value, not a list");
    if (value->count == 0 && key->type != SUITE_WORDS)
        return suite_complain(r->place, r->err, "the list is empty");
    for (const struct toml_value *item = value->first; item; item = item->next)
        TRY(append_scalar(r, item));
    return STATUS_OK;
}

enum status suite_axis_read(struct suite *suite, const struct suite_key *key,
                            const struct suite_place *place, const struct toml_value *value,
                            struct suite_axis *axis, struct error *err)
{
    struct suite_value *values = calloc(VALUES_MAX, sizeof(*values));
    struct axis_reader r = {suite, key, place, values, 0, err};
    if (!values)
        return FAIL_NO_MEMORY(err);
    enum status status = append_all(&r, value);
    if (status == STATUS_OK && key->type == SUITE_WORDS)
        status = join(&r);
    *axis = (struct suite_axis){.name = key->name, .count = r.count, .order = suite->order++};
    if (status == STATUS_OK) {
        axis->values = arena_copy(&suite->arena, values, (size_t)r.count * sizeof(*values));
        axis->origin = place->line ? arena_printf(&suite->arena, "%s:%d", place->file, place->line)
                                   : arena_strdup(&suite->arena, place->file);
        if (!axis->values || !axis->origin)
            status = FAIL_NO_MEMORY(err);
    }
    free(values);
    return status;
}

struct suite_key suite_key_of_param(const struct param *param)
{
    return (struct suite_key){.table = TABLE_WORKLOAD,
                              .name = param->name,
                              .type = param->choices ? SUITE_TEXT : SUITE_INT,
                              .sweeps = true,
                              .choices = param->choices == param_text ? NULL : param->choices,
                              .min = strcmp(param->value, "0") != 0, /* 0: it is not used */
                              .max = PARAM_VALUE_MAX,
                              .usual = param->value,
                              .help = param->help};
}

/* One element of a command line's list, written as in TOML. */
static void value_of_text(const struct suite_key *key, char *text, struct toml_value *value)
{
    char *end = text;
    *value = (struct toml_value){.kind = TOML_TEXT, .text = text};
    if (key->type == SUITE_INT) {
        value->integer = strtoll(text, &end, 10);
        value->number = (double)value->integer;
    } else if (key->type == SUITE_NUMBER) {
        value->number = strtod(text, &end);
    }
    if (end != text && !*end)
        value->kind = key->type == SUITE_INT ? TOML_INT : TOML_FLOAT;
    if (key->type == SUITE_BOOL && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
        value->kind = TOML_BOOL;
        value->truth = text[0] == 't';
    }
}

static enum status read_pieces(struct suite *suite, const struct suite_key *key,
                               const struct suite_place *place, char *copy, struct suite_axis *axis,
                               struct error *err)
{
    struct toml_value *items = arena_array(&suite->arena, strlen(copy) + 1, sizeof(*items));
    struct toml_value list = {.kind = TOML_ARRAY, .first = items};
    bool splits = (key->sweeps && strcmp(key->name, "providers") != 0) || key->type == SUITE_WORDS;
    if (!items)
        return FAIL_NO_MEMORY(err);
    if (!splits || !strchr(copy, ',')) {
        value_of_text(key, copy, items);
        bool nothing = key->type == SUITE_WORDS && !*copy;
        return suite_axis_read(suite, key, place, nothing ? &list : items, axis, err);
    }
    list.count = 1;
    for (char *piece = copy, *comma; piece; piece = comma ? comma + 1 : NULL) {
        comma = strchr(piece, ',');
        if (comma)
            *comma = '\0';
        value_of_text(key, piece, &items[list.count - 1]);
        if (comma)
            items[list.count - 1].next = &items[list.count];
        list.count += comma != NULL;
    }
    return suite_axis_read(suite, key, place, &list, axis, err);
}

enum status suite_axis_from_text(struct suite *suite, enum suite_key_id id, const char *origin,
                                 const char *text, struct suite_axis *axis, struct error *err)
{
    struct suite_place place = {.file = origin, .table = "", .key = ""};
    char *copy = arena_strdup(&suite->arena, text);
    if (!copy)
        return FAIL_NO_MEMORY(err);
    return read_pieces(suite, suite_key(id), &place, copy, axis, err);
}
