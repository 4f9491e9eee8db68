/* SPDX-License-Identifier: Apache-2.0
 *
 * The sizes that a model file leaves open, which whoever runs it says. Read from the shapes of its
 * inputs; nothing else of the file is unpacked, so that planning a large one takes no time.
 *
 * A first dimension that is open is the batch, unless its name stands further back in a shape, too:
 * beside input_ids [batch,sequence] the first dimension of position_ids [sequence] is none. Where
 * that leaves no input with a batch, as with a lone adjacency [nodes,nodes], it is one after all.
 */
#ifndef WORKLOADS_ONNX_OPEN_DIMS_H
#define WORKLOADS_ONNX_OPEN_DIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

struct open_dim {
    const char *name; /* "sequence"; "x.1": the second dimension of input x, which has no name */
    bool first;       /* of some input it is the first dimension, */
    bool later;       /* of some input another one */
    bool batch;       /* it is the batch, if nobody gives it a size of its own */
};

struct open_dims {
    struct open_dim *list;
    size_t count, capacity;
    int64_t fixed_batch; /* first dimension of the first input that fixes it; 0: none does */
};

/* False: these bytes do not say it. The list lives in the arena. */
bool open_dims_read(const void *bytes, size_t size, struct arena *arena, struct open_dims *dims);

/* NULL: none is called so. */
const struct open_dim *open_dims_find(const struct open_dims *dims, const char *name);

/* The name by which a size is given. NULL: no memory. */
const char *open_dim_name(struct arena *arena, const char *symbol, const char *input, int dim);

/* Among sizes that were given, "sequence=128", that of the name; 0: it is not there. */
enum status open_dim_size(const char *const *given, int count, const char *name, int64_t *size,
                          struct error *err);

/* The batch of the model if nothing is said but these sizes. */
int64_t open_dims_batch(const struct open_dims *dims, const char *const *given, int count);

#endif
