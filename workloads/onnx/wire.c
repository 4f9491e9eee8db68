/* SPDX-License-Identifier: Apache-2.0
 *
 * Field numbers are those of onnx.proto; fields that are not listed hold nothing that nests. */
#include "workloads/onnx/wire.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Messages on a way that leads back to a graph or a type. */
enum message {
    LEAF,
    MODEL,
    GRAPH,
    NODE,
    ATTRIBUTE,
    FUNCTION,
    TRAINING,
    VALUE_INFO,
    TYPE,
    TYPE_OF_TYPE, /* Sequence, Map, Optional */
    MESSAGE_COUNT
};

struct nesting {
    uint32_t field;
    enum message message;
};

enum { FIELDS_MAX = 6 };

static const struct nesting nestings[MESSAGE_COUNT][FIELDS_MAX] = {
    [MODEL] = {{7, GRAPH}, {20, TRAINING}, {25, FUNCTION}},
    [GRAPH] = {{1, NODE}, {11, VALUE_INFO}, {12, VALUE_INFO}, {13, VALUE_INFO}},
    [NODE] = {{5, ATTRIBUTE}},
    [ATTRIBUTE] = {{6, GRAPH}, {11, GRAPH}, {14, TYPE}, {15, TYPE}},
    [FUNCTION] = {{7, NODE}, {11, ATTRIBUTE}, {12, VALUE_INFO}},
    [TRAINING] = {{1, GRAPH}, {2, GRAPH}},
    [VALUE_INFO] = {{2, TYPE}},
    [TYPE] = {{4, TYPE_OF_TYPE}, {5, TYPE_OF_TYPE}, {9, TYPE_OF_TYPE}},
    [TYPE_OF_TYPE] = {{1, TYPE}, {2, TYPE}},
};

/* One graph level is graph, node, attribute: three messages. */
enum { DEPTH_MAX = 3 * WIRE_GRAPH_DEPTH + 8 };

static bool take_varint(struct wire_span *c, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && c->at < c->end; shift += 7) {
        unsigned char byte = *c->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static bool skip_bytes(struct wire_span *c, uint64_t count)
{
    if (count > (uint64_t)(c->end - c->at))
        return false;
    c->at += count;
    return true;
}

static enum message message_of(enum message parent, uint64_t field)
{
    for (int k = 0; k < FIELDS_MAX; k++)
        if (nestings[parent][k].field == field && nestings[parent][k].message != LEAF)
            return nestings[parent][k].message;
    return LEAF;
}

static enum status scan(struct wire_span c, enum message message, int depth, struct error *err);

/* The body of a length-delimited field; the cursor moves past it. */
static enum status scan_delimited(struct wire_span *c, enum message message, int depth,
                                  struct error *err)
{
    uint64_t length;
    struct wire_span body = *c;
    if (!take_varint(&body, &length))
        return FAIL(err, STATUS_FAILED, "a length is cut off");
    c->at = body.at;
    if (!skip_bytes(c, length))
        return FAIL(err, STATUS_FAILED, "a length of %llu bytes reaches past the end",
                    (unsigned long long)length);
    body.end = c->at;
    return message == LEAF ? STATUS_OK : scan(body, message, depth + 1, err);
}

static enum status scan(struct wire_span c, enum message message, int depth, struct error *err)
{
    if (depth > DEPTH_MAX)
        return UNSUPPORTED(err, "graphs or types nest more than %d deep", WIRE_GRAPH_DEPTH);
    while (c.at < c.end) {
        uint64_t tag, number;
        bool fine = take_varint(&c, &tag);
        switch (fine ? tag & 7 : 7) {
        case 0:
            fine = take_varint(&c, &number);
            break;
        case 1:
            fine = skip_bytes(&c, 8);
            break;
        case 2:
            TRY(scan_delimited(&c, message_of(message, tag >> 3), depth, err));
            break;
        case 5:
            fine = skip_bytes(&c, 4);
            break;
        default:
            fine = false;
        }
        if (!fine)
            return FAIL(err, STATUS_FAILED, "bytes that are no protobuf");
    }
    return STATUS_OK;
}

static enum status check(const void *bytes, size_t size, enum message message, struct error *err)
{
    if (!size)
        return FAIL(err, STATUS_FAILED, "nothing in it");
    const unsigned char *start = bytes;
    struct wire_span c = {.at = start, .end = start + size};
    return scan(c, message, 0, err);
}

enum status wire_check_model(const void *bytes, size_t size, struct error *err)
{
    return check(bytes, size, MODEL, err);
}

enum status wire_check_tensor(const void *bytes, size_t size, struct error *err)
{
    return check(bytes, size, LEAF, err);
}

/* ---- fields, one after the other ---- */

bool wire_next(struct wire_span *c, struct wire_field *f, int64_t *left)
{
    uint64_t tag;
    *f = (struct wire_field){0};
    if (--*left <= 0 || c->at >= c->end || !take_varint(c, &tag))
        return false;
    f->number = tag >> 3;
    switch (tag & 7) {
    case 0:
        return take_varint(c, &f->value);
    case 1:
        return skip_bytes(c, 8);
    case 2:
        if (!take_varint(c, &f->value))
            return false;
        f->body.at = c->at;
        if (!skip_bytes(c, f->value))
            return false;
        f->body.end = c->at;
        return true;
    case 5:
        return skip_bytes(c, 4);
    default:
        return false;
    }
}

bool wire_find(struct wire_span c, uint64_t number, struct wire_field *out, int64_t *left)
{
    while (wire_next(&c, out, left))
        if (out->number == number)
            return true;
    return false;
}
