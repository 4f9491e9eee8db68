/* SPDX-License-Identifier: Apache-2.0
 *
 * A look at a serialised ONNX message before protobuf-c unpacks it. protobuf-c recurses once per
 * nested message and trusts the stack; a file of a few kilobytes can nest thousands deep. This scan
 * follows only the messages that can contain themselves (graphs in attributes, types of types) and
 * checks every length on the way.
 */
#ifndef WORKLOADS_ONNX_WIRE_H
#define WORKLOADS_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { WIRE_GRAPH_DEPTH = 32 }; /* subgraphs within subgraphs */

enum status wire_check_model(const void *bytes, size_t size, struct error *err);
enum status wire_check_tensor(const void *bytes, size_t size, struct error *err);

/* ---- fields, one after the other, of bytes that nobody has checked ---- */

struct wire_span {
    const unsigned char *at, *end;
};

struct wire_field {
    uint64_t number, value; /* value: a length where it has a body */
    struct wire_span body;
};

/* False at the end, where the bytes are no message, and when *left, which counts all fields that
 * are looked at, is used up. */
bool wire_next(struct wire_span *message, struct wire_field *field, int64_t *left);
/* The first field of that number. */
bool wire_find(struct wire_span message, uint64_t number, struct wire_field *field, int64_t *left);

#endif
