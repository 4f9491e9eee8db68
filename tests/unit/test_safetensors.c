/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/safetensors.h"
#include "tests/lib/unit.h"

/* A file with this header and so many bytes after it; NULL-terminated header, malloc'd. */
static unsigned char *file_of(const char *header, size_t data_bytes, size_t *size)
{
    size_t length = strlen(header);
    *size = 8 + length + data_bytes;
    unsigned char *file = calloc(*size, 1);
    assert_non_null(file);
    for (int k = 0; k < 8; k++)
        file[k] = (unsigned char)(length >> 8 * k);
    memcpy(file + 8, header, length);
    return file;
}

static char *written(const struct safetensors *contents, size_t *size)
{
    char *bytes = NULL;
    FILE *stream = open_memstream(&bytes, size);
    assert_non_null(stream);
    MUST(safetensors_write, stream, contents);
    assert_int_equal(fclose(stream), 0);
    return bytes;
}

TEST(what_is_written_is_read_again)
{
    static const float weights[] = {1, -2, 3.5f, 4, 5, 6};
    static const int64_t step = 1234567890123;
    struct safetensor tensors[] = {
        {.name = "layer \"1\".weight",
         .type = "F32",
         .rank = 2,
         .dim = {2, 3},
         .data = weights,
         .bytes = sizeof(weights)},
        {.name = "nothing", .type = "F16", .rank = 2, .dim = {0, 7}},
        {.name = "Schritt \xc3\xbc", .type = "I64", .data = &step, .bytes = sizeof(step)},
    };
    struct safetensors_note notes[] = {{"format", "two\nlines"}, {"empty", ""}};
    struct safetensors contents = {.tensors = tensors, .count = 3, .notes = notes, .note_count = 2};
    struct safetensors read;
    size_t size;
    char *bytes = written(&contents, &size);
    MUST(safetensors_parse, bytes, size, "test", &read);
    assert_int_equal(read.count, 3);
    for (int k = 0; k < 3; k++) {
        const struct safetensor *t = &read.tensors[k];
        assert_string_equal(t->name, tensors[k].name);
        assert_string_equal(t->type, tensors[k].type);
        assert_int_equal(t->rank, tensors[k].rank);
        assert_memory_equal(t->dim, tensors[k].dim, sizeof(t->dim));
        assert_int_equal(t->bytes, tensors[k].bytes);
        if (t->bytes)
            assert_memory_equal(t->data, tensors[k].data, t->bytes);
    }
    assert_int_equal(read.note_count, 2);
    assert_string_equal(safetensors_note(&read, "format"), "two\nlines");
    assert_string_equal(safetensors_note(&read, "empty"), "");
    assert_null(safetensors_note(&read, "none"));
    assert_ptr_equal(safetensors_find(&read, "nothing"), &read.tensors[1]);
    assert_null(safetensors_find(&read, "weight"));
    safetensors_release(&read);
    /* Other readers map the file and expect aligned contents. */
    assert_int_equal(((const unsigned char *)bytes)[0] % 8, 0);
    free(bytes);
}

TEST(every_part_of_a_file_is_refused)
{
    static const float weights[] = {1, 2};
    struct safetensor tensor = {.name = "w",
                                .type = "F32",
                                .rank = 1,
                                .dim = {2},
                                .data = weights,
                                .bytes = sizeof(weights)};
    struct safetensors contents = {.tensors = &tensor, .count = 1}, read;
    struct error err;
    size_t size;
    char *bytes = written(&contents, &size);
    for (size_t part = 0; part < size; part++) {
        assert_int_equal(safetensors_parse(bytes, part, "test", &read, &err), STATUS_FAILED);
        safetensors_release(&read);
    }
    free(bytes);
}

