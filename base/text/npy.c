/* SPDX-License-Identifier: Apache-2.0
 *
 * The header is a Python dict literal. Only what numpy itself writes is read: the three known keys
 * in any order, with string, bool and tuple values. Whatever else stands there is an error. */
#include "base/text/npy.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/output.h"

enum { MAGIC_BYTES = 6, ALIGN_DATA = 64, HEADER_MAX = 1 << 20 };

static const char magic[] = "\x93NUMPY";

struct header {
    const char *at, *end; /* what is left of the text */
    const char *name;
    bool has_descr, has_order, has_shape, fortran;
    struct npy *array;
};

size_t npy_bytes(const struct npy *array)
{
    size_t bytes = array->item_bytes;
    for (int k = 0; k < array->rank; k++)
        bytes *= (size_t)array->dim[k];
    return bytes;
}

void npy_release(struct npy *array)
{
    free(array->data);
    array->data = NULL;
}

/* ---- header text ---- */

static enum status bad_header(const struct header *h, const char *what, struct error *err)
{
    return FAIL(err, STATUS_FAILED, "%s: npy header: %s", h->name, what);
}

static void skip_blanks(struct header *h)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t'))
        h->at++;
}

static bool take(struct header *h, char wanted)
{
    skip_blanks(h);
    if (h->at == h->end || *h->at != wanted)
        return false;
    h->at++;
    return true;
}

static bool take_word(struct header *h, const char *word)
{
    size_t length = strlen(word);
    skip_blanks(h);
    if ((size_t)(h->end - h->at) < length || memcmp(h->at, word, length) != 0)
        return false;
    h->at += length;
    return true;
}

/* A quoted string without escapes. */
static bool take_string(struct header *h, char *text, size_t size)
{
    skip_blanks(h);
    if (h->at == h->end || (*h->at != '\'' && *h->at != '"'))
        return false;
    char quote = *h->at++;
    size_t length = 0;
    while (h->at < h->end && *h->at != quote) {
        if (length + 1 >= size || *h->at == '\\')
            return false;
        text[length++] = *h->at++;
    }
    text[length] = 0;
    return take(h, quote);
}

static bool take_number(struct header *h, int64_t *number)
{
    skip_blanks(h);
    const char *start = h->at;
    for (*number = 0; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++) {
        if (*number > (INT64_MAX - 9) / 10)
            return false;
        *number = *number * 10 + (*h->at - '0');
    }
    return h->at > start;
}

static enum status read_descr(struct header *h, struct error *err)
{
    char text[16];
    struct npy *array = h->array;
    if (!take_string(h, text, sizeof(text)))
        return bad_header(h, "descr is no plain type (structured arrays are not supported)", err);
    if (text[0] == '>')
        return bad_header(h, "the array is big-endian; save it little-endian", err);
    bool order = text[0] == '<' || text[0] == '|' || text[0] == '=';
    const char *type = text + order;
    array->kind = type[0];
    array->item_bytes = type[0] && type[1] && !type[2] ? (size_t)(type[1] - '0') : 0;
    size_t n = array->item_bytes;
    bool integer = n == 1 || n == 2 || n == 4 || n == 8;
    bool fine = type[0] == 'f'                     ? integer && n > 1
                : type[0] == 'i' || type[0] == 'u' ? integer
                : type[0] == 'b'                   ? n == 1
                                                   : type[0] == 'V' && (n == 1 || n == 2);
    if (!fine)
        return FAIL(err, STATUS_UNSUPPORTED, "%s: npy type \"%s\" is not supported", h->name, text);
    h->has_descr = true;
    return STATUS_OK;
}

static enum status read_shape(struct header *h, struct error *err)
{
    struct npy *array = h->array;
    if (!take(h, '('))
        return bad_header(h, "shape is no tuple", err);
    while (!take(h, ')')) {
        if (array->rank == NPY_RANK_MAX)
            return FAIL(err, STATUS_UNSUPPORTED, "%s: more than %d dimensions", h->name,
                        NPY_RANK_MAX);
        if (!take_number(h, &array->dim[array->rank]))
            return bad_header(h, "a dimension is no number, or too large", err);
        array->rank++;
        take(h, 'L'); /* Python 2 */
        if (!take(h, ',')) {
            if (take(h, ')'))
                break;
            return bad_header(h, "shape is not closed", err);
        }
    }
    h->has_shape = true;
    return STATUS_OK;
}

static enum status read_entry(struct header *h, struct error *err)
{
    char key[32];
    if (!take_string(h, key, sizeof(key)) || !take(h, ':'))
        return bad_header(h, "a key is missing", err);
    if (strcmp(key, "descr") == 0 && !h->has_descr)
        return read_descr(h, err);
    if (strcmp(key, "shape") == 0 && !h->has_shape)
        return read_shape(h, err);
    if (strcmp(key, "fortran_order") != 0 || h->has_order)
        return bad_header(h, "a key is unknown or given twice", err);
    h->has_order = true;
    h->fortran = take_word(h, "True");
    return h->fortran || take_word(h, "False")
               ? STATUS_OK
               : bad_header(h, "fortran_order is neither True nor False", err);
}

