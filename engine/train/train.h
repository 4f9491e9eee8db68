/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_TRAIN_TRAIN_H
#define ENGINE_TRAIN_TRAIN_H

#include "engine/train/autodiff.h"
#include "engine/train/recipe.h"
#include "engine/train/shards.h"

/* Names of what train_step adds to the graph. */
#define TRAIN_RATE "learning_rate" /* an input, f32 scalar: written before each step */
#define TRAIN_STEP "step"          /* a state, i64 scalar: how many steps were made */

/* Embedding tables of ranks that learn together. */
enum table_strategy {
    TABLES_WHOLE, /* on each rank, and so are their gradients */
    TABLES_ROWS,  /* on each rank; gradients travel as rows, where these are fewer bytes */
    TABLES_SPLIT, /* each rank has some columns; of tables that are too narrow as with _ROWS */
};

struct train_options {
    bool recompute; /* activations are computed again instead of kept (engine/train/recompute.h) */
    int segments;   /* of that; 0: as many as save most */
    int micro_batches; /* gradients of so many executions are averaged before the weights move; 0 as
                          1: of one. Then TRAIN_STEP counts executions */
    bool gradients_as_outputs; /* "gradient.NAME" per weight, after the outputs of the graph; of
                                  ranks their sum */
    int ranks; /* that learn together, each by a batch of its own (engine/train/reduce.h): gradients
                  and loss are the means over all of them; 0 as 1 */
    int rank;  /* this one */
    bool sync_norms;    /* batch normalisations by all ranks' samples (engine/train/sync_norm.h) */
    int64_t unit_bytes; /* of gradients that travel together; 0: as usual */
    const char *wire;   /* "f16" or "bf16": as what gradients cross; NULL: as they are */
    enum table_strategy tables; /* engine/train/gather_rows.h, split_tables.h */
    bool part_updates;          /* moments by ranks (engine/train/part_updates.h) */
    struct shards *shards;      /* where something is split: gets what each rank has a part of */
};

/* Makes one step of training of a graph whose first output is the loss: the patterns that kernels
 * know are found, weights become states, and backward and update phases are added. Weights are its
 * parameters of floats but for statistics (struct op, .buffers). */
enum status train_step(struct graph *g, const struct recipe *recipe,
                       const struct train_options *options, struct error *err);

/* A part of that: what is drawn at random, masks of dropout for one, is what the rank's samples
 * would have drawn in the batch of all ranks. */
enum status train_draw_as_rank(struct graph *g, int ranks, int rank, struct error *err);

/* The state TRAIN_STEP, for layers that need it before train_step adds what changes it. */
int train_steps(struct graph *g);

/* The optimiser of a name; NULL: there is none. */
const struct op *optimiser_find(const char *name);

#endif
