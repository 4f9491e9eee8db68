/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/clean.h"

void json_begin(struct json *json, FILE *stream)
{
    *json = (struct json){.stream = stream};
}

static void new_line(const struct json *json)
{
    if (!json->compact)
        fprintf(json->stream, "\n%*s", 2 * json->depth, "");
}

/* What is no UTF-8 becomes U+FFFD; what cannot be seen is escaped, in its 1 to 3 bytes. */
static void put_character(FILE *stream, const char *text, int length)
{
    const unsigned char *s = (const unsigned char *)text;
    if (length == 0)
        fputs("\\ufffd", stream);
    else if (*s == '"' || *s == '\\')
        fprintf(stream, "\\%c", *s);
    else if (*s == '\n')
        fputs("\\n", stream);
    else if (*s == '\t')
        fputs("\\t", stream);
    else if (clean_length(text))
        fwrite(text, 1, (size_t)length, stream);
    else
        fprintf(stream, "\\u%04x",
                length == 1   ? *s
                : length == 2 ? (s[0] & 0x1Fu) << 6 | (s[1] & 0x3Fu)
                              : (s[0] & 0x0Fu) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu));
}

static void put_text(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (const char *s = text; *s;) {
        int length = utf8_length(s);
        put_character(stream, s, length);
        s += length ? length : 1;
    }
    fputc('"', stream);
}

/* The shortest of the precisions that gives the same double again. */
static void put_number(FILE *stream, double value)
{
    char text[40];
    if (!isfinite(value)) {
        fputs("null", stream);
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (digits == 17 || !(strtod(text, NULL) < value || strtod(text, NULL) > value))
            break;
    }
    fputs(text, stream);
}

/* Comma, line, key: what stands in front of every value. */
static void item(struct json *json, const char *key)
{
    if (json->depth > 0) {
        if (json->filled[json->depth])
            fputs(json->compact ? ", " : ",", json->stream);
        json->filled[json->depth] = true;
        new_line(json);
    }
    if (key) {
        put_text(json->stream, key);
        fputs(": ", json->stream);
    }
}

void json_open(struct json *json, const char *key, char bracket)
{
    assert(json->depth + 1 < JSON_DEPTH);
    item(json, key);
    fputc(bracket, json->stream);
    json->depth++;
    json->filled[json->depth] = false;
    json->close[json->depth] = bracket == '{' ? '}' : ']';
}

void json_close(struct json *json)
{
    assert(json->depth > 0);
    int depth = json->depth--;
    if (json->filled[depth])
        new_line(json);
    fputc(json->close[depth], json->stream);
    if (json->depth == 0)
        fputc('\n', json->stream);
}

void json_null(struct json *json, const char *key)
{
    item(json, key);
    fputs("null", json->stream);
}

void json_text(struct json *json, const char *key, const char *value)
{
    item(json, key);
    if (value)
        put_text(json->stream, value);
    else
        fputs("null", json->stream);
}

void json_int(struct json *json, const char *key, int64_t value)
{
    item(json, key);
    fprintf(json->stream, "%" PRId64, value);
}

void json_number(struct json *json, const char *key, double value)
{
    item(json, key);
    put_number(json->stream, value);
}

void json_verbatim(struct json *json, const char *key, const char *value)
{
    item(json, key);
    fputs(value, json->stream);
}

void json_bool(struct json *json, const char *key, bool value)
{
    item(json, key);
    fputs(value ? "true" : "false", json->stream);
}

void json_ints(struct json *json, const char *key, const int64_t *values, int count)
{
    item(json, key);
    fputc('[', json->stream);
    for (int k = 0; k < count; k++)
        fprintf(json->stream, "%s%" PRId64, k ? ", " : "", values[k]);
    fputc(']', json->stream);
}
