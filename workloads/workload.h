/* SPDX-License-Identifier: Apache-2.0
 *
 * A workload builds the graph of one network. One file per workload, named after it; it reads like
 * the figure of its paper and stays under 250 lines. Blocks that several share are in
 * workloads/lib/. The smallest example is workloads/recommendation/ncf.c.
 *
 * On the command line a workload is NAME or NAME:param=value,param=value; a path that ends in .onnx
 * stands wherever a name may stand, with the sizes that the file leaves open as its parameters
 * (workloads/model_file.h).
 */
#ifndef WORKLOADS_WORKLOAD_H
#define WORKLOADS_WORKLOAD_H

#include "base/registry.h"
#include "engine/graph/graph.h"
#include "engine/graph/precision.h"

enum { PARAM_MAX = 12, PARAM_VALUE_MAX = 1 << 30 };

struct param {
    const char *name;
    const char *value;          /* default, as text */
    const char *const *choices; /* ends in NULL; NULL: a positive integer; param_text: any text */
    const char *help;
};

struct workload_config {
    int64_t batch;
    enum precision precision; /* f32 or one of the workload's precisions */
    bool loss;                /* the graph ends in the loss, to be trained or judged by */
    const struct param *params;
    const char *values[PARAM_MAX]; /* in the order of params */
};

struct training; /* workloads/training.h */

struct workload {
    const char *name;
    const char *domain; /* vision, recommendation, language, micro, synthetic */
    const char *task;   /* "image classification" */
    const char *summary;
    const char *source;         /* paper and where the details were read */
    const struct param *params; /* name NULL ends; NULL: none */
    const char *stated; /* the parameter that the name of a point says even where it is the default:
                           a part of a network does not go by the name of the whole; or NULL */
    int64_t table1_batch; /* batch of AI Matrix Table I; 0: it has no such row */
    int64_t batch;        /* default */
    bool batch_is_one;    /* the only one: its shapes say how many there are */
    unsigned precisions;  /* bits 1 << PRECISION_X that build knows beside f32 */
    /* Adds inputs, nodes and outputs; errors stick to the graph. */
    void (*build)(struct graph *g, const struct workload_config *config);
    const struct training *training; /* NULL: it learns nothing */
};

/* Choices of a parameter that is any text without commas, such as a path. */
extern const char *const param_text[];

int64_t config_int(const struct workload_config *config, const char *name);
const char *config_text(const struct workload_config *config, const char *name);
/* Whether the user set the parameter, be it to its default. */
bool config_given(const struct workload_config *config, const char *name);

/* Refuses a batch that a workload (NULL: a file, which says so itself) cannot have. */
enum status workload_batch_check(const struct workload *w, int64_t batch, struct error *why);

/* Whether a workload (NULL: a file) can run in the precision; host: on CPUs. The
 * compiler turns f32 into bf16; on devices into tf32 and f16, too, and reads a file's f8 factors
 * as f8. */
bool workload_has_precision(const struct workload *w, enum precision precision, bool host);
/* Whether the graph itself is another one in the precision than in f32; f32 always is. */
bool workload_builds_in(const struct workload *w, enum precision precision);

int workload_count(void);
const struct workload *workload_at(int index);
const struct workload *workload_find(const char *name);
const struct workload *workload_of(const char *spec); /* of "NAME:..."; NULL: a file, or unknown */
bool workload_is_file(const char *spec);              /* workloads/model_file.h */

/* "resnet50:version=1.5" or "model.onnx:sequence=128" -> a checked graph. batch 0: the workload's
 * default (for a file: what its symbolic first dimension is set to, 1). A workload that does not
 * build in the precision builds in f32. */
enum status workload_open(const char *spec, int64_t batch, enum precision precision,
                          struct graph **out, struct error *err);

#endif
