/* SPDX-License-Identifier: Apache-2.0
 *
 * How a workload is trained (struct workload, .training): the graph of its loss, its published
 * recipe, and the data that it learns from. It stands in the workload's file; the smallest example
 * is workloads/recommendation/ncf.c. */
#ifndef WORKLOADS_TRAINING_H
#define WORKLOADS_TRAINING_H

#include "engine/train/train.h"
#include "workloads/workload.h"

/* Which samples are wanted of a data set. Samples are numbered; sample k of a seed is the same in
 * every batch that it is part of, whatever else is in it. */
struct batch {
    const struct graph *graph; /* what is trained: its inputs say names, types and shapes */
    void *const *data;         /* per graph input: what is to be filled, plain; NULL: nothing */
    uint64_t seed;
    int64_t first, size; /* samples [first, first + size) */
    bool held_out;       /* of those that training never sees */
};

struct training {
    /* Adds inputs, targets, network and loss. The loss, one number, is the first output; what the
     * quality is judged by follows it. g->training is set. */
    void (*build)(struct graph *g, const struct workload_config *config);
    const struct recipe *recipe;
    /* Made-up samples with something to be learnt: what they follow is said in .lesson. */
    void (*fill)(const struct batch *batch);
    const char *lesson; /* "ratings of hidden factors of 8 dimensions" */
    const char *tiny;   /* parameters with which it learns within seconds: "width=8,layers=2" */
    int64_t tiny_batch;
    double tiny_rate;   /* learning rate of that */
    int64_t tiny_steps; /* within so many steps the tiny form halves its loss */
};

/* The graph of the loss alone of a workload, "NAME:param=value". batch 0: the workload's.
 * *training: how it is trained; UNSUPPORTED where it is not. */
enum status workload_open_loss(const char *spec, int64_t batch, struct graph **out,
                               const struct training **training, struct error *err);
/* The graph of one step of training (engine/train/train.h) of that. */
enum status workload_open_training(const char *spec, int64_t batch,
                                   const struct train_options *options, struct graph **out,
                                   const struct training **training, struct error *err);

#endif
