/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/data/lines.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 1 << 20, SHOWN_MAX = 40, NUMBER_MAX = 40 };

struct lines lines_of(const struct data_text *text)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of the order of bytes, as some editors write it */
    const char *at = text->data, *end = at ? at + text->size : at;
    if (at && text->size >= sizeof(mark) - 1 && memcmp(at, mark, sizeof(mark) - 1) == 0)
        at += sizeof(mark) - 1;
    return (struct lines){.name = text->name, .at = at, .end = end};
}

bool lines_next(struct lines *l, struct field *line)
{
    if (l->at == l->end)
        return false;
    size_t left = (size_t)(l->end - l->at), size = left < LINE_MAX_BYTES ? left : LINE_MAX_BYTES;
    const char *feed = memchr(l->at, '\n', size);
    const char *end = feed ? feed : l->at + size;
    *line = (struct field){l->at, (int)(end - l->at)};
    l->at = feed ? feed + 1 : end;
    l->unended = !feed;
    l->number++;
    if (line->length && line->text[line->length - 1] == '\r')
        line->length--;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *find(const struct field *line, const char *separator)
{
    int length = (int)strlen(separator);
    for (int k = 0; k + length <= line->length; k++)
        if (line->text[k] == *separator && memcmp(line->text + k, separator, (size_t)length) == 0)
            return line->text + k;
    return NULL;
}

bool field_take(struct field *line, const char *separator, struct field *field)
{
    if (!line->text)
        return false;
    const char *cut = find(line, separator), *end = cut ? cut : line->text + line->length;
    const char *first = line->text, *last = end;
    while (first < last && is_blank(*first))
        first++;
    while (last > first && is_blank(last[-1]))
        last--;
    *field = (struct field){first, (int)(last - first)};
    int used = (int)(end - line->text) + (cut ? (int)strlen(separator) : 0);
    *line = cut ? (struct field){line->text + used, line->length - used} : (struct field){NULL, 0};
    return true;
}

bool field_is(const struct field *field, const char *text)
{
    return strlen(text) == (size_t)field->length &&
           memcmp(field->text, text, (size_t)field->length) == 0;
}

int field_among(const struct field *field, const char *const *words, int count)
{
    for (int k = 0; k < count; k++)
        if (field_is(field, words[k]))
            return k;
    return -1;
}

/* Ended by 0, for the library's readers of numbers. */
static bool copy(const struct field *field, char text[NUMBER_MAX])
{
    if (field->length < 1 || field->length >= NUMBER_MAX)
        return false;
    memcpy(text, field->text, (size_t)field->length);
    text[field->length] = '\0';
    return true;
}

bool field_int(const struct field *field, int64_t *value)
{
    char text[NUMBER_MAX], *end;
    if (!copy(field, text))
        return false;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return !*end && !errno;
}

bool field_number(const struct field *field, double *value)
{
    char text[NUMBER_MAX], *end;
    if (!copy(field, text))
        return false;
    *value = strtod(text, &end);
    return !*end && isfinite(*value);
}

int field_shown(const struct field *field)
{
    return field->length < SHOWN_MAX ? field->length : SHOWN_MAX;
}
