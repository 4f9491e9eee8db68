/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/safetensors.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/json.h"
#include "base/text/json_read.h"

enum { LENGTH_BYTES = 8, HEADER_MAX = 100 << 20, NAME_MAX_BYTES = 1 << 12, ALIGN_DATA = 64 };

/* Bytes of an element; 0: no type of the format. */
static size_t type_bytes(const char *type)
{
    static const struct {
        const char *name;
        size_t bytes;
    } types[] = {{"F64", 8},     {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1},
                 {"F8_E5M2", 1}, {"I64", 8}, {"I32", 4}, {"I16", 2},  {"I8", 1},
                 {"U64", 8},     {"U32", 4}, {"U16", 2}, {"U8", 1},   {"BOOL", 1}};
    for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++)
        if (strcmp(types[k].name, type) == 0)
            return types[k].bytes;
    return 0;
}

const struct safetensor *safetensors_find(const struct safetensors *contents, const char *name)
{
    for (int k = 0; k < contents->count; k++)
        if (strcmp(contents->tensors[k].name, name) == 0)
            return &contents->tensors[k];
    return NULL;
}

const char *safetensors_note(const struct safetensors *contents, const char *key)
{
    for (int k = 0; k < contents->note_count; k++)
        if (strcmp(contents->notes[k].key, key) == 0)
            return contents->notes[k].text;
    return NULL;
}

void safetensors_release(struct safetensors *contents)
{
    arena_release(&contents->arena);
    *contents = (struct safetensors){0};
}

/* ---- reading ---- */

struct header {
    const char *text, *at; /* NUL-terminated */
    size_t length;
    const char *name;
    const unsigned char *data; /* after the header */
    size_t data_bytes;
    struct safetensors *out;
    char word[NAME_MAX_BYTES];
};

__attribute__((format(printf, 3, 4))) static enum status
wrong(const struct header *h, struct error *err, const char *format, ...)
{
    char what[300];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof(what), format, list);
    va_end(list);
    return FAIL(err, STATUS_FAILED, "%s: byte %zu: %s", h->name,
                (size_t)(h->at - h->text) + LENGTH_BYTES, what);
}

static bool take(struct header *h, char wanted)
{
    h->at += strspn(h->at, " \t\r\n");
    if (*h->at != wanted)
        return false;
    h->at++;
    return true;
}

static enum status expect(struct header *h, char wanted, struct error *err)
{
    return take(h, wanted) ? STATUS_OK : wrong(h, err, "no '%c' stands here", wanted);
}

/* A text, into h->word; what: of what, for the message. */
static enum status take_text(struct header *h, const char *what, struct error *err)
{
    size_t length;
    h->at += strspn(h->at, " \t\r\n");
    const char *after = json_text_at(h->at, h->word, sizeof(h->word), &length);
    if (!after)
        return wrong(h, err, "no %s in quotes stands here", what);
    if (length >= sizeof(h->word) || strlen(h->word) != length)
        return wrong(h, err, "the %s is too long or holds a zero", what);
    h->at = after;
    return STATUS_OK;
}

static enum status take_number(struct header *h, int64_t *number, struct error *err)
{
    h->at += strspn(h->at, " \t\r\n");
    const char *start = h->at;
    for (*number = 0; *h->at >= '0' && *h->at <= '9'; h->at++) {
        if (*number > (INT64_MAX - 9) / 10)
            return wrong(h, err, "the number is too large");
        *number = *number * 10 + (*h->at - '0');
    }
    if (h->at == start || (*start == '0' && h->at > start + 1))
        return wrong(h, err, "no whole number stands here");
    return STATUS_OK;
}

/* [1, 2, 3]: at most max numbers. */
static enum status take_numbers(struct header *h, int64_t *numbers, int max, int *count,
                                struct error *err)
{
    *count = 0;
    TRY(expect(h, '[', err));
    if (take(h, ']'))
        return STATUS_OK;
    do {
        if (*count == max)
            return wrong(h, err, "more than %d numbers stand here", max);
        TRY(take_number(h, &numbers[(*count)++], err));
    } while (take(h, ','));
    return expect(h, ']', err);
}

