/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/onnx_build.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"

enum { LENGTH_BYTES = 5, WORD_BYTES = 64 };

/* ---- protobuf ---- */

static void put(struct builder *b, const void *data, size_t size)
{
    if (b->size + size > b->cap) {
        b->cap = (b->size + size) * 2 + 256;
        b->bytes = realloc(b->bytes, b->cap);
        if (!b->bytes)
            abort();
    }
    if (size)
        memcpy(b->bytes + b->size, data, size);
    b->size += size;
}

static void put_varint(struct builder *b, uint64_t value)
{
    do {
        uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        put(b, &byte, 1);
    } while (value >>= 7);
}

/* Lengths get five bytes whatever they are, which the format allows, and are set at the end. */
void build_open(struct builder *b, uint32_t field)
{
    static const uint8_t room[LENGTH_BYTES] = {0};
    put_varint(b, field << 3 | 2);
    b->open[b->depth++] = b->size;
    put(b, room, LENGTH_BYTES);
}

void build_close(struct builder *b)
{
    size_t at = b->open[--b->depth], length = b->size - at - LENGTH_BYTES;
    for (int k = 0; k < LENGTH_BYTES; k++, length >>= 7)
        b->bytes[at + (size_t)k] = (uint8_t)((length & 0x7f) | (k + 1 < LENGTH_BYTES ? 0x80 : 0));
}

void build_number(struct builder *b, uint32_t field, int64_t value)
{
    put_varint(b, field << 3);
    put_varint(b, (uint64_t)value);
}

void build_float(struct builder *b, uint32_t field, float value)
{
    put_varint(b, field << 3 | 5);
    put(b, &value, sizeof(value));
}

void build_bytes(struct builder *b, uint32_t field, const void *data, size_t size)
{
    put_varint(b, field << 3 | 2);
    put_varint(b, size);
    put(b, data, size);
}

void build_text(struct builder *b, uint32_t field, const char *text)
{
    build_bytes(b, field, text, strlen(text));
}

/* ---- a model ---- */

void build_model(struct builder *b, int64_t opset)
{
    build_number(b, 1, 8); /* IR version */
    build_open(b, 8);
    build_number(b, 2, opset);
    build_close(b);
    build_open(b, 7);
    build_text(b, 2, "test");
}

void build_end(struct builder *b)
{
    while (b->depth)
        build_close(b);
}

void build_release(struct builder *b)
{
    free(b->bytes);
    memset(b, 0, sizeof(*b));
}

/* The next word of a list; false at its end. */
static int next_word(const char **list, const char *separators, char word[WORD_BYTES])
{
    *list += strspn(*list, separators);
    size_t length = strcspn(*list, separators);
    snprintf(word, WORD_BYTES, "%.*s", (int)length, *list);
    *list += length;
    return length > 0;
}

static void value_info(struct builder *b, uint32_t field, const char *name, int elem_type,
                       const char *dims)
{
    char word[WORD_BYTES];
    build_open(b, field);
    build_text(b, 1, name);
    build_open(b, 2);
    build_open(b, 1);
    build_number(b, 1, elem_type);
    build_open(b, 2);
    while (next_word(&dims, ",", word)) {
        build_open(b, 1);
        if (isdigit((unsigned char)word[0]) || word[0] == '-')
            build_number(b, 1, strtoll(word, NULL, 10));
        else
            build_text(b, 2, word);
        build_close(b);
    }
    for (int k = 0; k < 4; k++)
        build_close(b);
}

void build_input(struct builder *b, const char *name, int elem_type, const char *dims)
{
    value_info(b, 11, name, elem_type, dims);
}

void build_output(struct builder *b, const char *name, int elem_type, const char *dims)
{
    value_info(b, 12, name, elem_type, dims);
}

void build_tensor(struct builder *b, const char *name, int elem_type, const char *dims,
                  const void *raw, size_t size)
{
    char word[WORD_BYTES];
    build_open(b, 5);
    while (next_word(&dims, ",", word))
        build_number(b, 1, strtoll(word, NULL, 10));
    build_number(b, 2, elem_type);
    build_text(b, 8, name);
    build_bytes(b, 9, raw, size);
    build_close(b);
}

static void names(struct builder *b, uint32_t field, const char *list)
{
    char word[WORD_BYTES];
    while (next_word(&list, " ", word))
        build_text(b, field, strcmp(word, "-") == 0 ? "" : word);
}

void build_node(struct builder *b, const char *op, const char *inputs, const char *outputs)
{
    build_open(b, 1);
    names(b, 1, inputs);
    names(b, 2, outputs);
    build_text(b, 4, op);
}

static void attribute(struct builder *b, const char *name, int type)
{
    build_open(b, 5);
    build_text(b, 1, name);
    build_number(b, 20, type);
}

void build_attr_int(struct builder *b, const char *name, int64_t value)
{
    attribute(b, name, 2);
    build_number(b, 3, value);
    build_close(b);
}

void build_attr_ints(struct builder *b, const char *name, const char *list)
{
    char word[WORD_BYTES];
    attribute(b, name, 7);
    while (next_word(&list, ",", word))
        build_number(b, 8, strtoll(word, NULL, 10));
    build_close(b);
}

void build_attr_float(struct builder *b, const char *name, float value)
{
    attribute(b, name, 1);
    build_float(b, 2, value);
    build_close(b);
}

void build_attr_graph(struct builder *b, const char *name)
{
    attribute(b, name, 5);
    build_open(b, 6);
}

void build_attr_ref(struct builder *b, const char *name, const char *of_call, int type)
{
    attribute(b, name, type);
    build_text(b, 21, of_call);
    build_close(b);
}

/* ---- files that must be refused ---- */

