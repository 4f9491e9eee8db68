/* SPDX-License-Identifier: Apache-2.0
 *
 * A training: the step graph of a workload compiled, run as often as wanted on batches that are
 * read ahead, and its weights judged by samples that were held out.
 *
 * Ranks that learn together (job.model.comm) have a trainer each, of the same job: each takes its
 * part of every step's samples, `model.batch` of them, so that N ranks see what one rank with N
 * times the batch would. Losses are those of all; the first rank writes checkpoints; none judges.
 *
 * Life cycle: trainer_open (slow: compiles); trainer_run once; trainer_close. */
#ifndef HARNESS_TRAIN_TRAINER_H
#define HARNESS_TRAIN_TRAINER_H

#include "engine/train/train.h"
#include "harness/model/model_options.h"
#include "harness/train/reader.h"

enum { TRAIN_SIZES = 16 };

/* Images of one height and width for so many epochs, or steps where samples are made up. */
struct train_size {
    int64_t image, count;
};

struct train_job {
    const char *spec;
    struct model_options model;
    struct recipe recipe;     /* schedule.steps: of the whole training */
    uint64_t seed;            /* of samples, and of first weights where it is not 0 */
    int64_t eval_every;       /* steps; 0: at the end only */
    bool eval_epochs;         /* at the end of each epoch; of made-up samples: of each tenth */
    double until;             /* ends once the quality is so high; NAN: does not */
    const char *data;         /* "PATH" or "FORMAT:PATH" (workloads/data/data.h); NULL: made up */
    enum letter_case letters; /* of text in it */
    int64_t epochs;           /* in place of schedule.steps; 0: as that says */
    int reader_threads;       /* 0 as 1 */
    double read_limit;        /* bytes/s; 0: none */
    struct train_size sizes[TRAIN_SIZES]; /* one after the other, in place of schedule.steps */
    int size_count;                       /* 0: the size that spec says */
    const char *save;                     /* checkpoint to write; NULL: none */
    int64_t save_every;                   /* steps; 0: at the end only */
    const char *resume;    /* checkpoint to go on from; NULL: none. Its seed replaces this one */
    int64_t micro_batches; /* equal parts of the batch, one execution each, after which the weights
                              move by the mean of their gradients; 0 as 1 */
    bool sync_norms;    /* with model.comm: statistics of batch normalisations are those of all */
    int64_t unit_bytes; /* with model.comm: of gradients that travel together; 0: as usual */
    const char *wire;   /* with model.comm: "f16" or "bf16", as what gradients cross, or NULL */
    enum table_strategy tables; /* with model.comm: of embedding tables */
    bool part_updates; /* with model.comm: each rank has its part of the optimiser's state */
};

/* What held-out samples say. */
struct train_judgement {
    int64_t step; /* after so many */
    double loss;
    double quality;   /* NAN: this workload is judged by its loss alone */
    double also;      /* the quality's second one */
    double bayes;     /* the quality of the best answers that there can be; NAN: not known */
    double epoch;     /* so many were made; of made-up samples each tenth of the training is one */
    uint64_t time_ns; /* of the steps until then */
};

struct train_result {
    int64_t first;                        /* steps that a checkpoint had made before */
    int64_t steps;                        /* that were made, those included */
    double *losses;                       /* one per step from `first` on; owned by the trainer */
    const struct train_judgement *judged; /* owned by the trainer */
    int judged_count;
    uint64_t time_ns;      /* of all steps, waiting included; without held-out samples */
    uint64_t waited_ns;    /* of that, for input */
    int64_t batch;         /* of all ranks */
    int64_t epoch_samples; /* of a data set; 0: samples are made up */
    int64_t read_bytes;    /* of files; of samples that are made up: of what was made */
    size_t arena_bytes;    /* for activations, gradients and scratch, as planned */
    bool reached;          /* what the job's .until asks for */
};

/* Share of the time of the steps in which they waited for input; NAN: there were none. */
double train_input_wait(const struct train_result *result);
/* The class of what limits a training whose steps waited for more than this share: "input". */
#define TRAIN_INPUT_BOUND 0.1

/* How far it is. losses[steps - first - 1] is the last one; judged may be of earlier steps. */
struct train_progress {
    const struct train_result *so_far;
    int64_t steps; /* wanted */
    double rate;
};

/* After each step; false ends the training. */
typedef bool train_watch(void *context, const struct train_progress *progress);

struct trainer;

/* The job of a workload and its recipe. tiny: its small form, which learns within seconds. *spec is
 * allocated: free it. */
enum status train_job_of(const char *spec, bool tiny, struct train_job *job, char **owned_spec,
                         struct error *err);

/* "128:10,192:10,224:5" */
enum status train_sizes_parse(const char *text, struct train_job *job, struct error *err);

/* --optimiser: another one in the place of the recipe's, with its usual parameters; NULL: none. */
enum status train_optimiser_parse(const char *name, struct recipe *recipe, struct error *err);

/* "keep" or "lower": what --letter-case says of the job's data; NULL: nothing. */
enum status train_letters_parse(const char *text, struct train_job *job, struct error *err);

enum status trainer_open(const struct train_job *job, struct trainer **out, struct error *err);
/* INVALID where a loss is not a finite number. What was reached stands in *result in any case. */
enum status trainer_run(struct trainer *trainer, train_watch *watch, void *context,
                        struct train_result *result, struct error *err);
const struct training *trainer_of(const struct trainer *trainer);
const struct graph *trainer_graph(const struct trainer *trainer); /* of the step at work */
/* What judgements hold; NULL: nothing but the loss. */
const struct quality *trainer_quality(const struct trainer *trainer);
int64_t trainer_steps(const struct trainer *trainer); /* of the whole training */
/* Where samples come from; .format NULL: they are made up. */
const struct data_place *trainer_place(const struct trainer *trainer);
/* What is read of it; NULL: nothing, for samples are made up, or the network itself holds it. */
const struct data_set *trainer_data(const struct trainer *trainer);
struct exe *trainer_exe(struct trainer *trainer);
/* Of which states this rank has a part. */
const struct shards *trainer_shards(const struct trainer *trainer);
void trainer_close(struct trainer *trainer);

#endif