static enum status keep_word(struct header *h, const char **text, struct error *err)
{
    *text = arena_strdup(&h->out->arena, h->word);
    return *text ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status take_notes(struct header *h, struct error *err)
{
    struct safetensors *out = h->out;
    TRY(expect(h, '{', err));
    if (take(h, '}'))
        return STATUS_OK;
    do {
        size_t need = (size_t)out->note_count + 1;
        out->notes =
            arena_grow(&out->arena, out->notes, &out->note_capacity, need, sizeof(*out->notes));
        if (!out->notes)
            return FAIL_NO_MEMORY(err);
        struct safetensors_note *note = &out->notes[out->note_count];
        TRY(take_text(h, "key", err));
        TRY(keep_word(h, &note->key, err));
        TRY(expect(h, ':', err));
        TRY(take_text(h, "text", err));
        TRY(keep_word(h, &note->text, err));
        out->note_count++;
    } while (take(h, ','));
    return expect(h, '}', err);
}

/* How much the elements take must be what the offsets say. */
static enum status place(struct header *h, struct safetensor *t, const int64_t *offset,
                         struct error *err)
{
    size_t bytes = type_bytes(t->type);
    if (!bytes)
        return wrong(h, err, "\"%s\": \"%s\" is no type of this format", t->name, t->type);
    for (int k = 0; k < t->rank; k++) {
        if (t->dim[k] && bytes > SIZE_MAX / 2 / (size_t)t->dim[k])
            return wrong(h, err, "\"%s\" is larger than any memory", t->name);
        bytes *= (size_t)t->dim[k];
    }
    if (offset[0] > offset[1] || (size_t)offset[1] > h->data_bytes)
        return wrong(h, err,
                     "\"%s\" lies at [%lld, %lld) of %zu bytes: the file is damaged or cut off",
                     t->name, (long long)offset[0], (long long)offset[1], h->data_bytes);
    if ((size_t)(offset[1] - offset[0]) != bytes)
        return wrong(h, err, "\"%s\" takes %zu bytes, and %lld are set apart for it", t->name,
                     bytes, (long long)(offset[1] - offset[0]));
    t->data = h->data + offset[0];
    t->bytes = bytes;
    return STATUS_OK;
}

static enum status take_tensor(struct header *h, struct safetensor *t, struct error *err)
{
    int64_t offset[2] = {0, 0};
    int offsets = 0, shapes = 0;
    TRY(expect(h, '{', err));
    do {
        TRY(take_text(h, "key", err));
        TRY(expect(h, ':', err));
        if (strcmp(h->word, "dtype") == 0) {
            TRY(take_text(h, "type", err));
            TRY(keep_word(h, &t->type, err));
        } else if (strcmp(h->word, "shape") == 0) {
            TRY(take_numbers(h, t->dim, SAFETENSORS_RANK_MAX, &t->rank, err));
            shapes++;
        } else if (strcmp(h->word, "data_offsets") == 0) {
            TRY(take_numbers(h, offset, 2, &offsets, err));
        } else {
            return wrong(h, err, "\"%s\" has a key \"%s\", which the format lacks", t->name,
                         h->word);
        }
    } while (take(h, ','));
    TRY(expect(h, '}', err));
    if (!t->type || shapes != 1 || offsets != 2)
        return wrong(h, err, "\"%s\" needs dtype, shape and two data_offsets", t->name);
    return place(h, t, offset, err);
}

static enum status take_entry(struct header *h, struct error *err)
{
    struct safetensors *out = h->out;
    TRY(take_text(h, "name", err));
    TRY(expect(h, ':', err));
    if (strcmp(h->word, "__metadata__") == 0)
        return take_notes(h, err);
    size_t need = (size_t)out->count + 1;
    out->tensors =
        arena_grow(&out->arena, out->tensors, &out->capacity, need, sizeof(*out->tensors));
    if (!out->tensors)
        return FAIL_NO_MEMORY(err);
    struct safetensor *t = &out->tensors[out->count];
    *t = (struct safetensor){0};
    TRY(keep_word(h, &t->name, err));
    TRY(take_tensor(h, t, err));
    out->count++;
    return STATUS_OK;
}

static int by_place(const void *a, const void *b)
{
    const struct safetensor *x = *(const struct safetensor *const *)a,
                            *y = *(const struct safetensor *const *)b;
    const char *at = x->data, *other = y->data;
    return at != other ? (at > other) - (at < other)
                       : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The header may name tensors in any order; none may share bytes with another. */
static enum status check_places(struct header *h, struct error *err)
{
    struct safetensors *out = h->out;
    const struct safetensor **order =
        arena_array(&out->arena, (size_t)out->count + 1, sizeof(*order));
    size_t end = 0;
    if (!order)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < out->count; k++)
        order[k] = &out->tensors[k];
    qsort(order, (size_t)out->count, sizeof(*order), by_place);
    for (int k = 0; k < out->count; end += order[k++]->bytes) {
        size_t at = (size_t)((const unsigned char *)order[k]->data - h->data);
        if (at != end)
            return wrong(h, err,
                         "\"%s\" begins at byte %zu of the contents, not where the tensor "
                         "before it ends, at %zu",
                         order[k]->name, at, end);
    }
    if (end != h->data_bytes)
        return wrong(h, err,
                     "the tensors take %zu bytes, and %zu follow the header: the file is "
                     "damaged or cut off",
                     end, h->data_bytes);
    return STATUS_OK;
}

static enum status take_header(struct header *h, struct error *err)
{
    TRY(expect(h, '{', err));
    if (!take(h, '}')) {
        do {
            TRY(take_entry(h, err));
        } while (take(h, ','));
        TRY(expect(h, '}', err));
    }
    h->at += strspn(h->at, " \t\r\n");
    if ((size_t)(h->at - h->text) != h->length)
        return wrong(h, err, "the header goes on after its end");
    return check_places(h, err);
}

enum status safetensors_parse(const void *bytes, size_t size, const char *name,
                              struct safetensors *out, struct error *err)
{
    const unsigned char *start = bytes;
    uint64_t length = 0;
    *out = (struct safetensors){0};
    for (int k = 0; k < LENGTH_BYTES && (size_t)k < size; k++)
        length |= (uint64_t)start[k] << 8 * k;
    if (size < LENGTH_BYTES + 2 || start[LENGTH_BYTES] != '{')
        return FAIL(err, STATUS_FAILED, "%s: no file of safetensors: it begins with no header",
                    name);
    if (length > HEADER_MAX || length > size - LENGTH_BYTES)
        return FAIL(err, STATUS_FAILED,
                    "%s: the header should have %llu bytes, the file has %zu: it is damaged or cut "
                    "off",
                    name, (unsigned long long)length, size);
    char *text = arena_alloc(&out->arena, (size_t)length + 1);
    struct header *h = arena_alloc(&out->arena, sizeof(*h));
    if (!text || !h)
        return FAIL_NO_MEMORY(err);
    memcpy(text, start + LENGTH_BYTES, (size_t)length);
    h->text = h->at = text;
    h->length = (size_t)length;
    h->name = name;
    h->data = start + LENGTH_BYTES + length;
    h->data_bytes = size - LENGTH_BYTES - (size_t)length;
    h->out = out;
    return take_header(h, err);
}

/* ---- writing ---- */

static void write_tensor(struct json *json, const struct safetensor *t, size_t at)
{
    int64_t offset[] = {(int64_t)at, (int64_t)(at + t->bytes)};
    json_open(json, t->name, '{');
    json_text(json, "dtype", t->type);
    json_ints(json, "shape", t->dim, t->rank);
    json_ints(json, "data_offsets", offset, 2);
    json_close(json);
}

/* What reading would refuse is not written. */
static enum status check_text(const char *text, struct error *err)
{
    size_t length = strlen(text);
    return length < NAME_MAX_BYTES
               ? STATUS_OK
               : FAIL(err, STATUS_FAILED,
                      "a text of %zu bytes is too long for a header: \"%.40s...\"", length, text);
}

static enum status check_texts(const struct safetensors *contents, struct error *err)
{
    for (int k = 0; k < contents->note_count; k++) {
        TRY(check_text(contents->notes[k].key, err));
        TRY(check_text(contents->notes[k].text, err));
    }
    for (int k = 0; k < contents->count; k++)
        TRY(check_text(contents->tensors[k].name, err));
    return STATUS_OK;
}

static void write_header(FILE *stream, const struct safetensors *contents)
{
    struct json json;
    size_t at = 0;
    json_begin(&json, stream);
    json.compact = true;
    json_open(&json, NULL, '{');
    if (contents->note_count) {
        json_open(&json, "__metadata__", '{');
        for (int k = 0; k < contents->note_count; k++)
            json_text(&json, contents->notes[k].key, contents->notes[k].text);
        json_close(&json);
    }
    for (int k = 0; k < contents->count; k++) {
        write_tensor(&json, &contents->tensors[k], at);
        at += contents->tensors[k].bytes;
    }
    json_close(&json);
}

enum status safetensors_write(FILE *stream, const struct safetensors *contents, struct error *err)
{
    char *text = NULL;
    size_t length = 0;
    TRY(check_texts(contents, err));
    FILE *header = open_memstream(&text, &length);
    if (!header)
        return FAIL_NO_MEMORY(err);
    write_header(header, contents);
    if (fclose(header) != 0 || !text) {
        free(text);
        return FAIL_NO_MEMORY(err);
    }
    while (length && (text[length - 1] == '\n' || text[length - 1] == ' '))
        length--;
    size_t padded =
        (length + LENGTH_BYTES + ALIGN_DATA - 1) / ALIGN_DATA * ALIGN_DATA - LENGTH_BYTES;
    for (int k = 0; k < LENGTH_BYTES; k++)
        fputc((int)(padded >> 8 * k & 0xff), stream);
    fwrite(text, 1, length, stream);
    free(text);
    fprintf(stream, "%*s", (int)(padded - length), "");
    for (int k = 0; k < contents->count; k++)
        if (contents->tensors[k].bytes)
            fwrite(contents->tensors[k].data, 1, contents->tensors[k].bytes, stream);
    return STATUS_OK;
}