static enum status read_header(struct header *h, struct error *err)
{
    if (!take(h, '{'))
        return bad_header(h, "it does not begin with {", err);
    while (!take(h, '}')) {
        TRY(read_entry(h, err));
        if (!take(h, ',') && (h->at == h->end || *h->at != '}'))
            return bad_header(h, "a comma is missing", err);
    }
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return bad_header(h, "descr, fortran_order or shape is missing", err);
    return STATUS_OK;
}

/* ---- contents ---- */

/* Column-major to row-major. */
static void reorder(const struct npy *array, const char *from)
{
    size_t item = array->item_bytes;
    int64_t index[NPY_RANK_MAX] = {0}, stride[NPY_RANK_MAX], at = 0, step = 1;
    for (int k = 0; k < array->rank; k++) {
        stride[k] = step;
        step *= array->dim[k];
    }
    for (int64_t k = 0; k < step; k++) {
        memcpy((char *)array->data + (size_t)k * item, from + (size_t)at * item, item);
        for (int d = array->rank - 1; d >= 0; d--) {
            at += stride[d];
            if (++index[d] < array->dim[d])
                break;
            at -= stride[d] * array->dim[d];
            index[d] = 0;
        }
    }
}

/* The product of the dimensions in *bytes; false when it is larger than what there is. */
static bool content_bytes(const struct npy *array, size_t available, size_t *bytes)
{
    *bytes = array->item_bytes;
    for (int k = 0; k < array->rank; k++)
        if (array->dim[k] == 0)
            *bytes = 0;
    for (int k = 0; k < array->rank && *bytes; k++) {
        if ((uint64_t)array->dim[k] > available / *bytes)
            return false;
        *bytes *= (size_t)array->dim[k];
    }
    return *bytes <= available;
}

static enum status read_contents(const struct header *h, const char *from, size_t available,
                                 struct error *err)
{
    struct npy *array = h->array;
    size_t bytes;
    if (!content_bytes(array, available, &bytes))
        return FAIL(err, STATUS_FAILED, "%s: the file is too short for its shape (%zu bytes left)",
                    h->name, available);
    array->data = malloc(bytes ? bytes : 1);
    if (!array->data)
        return FAIL_NO_MEMORY(err);
    if (h->fortran && array->rank > 1 && bytes)
        reorder(array, from);
    else if (bytes)
        memcpy(array->data, from, bytes);
    return STATUS_OK;
}

enum status npy_parse(const void *bytes, size_t size, const char *name, struct npy *array,
                      struct error *err)
{
    const unsigned char *byte = bytes;
    *array = (struct npy){0};
    if (size < 10 || memcmp(bytes, magic, MAGIC_BYTES) != 0)
        return FAIL(err, STATUS_FAILED, "%s: is no .npy file", name);
    size_t start = byte[6] == 1 ? 10 : 12, length = byte[8] | (size_t)byte[9] << 8;
    if (byte[6] < 1 || byte[6] > 3)
        return FAIL(err, STATUS_UNSUPPORTED, "%s: npy version %d", name, byte[6]);
    if (start == 12 && size >= 12)
        length |= (size_t)byte[10] << 16 | (size_t)byte[11] << 24;
    if (size < start || length > HEADER_MAX || length > size - start)
        return FAIL(err, STATUS_FAILED, "%s: the npy header reaches past the end", name);
    const char *text = (const char *)bytes + start;
    struct header h = {.at = text, .end = text + length, .name = name, .array = array};
    TRY(read_header(&h, err));
    return read_contents(&h, text + length, size - start - length, err);
}

enum status npy_load(const char *path, struct npy *array, struct error *err)
{
    struct file file;
    *array = (struct npy){0};
    TRY(file_map(path, &file, err));
    enum status status = npy_parse(file.data, file.size, path, array, err);
    file_unmap(&file);
    return status;
}

/* ---- writing ---- */

/* Magic, version, length and text, padded so that the contents begin at a multiple of 64. */
static size_t make_header(const struct npy *array, char *text, size_t size)
{
    char shape[NPY_RANK_MAX * 24] = "";
    size_t used = 0;
    for (int k = 0; k < array->rank; k++)
        used +=
            (size_t)snprintf(shape + used, sizeof(shape) - used, "%lld%s", (long long)array->dim[k],
                             array->rank == 1 || k + 1 < array->rank ? ", " : "");
    int length = snprintf(
        text + 10, size - 10, "{'descr': '%c%c%zu', 'fortran_order': False, 'shape': (%s), }",
        array->item_bytes == 1 ? '|' : '<', array->kind, array->item_bytes, shape);
    size_t end = 10 + (size_t)length;
    size_t total = (end + 1 + ALIGN_DATA - 1) / ALIGN_DATA * ALIGN_DATA;
    memset(text + end, ' ', total - end);
    text[total - 1] = '\n';
    memcpy(text, magic, MAGIC_BYTES);
    text[6] = 1;
    text[7] = 0;
    text[8] = (char)((total - 10) & 255);
    text[9] = (char)((total - 10) >> 8);
    return total;
}

enum status npy_save(const char *path, const struct npy *array, struct error *err)
{
    char header[512];
    struct output out;
    TRY(output_open(&out, path, OUTPUT_PRECIOUS, err));
    size_t length = make_header(array, header, sizeof(header)), bytes = npy_bytes(array);
    fwrite(header, 1, length, out.stream);
    fwrite(array->data, 1, bytes, out.stream);
    return output_close(&out, STATUS_OK, err);
}
