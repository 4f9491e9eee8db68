/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/json_read.h"

#include <string.h>

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *found = c ? strchr(digits, c) : NULL;
    return found ? (int)(found - digits) % 16 : -1;
}

struct text {
    char *bytes;
    size_t used, size; /* used runs on when it is full */
};

static void put(struct text *text, unsigned byte)
{
    if (text->used + 1 < text->size)
        text->bytes[text->used] = (char)byte;
    text->used++;
}

/* UTF-8 of a code of \u; halves of a pair come as they are, three bytes each. */
static void put_code(struct text *text, unsigned code)
{
    if (code < 0x80) {
        put(text, code);
    } else if (code < 0x800) {
        put(text, 0xc0 | code >> 6);
        put(text, 0x80 | (code & 0x3f));
    } else {
        put(text, 0xe0 | code >> 12);
        put(text, 0x80 | (code >> 6 & 0x3f));
        put(text, 0x80 | (code & 0x3f));
    }
}

/* After the backslash; returns what follows, NULL when it is no escape. */
static const char *read_escape(const char *at, struct text *text)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *found = *at ? strchr(letters, *at) : NULL;
    if (found) {
        put(text, (unsigned char)meant[found - letters]);
        return at + 1;
    }
    unsigned code = 0;
    if (*at != 'u')
        return NULL;
    for (int k = 1; k <= 4; k++) {
        int digit = hex_digit(at[k]);
        if (digit < 0)
            return NULL;
        code = 16 * code + (unsigned)digit;
    }
    put_code(text, code);
    return at + 5;
}

/* From the opening quote; returns what follows the closing one, NULL when the text is broken. */
static const char *read_text(const char *at, struct text *text)
{
    if (*at++ != '"')
        return NULL;
    while (at && *at != '"') {
        if (!*at)
            return NULL;
        if (*at == '\\') {
            at = read_escape(at + 1, text);
            continue;
        }
        put(text, (unsigned char)*at++);
    }
    if (at && text->size)
        text->bytes[text->used < text->size ? text->used : text->size - 1] = '\0';
    return at ? at + 1 : NULL;
}

/* A text, a number, true, an object or an array; returns what follows. */
static const char *skip_value(const char *at)
{
    struct text none = {.size = 0};
    int depth = 0;
    do {
        if (*at == '"') {
            at = read_text(at, &none);
            if (!at)
                return NULL;
            continue;
        }
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        at += *at != '\0';
    } while (*at && (depth > 0 || !strchr(",}] \t\r\n", *at)));
    return depth == 0 ? at : NULL;
}

const char *json_text_at(const char *at, char *text, size_t size, size_t *length)
{
    struct text found = {text, 0, size};
    const char *after = read_text(at, &found);
    *length = found.used;
    return after;
}

bool json_read_text(const char *json, const char *key, char *text, size_t size)
{
    char name[64] = "";
    const char *at = skip_space(json);
    text[0] = '\0';
    if (*at++ != '{')
        return false;
    for (;;) {
        struct text found = {name, 0, sizeof(name)}, value = {text, 0, size};
        at = read_text(skip_space(at), &found);
        at = at ? skip_space(at) : NULL;
        if (!at || *at++ != ':')
            return false;
        at = skip_space(at);
        if (found.used < sizeof(name) && strcmp(name, key) == 0) {
            bool whole = read_text(at, &value) && value.used < size;
            text[0] = whole ? text[0] : '\0';
            return whole;
        }
        at = skip_value(at);
        at = at ? skip_space(at) : NULL;
        if (!at || *at++ != ',')
            return false;
    }
}
