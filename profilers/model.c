/* SPDX-License-Identifier: Apache-2.0
 *
 * What the graph says that one execution costs, counted on paper: docs/method.md has the rules. It
 * needs no execution, hence no pass. */
#include <stdio.h>
#include <stdlib.h>

#include "profilers/lib/profiler.h"

static bool model_available(char *reason, size_t size)
{
    snprintf(reason, size, "%s", "");
    return true;
}

static enum status model_open(const struct profiler_model *model, int threads, void **session,
                              struct error *err)
{
    (void)threads;
    struct profiler_model *copy = malloc(sizeof(*copy));
    if (!copy)
        return FAIL_NO_MEMORY(err);
    *copy = *model;
    *session = copy;
    return STATUS_OK;
}

static int model_passes(const void *session)
{
    (void)session;
    return 0;
}

static enum status model_begin(void *session, int pass, struct error *err)
{
    (void)session;
    return FAIL(err, STATUS_FAILED, "profiler model has no pass %d", pass);
}

static enum status model_end(void *session, int pass, int64_t executions, struct error *err)
{
    (void)executions;
    return model_begin(session, pass, err);
}

static int model_read(void *session, struct profiler_metric *metrics)
{
    const struct profiler_model *m = session;
    const struct profiler_metric all[] = {
        {"flops", "1", "sum over nodes", "", m->flops},
        {"macs", "1", "multiply-adds of products and convolutions", "", m->macs},
        {"transcendentals", "1", "calls of exp, log, tanh, erf, sqrt and divisions", "",
         m->transcendentals},
        {"bytes_compulsory", "B", "every tensor once", "", m->bytes_compulsory},
        {"bytes_streamed", "B", "inputs and outputs of every node", "", m->bytes_streamed},
    };
    for (int k = 0; k < ARRAY_COUNT(all); k++)
        metrics[k] = all[k];
    return ARRAY_COUNT(all);
}

REGISTER(profiler, model) = {
    .name = "model",
    .summary = "FLOPs and bytes counted on the graph",
    .always = true,
    .available = model_available,
    .open = model_open,
    .passes = model_passes,
    .begin = model_begin,
    .end = model_end,
    .read = model_read,
    .close = free,
};