static void negative_tensor(struct builder *b)
{
    build_model(b, 17);
    build_tensor(b, "w", 1, "-4,2", "", 0);
    build_graph(b, "y = Relu(w); out y f32[4,2]");
    build_end(b);
}

static void raw_data_short(struct builder *b)
{
    build_model(b, 17);
    build_tensor(b, "w", 1, "1000,1000", "1234", 4);
    build_graph(b, "y = Relu(w); out y f32[1000,1000]");
    build_end(b);
}

static void raw_length_past_end(struct builder *b)
{
    static const uint8_t tail[] = {9 << 3 | 2, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 2, 3};
    build_model(b, 17);
    build_open(b, 5);
    build_number(b, 2, 1);
    put(b, tail, sizeof(tail));
    build_end(b);
}

static void truncated(struct builder *b)
{
    build_file(b, "in x f32[2,3]; y = Relu(x); out y f32[2,3]");
    b->size -= 7;
}

static void nested_graphs(struct builder *b)
{
    build_model(b, 17);
    for (int k = 0; k < 300; k++) {
        build_node(b, "If", "c", "y");
        build_attr_graph(b, "then_branch");
    }
    build_end(b);
}

static void nested_types(struct builder *b)
{
    build_model(b, 17);
    build_open(b, 11);
    build_text(b, 1, "x");
    build_open(b, 2);
    for (int k = 0; k < 500; k++) {
        build_open(b, 4);
        build_open(b, 1);
    }
    build_end(b);
}

static void endless_function(struct builder *b)
{
    build_model(b, 17);
    build_graph(b, "in x f32[2]; y = own.F(x); out y f32[2]");
    build_close(b);
    build_open(b, 25);
    build_text(b, 1, "F");
    build_text(b, 4, "a");
    build_text(b, 5, "c");
    build_text(b, 10, "own");
    for (int k = 0; k < 2; k++) {
        build_open(b, 7);
        build_text(b, 1, k ? "b" : "a");
        build_text(b, 2, k ? "c" : "b");
        build_text(b, 4, "F");
        build_text(b, 7, "own");
        build_close(b);
    }
    build_end(b);
}

static void escaping_data(struct builder *b)
{
    build_model(b, 17);
    build_open(b, 5);
    build_number(b, 1, 1);
    build_number(b, 2, 2);
    build_text(b, 8, "w");
    build_open(b, 13);
    build_text(b, 1, "location");
    build_text(b, 2, "../../../../etc/hostname");
    build_close(b);
    build_number(b, 14, 1);
    build_close(b);
    build_node(b, "Identity", "w", "y");
    build_close(b);
    build_output(b, "y", 2, "1");
    build_end(b);
}

static void nothing(struct builder *b)
{
    put(b, "", 0);
}

static void text_file(struct builder *b)
{
    static const char text[] = "This is a text, and no model of any kind.\n";
    put(b, text, sizeof(text) - 1);
}

static const struct hostile {
    const char *name;
    const char *graph;
    void (*build)(struct builder *b); /* what no text says */
} hostiles[] = {
    {"huge dimensions",
     "in x f32[4611686018427387904,4611686018427387904]; y = Relu(x);"
     "out y f32[4611686018427387904,4611686018427387904]",
     NULL},
    {"a product that overflows",
     "in x f32[1000000000,1000000000,1000000000]; y = Relu(x);"
     "out y f32[1000000000,1000000000,1000000000]",
     NULL},
    {"rank 12",
     "in x f32[1,1,1,1,1,1,1,1,1,1,1,1]; y = Relu(x); out y f32[1,1,1,1,1,1,1,1,1,1,1,1]", NULL},
    {"a negative dimension", NULL, negative_tensor},
    {"too little raw_data", NULL, raw_data_short},
    {"a length past the end", NULL, raw_length_past_end},
    {"a truncated file", NULL, truncated},
    {"graphs 300 deep", NULL, nested_graphs},
    {"types 500 deep", NULL, nested_types},
    {"a cycle", "in x f32[2]; a = Add(x b); b = Add(x a); out a f32[2]", NULL},
    {"a value made twice", "in x f32[2]; y = Relu(x); y = Abs(x); out y f32[2]", NULL},
    {"a function that calls itself", NULL, endless_function},
    {"a loop without end",
     "in x f32[2]; const n i64[]=9223372036854775807; const t bool[]=1;"
     "y = Loop(n t x) body={w = Add(v v); in i i64[]; in c bool[]; in v f32[2];"
     "                      out c bool[]; out w f32[2]};"
     "out y f32[2]",
     NULL},
    {"a Reshape that overflows",
     "in x f32[2,3]; const s i64[3]=9223372036854775807,9223372036854775807,2;"
     "y = Reshape(x s); out y f32[2,3]",
     NULL},
    {"an Expand to 2^90 elements",
     "in x f32[1]; const s i64[3]=4611686018427387903,3,1073741824;"
     "y = Expand(x s); out y f32[1,1,1]",
     NULL},
    {"a window that overflows",
     "in x f32[1,1,4,4]; const w f32[1,1,1,1]=1; y = Conv(x w) "
     "pads=[9223372036854775807,9223372036854775806,9223372036854775805,9223372036854775804] "
     "strides=[9223372036854775807,9223372036854775806] "
     "dilations=[9223372036854775807,9223372036854775806]; out y f32[1,1,4,4]",
     NULL},
    {"external data elsewhere", NULL, escaping_data},
    {"an empty file", NULL, nothing},
    {"a text file", NULL, text_file},
};

int hostile_count(void)
{
    return ARRAY_COUNT(hostiles);
}

const char *hostile_name(int index)
{
    return hostiles[index].name;
}

void hostile_build(int index, struct builder *b)
{
    if (hostiles[index].graph)
        build_file(b, hostiles[index].graph);
    else
        hostiles[index].build(b);
}
