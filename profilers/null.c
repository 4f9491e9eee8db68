/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts nothing. The smallest profiler, and what a phase of counting costs by itself. */
#include <stdio.h>

#include "profilers/lib/profiler.h"

static bool null_available(char *reason, size_t size)
{
    snprintf(reason, size, "%s", "");
    return true;
}

static enum status null_open(const struct profiler_model *model, int threads, void **session,
                             struct error *err)
{
    (void)model;
    (void)threads;
    (void)err;
    *session = NULL; /* nothing to keep */
    return STATUS_OK;
}

static int null_passes(const void *session)
{
    (void)session;
    return 1;
}

static enum status null_begin(void *session, int pass, struct error *err)
{
    (void)session;
    (void)pass;
    (void)err;
    return STATUS_OK;
}

static enum status null_end(void *session, int pass, int64_t executions, struct error *err)
{
    (void)executions;
    return null_begin(session, pass, err);
}

static int null_read(void *session, struct profiler_metric *metrics)
{
    (void)session;
    (void)metrics;
    return 0;
}

static void null_close(void *session)
{
    (void)session;
}

REGISTER(profiler, null) = {
    .name = "null",
    .summary = "counts nothing",
    .available = null_available,
    .open = null_open,
    .passes = null_passes,
    .begin = null_begin,
    .end = null_end,
    .read = null_read,
    .close = null_close,
};
