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
    float *bayes;        /* per sample: see training.bayes; NULL: not wanted */
};

/* Inputs of a graph that batches give: not its states, nor the learning rate. */
bool batch_gives(const struct graph *graph, int input);
/* The memory of an input of that name; NULL: it is not wanted, or not there. */
void *batch_input(const struct batch *batch, const char *name);

/* What a network answered about held-out samples, and what is true of them, row after row. */
struct judged {
    const float *answers;
    const void *targets;
    enum dtype target_type;
    int64_t answer_count, target_count; /* of a class: as many answers as there are classes */
};

/* How good answers are; the larger, the better. NAN: these samples do not say. */
struct quality {
    const char *name; /* "AUC" */
    double (*of)(const struct judged *judged);
    const struct quality *also; /* a second one, of the same answers; NULL: none */
};

extern const struct quality quality_auc; /* floats that say 0 or 1; one answer each */
extern const struct quality
    quality_accuracy; /* integers: of a row's answers the largest; below 0: not asked */
extern const struct quality quality_share; /* answers that say themselves how many are right */

struct training {
    /* Adds inputs, targets, network and loss. The loss, the mean over the batch, is the first
     * output; what the quality is judged by follows it. g->training says whether it learns, or is
     * judged by held-out samples. NULL: struct workload's .build does it where config->loss. */
    void (*build)(struct graph *g, const struct workload_config *config);
    const struct recipe *recipe;
    /* Made-up samples with something to be learnt: what they follow is said in .lesson. */
    void (*fill)(const struct batch *batch);
    const struct quality *quality; /* NULL: the loss alone is judged by */
    const char *answers, *targets; /* names of the output and the input that it compares */
    /* Whether .fill says, too, how probable a target of 1 is to one who knows how samples are made
     * and sees a sample's inputs: no answers can be better. */
    bool bayes;
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
/* The same for samples that are held out: nothing is learnt, and weights are states, to be copied
 * from those of a training. */
enum status workload_open_judged(const char *spec, int64_t batch, struct graph **out,
                                 const struct training **training, struct error *err);
/* The graph of one step of training (engine/train/train.h) of that. Inputs hold a first batch. */
enum status workload_open_training(const char *spec, int64_t batch,
                                   const struct train_options *options, struct graph **out,
                                   const struct training **training, struct error *err);
/* The same without the samples of a first batch, which take as long to make as there are. */
enum status workload_open_step(const char *spec, int64_t batch, const struct train_options *options,
                               struct graph **out, const struct training **training,
                               struct error *err);

#endif