TEST(a_broken_header_is_named_with_its_place)
{
#define TENSOR(type, shape, offsets)                                                               \
    "{\"w\": {\"dtype\": \"" type "\", \"shape\": " shape ", \"data_offsets\": " offsets "}}"
#define TWO(first, second)                                                                         \
    "{\"a\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": " first "}, "                  \
    "\"b\": {\"dtype\": \"F32\", \"shape\": [1], \"data_offsets\": " second "}}"
    static const struct {
        const char *header, *message;
        size_t data;
    } cases[] = {
        {"[]", "begins with no header", 0},
        {"{\"w\"", "test: byte 12: no ':'", 0},
        {"{\"w\": 3}", "test: byte 14: no '{'", 0},
        {"{\"w\": {\"dtype\": \"F32\"}}", "needs dtype, shape and two data_offsets", 0},
        {TENSOR("F31", "[1]", "[0, 4]"), "\"F31\" is no type", 4},
        {TENSOR("F32", "[1]", "[0, 5]"), "takes 4 bytes, and 5 are set apart", 5},
        {TENSOR("F32", "[2]", "[0, 8]"), "damaged or cut off", 4},
        {TENSOR("F32", "[1]", "[0, 4]"), "take 4 bytes, and 8 follow", 8},
        {TENSOR("F32", "[1]", "[8, 4]"), "damaged or cut off", 8},
        {TENSOR("F32", "[1]", "[4, 8]"), "\"w\" begins at byte 4 of the contents", 8},
        {TWO("[0, 4]", "[0, 4]"), "\"b\" begins at byte 0 of the contents", 8},
        {TWO("[0, 4]", "[2, 6]"), "\"b\" begins at byte 2 of the contents", 8},
        {TWO("[8, 12]", "[0, 4]"), "\"a\" begins at byte 8 of the contents", 8 + 4},
        {TENSOR("F32", "[-1]", "[0, 4]"), "no whole number", 4},
        {TENSOR("F32", "[01]", "[0, 4]"), "no whole number", 4},
        {TENSOR("F32", "[1,1,1,1,1,1,1,1,1]", "[0, 4]"), "more than 8 numbers", 4},
        {TENSOR("F32", "[99999999999999999999]", "[0, 4]"), "too large", 4},
        {TENSOR("F32", "[4000000000, 4000000000, 4]", "[0, 4]"), "larger than any memory", 4},
        {TENSOR("F32", "[1]", "[0, 4]") " x", "goes on after its end", 4},
        {"{\"__metadata__\": {\"step\": 3}}", "no text in quotes", 0},
        {"{\"w\": {\"colour\": 3}}", "a key \"colour\"", 0},
    };
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct safetensors read;
        struct error err = {0};
        size_t size;
        unsigned char *file = file_of(cases[k].header, cases[k].data, &size);
        assert_int_equal(safetensors_parse(file, size, "test", &read, &err), STATUS_FAILED);
        if (!strstr(err.message, cases[k].message))
            fail_msg("%s: \"%s\" lacks \"%s\"", cases[k].header, err.message, cases[k].message);
        safetensors_release(&read);
        free(file);
    }
}

TEST(tensors_may_be_named_in_any_order)
{
    static const char header[] =
        "{\"late\": {\"dtype\": \"U8\", \"shape\": [2], \"data_offsets\": [3, 5]}, "
        "\"none\": {\"dtype\": \"U8\", \"shape\": [0], \"data_offsets\": [3, 3]}, "
        "\"early\": {\"dtype\": \"U8\", \"shape\": [3], \"data_offsets\": [0, 3]}}";
    struct safetensors read;
    size_t size;
    unsigned char *file = file_of(header, 5, &size);
    MUST(safetensors_parse, file, size, "test", &read);
    assert_int_equal(read.count, 3);
    assert_string_equal(read.tensors[0].name, "late");
    assert_ptr_equal(read.tensors[0].data, file + size - 2);
    safetensors_release(&read);
    free(file);
}

static enum status write_note(const char *key, const char *text, struct safetensors *read,
                              struct error *err)
{
    struct safetensors_note note = {key, text};
    struct safetensors contents = {.notes = &note, .note_count = 1};
    char *bytes = NULL;
    size_t size;
    FILE *stream = open_memstream(&bytes, &size);
    assert_non_null(stream);
    enum status status = safetensors_write(stream, &contents, err);
    assert_int_equal(fclose(stream), 0);
    assert_true((status == STATUS_OK) == (size > 0));
    if (status == STATUS_OK)
        status = safetensors_parse(bytes, size, "test", read, err);
    free(bytes);
    return status;
}

TEST(what_could_not_be_read_is_not_written)
{
    enum { LIMIT = 4096 };
    char text[LIMIT + 1];
    struct safetensors read = {0};
    memset(text, 'x', LIMIT);
    text[LIMIT] = '\0';
    FAILS(STATUS_FAILED, "a text of 4096 bytes", write_note, "key", text, &read);
    FAILS(STATUS_FAILED, "a text of 4096 bytes", write_note, text, "text", &read);
    text[LIMIT - 1] = '\0';
    MUST(write_note, "key", text, &read);
    assert_string_equal(safetensors_note(&read, "key"), text);
    safetensors_release(&read);

    struct safetensor tensor = {.name = text, .type = "F32", .rank = 1};
    struct safetensors contents = {.tensors = &tensor, .count = 1};
    size_t size;
    free(written(&contents, &size));
    text[LIMIT - 1] = 'x';
    FAILS(STATUS_FAILED, "too long", safetensors_write, stdout, &contents);
}
