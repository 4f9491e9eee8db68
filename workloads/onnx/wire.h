/* SPDX-License-Identifier: Apache-2.0
 *
 * A look at a serialised ONNX message before protobuf-c unpacks it. protobuf-c recurses once per
 * nested message and trusts the stack; a file of a few kilobytes can nest thousands deep. This scan
 * follows only the messages that can contain themselves (graphs in attributes, types of types) and
 * checks every length on the way.
 */
#ifndef WORKLOADS_ONNX_WIRE_H
#define WORKLOADS_ONNX_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { WIRE_GRAPH_DEPTH = 32 }; /* subgraphs within subgraphs */

enum status wire_check_model(const void *bytes, size_t size, struct error *err);
enum status wire_check_tensor(const void *bytes, size_t size, struct error *err);

/* The batch of a model, of which nothing but the inputs' shapes is read: their first dimension, or
 * 1 where one of them leaves it open or there is none. 0: these bytes do not say it. */
int64_t wire_batch(const void *bytes, size_t size);

#endif
