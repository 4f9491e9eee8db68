/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a graph, read from left to right; see onnx_build.h. A mistake in it is one of a test,
 * and ends the program. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "tests/lib/onnx_build.h"

enum { PART_BYTES = 128, VALUES_BYTES = 4096 };

static const struct type {
    const char *name;
    int number; /* of ONNX */
    size_t size;
} types[] = {{"f32", 1, 4}, {"u8", 2, 1}, {"i32", 6, 4}, {"i64", 7, 8}, {"bool", 9, 1}};

static _Noreturn void wrong(const char *at, const char *expected)
{
    fprintf(stderr, "\"%.40s\": %s is expected\n", at, expected);
    abort();
}

/* What stands before the first of these characters, without blanks around it. */
static void part(const char **text, const char *ends, char out[PART_BYTES])
{
    *text += strspn(*text, " ");
    size_t length = strcspn(*text, ends);
    if (length >= PART_BYTES)
        wrong(*text, "a shorter part");
    memcpy(out, *text, length);
    *text += length;
    while (length && out[length - 1] == ' ')
        length--;
    out[length] = 0;
}

static bool follows(const char **text, const char *word)
{
    *text += strspn(*text, " ");
    bool found = strncmp(*text, word, strlen(word)) == 0;
    *text += found ? strlen(word) : 0;
    return found;
}

static void must_follow(const char **text, const char *word)
{
    if (!follows(text, word))
        wrong(*text, word);
}

static const struct type *value(const char **text, char name[PART_BYTES], char dims[PART_BYTES])
{
    char type[PART_BYTES];
    part(text, " ", name);
    part(text, "[", type);
    must_follow(text, "[");
    part(text, "]", dims);
    must_follow(text, "]");
    for (int k = 0; k < ARRAY_COUNT(types); k++)
        if (strcmp(type, types[k].name) == 0)
            return &types[k];
    wrong(type, "f32, u8, i32, i64 or bool");
}

/* NAME TYPE[DIMS]=1,2,3; one number fills the tensor. */
static void constant(struct builder *b, const char **text)
{
    char name[PART_BYTES], dims[PART_BYTES], data[VALUES_BYTES];
    const struct type *type = value(text, name, dims);
    size_t size = type->size;
    for (const char *dim = dims; *dim; dim += strcspn(dim, ","), dim += *dim == ',')
        size *= (size_t)strtoll(dim, NULL, 10);
    if (size > sizeof(data))
        wrong(dims, "a smaller tensor");
    must_follow(text, "=");
    for (size_t at = 0; at < size; at += type->size) {
        char *end;
        float number = strtof(*text, &end);
        int64_t integer = strtoll(*text, NULL, 10);
        const void *from = type->number == 1 ? (const void *)&number : (const void *)&integer;
        memcpy(data + at, from, type->size); /* the lowest byte comes first */
        *text = *end == ',' ? end + 1 : *text;
    }
    *text += strcspn(*text, ";}");
    build_tensor(b, name, type->number, dims, data, size);
}

static void statements(struct builder *b, const char **text);

static void attribute(struct builder *b, const char **text)
{
    char name[PART_BYTES], number[PART_BYTES];
    part(text, "=", name);
    must_follow(text, "=");
    if (follows(text, "{")) {
        build_attr_graph(b, name);
        statements(b, text);
        must_follow(text, "}");
        build_close(b);
        build_close(b);
    } else if (follows(text, "[")) {
        part(text, "]", number);
        must_follow(text, "]");
        build_attr_ints(b, name, number);
    } else {
        part(text, " ;}", number);
        if (strchr(number, '.'))
            build_attr_float(b, name, strtof(number, NULL));
        else
            build_attr_int(b, name, strtoll(number, NULL, 10));
    }
}

/* OUTPUTS = OP(INPUTS) "NAME" ATTRIBUTE=VALUE ... */
static void node(struct builder *b, const char **text)
{
    char outputs[PART_BYTES], op[PART_BYTES], inputs[PART_BYTES], name[PART_BYTES];
    part(text, "=", outputs);
    must_follow(text, "=");
    part(text, "(", op);
    must_follow(text, "(");
    part(text, ")", inputs);
    must_follow(text, ")");
    char *dot = strchr(op, '.');
    build_node(b, dot ? dot + 1 : op, inputs, outputs);
    if (dot) {
        *dot = 0;
        build_text(b, 7, op);
    }
    if (follows(text, "\"")) {
        part(text, "\"", name);
        must_follow(text, "\"");
        build_text(b, 3, name);
    }
    for (*text += strspn(*text, " "); isalpha((unsigned char)**text); *text += strspn(*text, " "))
        attribute(b, text);
    build_close(b);
}

static void statements(struct builder *b, const char **text)
{
    char name[PART_BYTES], dims[PART_BYTES];
    do {
        const struct type *type;
        if (follows(text, "in ")) {
            type = value(text, name, dims);
            build_input(b, name, type->number, dims);
        } else if (follows(text, "out ")) {
            type = value(text, name, dims);
            build_output(b, name, type->number, dims);
        } else if (follows(text, "const ")) {
            constant(b, text);
        } else {
            node(b, text);
        }
    } while (follows(text, ";"));
}

void build_graph(struct builder *b, const char *text)
{
    statements(b, &text);
    if (*text)
        wrong(text, "; or the end");
}

void build_file(struct builder *b, const char *text)
{
    build_model(b, 17);
    build_graph(b, text);
    build_end(b);
}
