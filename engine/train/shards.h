/* SPDX-License-Identifier: Apache-2.0
 *
 * States of which each rank has a part: columns of an embedding table, a share of an optimiser's
 * moments. Outside of a step, in checkpoints and as first weights, they are the whole tensors that
 * one rank alone would have. */
#ifndef ENGINE_TRAIN_SHARDS_H
#define ENGINE_TRAIN_SHARDS_H

#include "engine/run/exe.h"

/* The whole is seen as a matrix of `rows` rows of `width` elements. Rank r has the columns from r *
 * columns on, as a matrix of `columns` columns: those beyond the width are nobody's. */
struct shard {
    const char *state;  /* of the rank's graph: the part is in it, */
    int64_t first;      /* from this element on */
    struct value whole; /* name, type, shape, first contents */
    int64_t rows, width, columns;
};

struct shards {
    struct arena arena;
    struct shard *of; /* names in them are those of the graph */
    int count;
    size_t capacity;
};

enum status shards_add(struct shards *shards, const struct shard *shard, struct error *err);
void shards_release(struct shards *shards);
/* Whether some shard is in the state of this name. */
bool shards_in(const struct shards *shards, const char *state);

/* The first contents of all parts of this rank. */
enum status shards_fill(const struct shards *shards, struct exe *exe, struct error *err);
/* This rank's part of the whole tensor. */
void shard_take(const struct shard *shard, struct exe *exe, const void *whole);
/* All ranks call it; rank 0 gets the whole, for the others it is NULL. */
enum status shard_gather(const struct shard *shard, struct exe *exe, void *whole,
                         struct error *err);

#endif
