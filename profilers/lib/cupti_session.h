/* SPDX-License-Identifier: Apache-2.0
 *
 * What the profilers that need CUPTI have in common: finding the plug-in and the device, and, for
 * those that count, the functions of struct profiler. RIDGE_CUPTI names another libcupti.
 */
#ifndef PROFILERS_LIB_CUPTI_SESSION_H
#define PROFILERS_LIB_CUPTI_SESSION_H

#include "profilers/lib/gpu_counting.h"

struct cupti_session {
    struct arena arena;
    const struct cupti_backend *backend;
    struct cupti *cupti;
    char chip[CUPTI_CHIP];
    struct gpu_counting *counting; /* NULL: a trace */
    double flops;                  /* that the model expects */
    bool saw_none;                 /* and not one was counted */
};

/* Of CUPTI: what the plug-in was compiled for, and what it opens; 0: there is none. */
void cupti_session_versions(int *built, int *opened);
bool cupti_session_available(enum cupti_use use, char *reason, size_t size);
/* Attaches to the device of the model; one that is no GPU is refused. */
enum status cupti_session_attach(const struct profiler_model *model, enum cupti_use use,
                                 struct cupti_session *session, struct error *err);
void cupti_session_detach(struct cupti_session *session);

/* For struct profiler; a session is a struct cupti_session. */
enum status cupti_session_open(const struct profiler_model *model, enum cupti_use use,
                               void **session, struct error *err);
int cupti_session_passes(const void *session);
enum status cupti_session_begin(void *session, int pass, struct error *err);
enum status cupti_session_end(void *session, int pass, int64_t executions, struct error *err);
int cupti_session_read(void *session, struct profiler_metric *metrics);
/* Where not one operation was seen in the whole, counts of operations are no counts: patching did
 * not reach the kernels. Takes their values away and returns count. */
int cupti_session_doubt(const struct cupti_session *session, struct profiler_metric *metrics,
                        int count);
void cupti_session_close(void *session);
/* attach, of which a session that was never opened is what it gives; and missed. */
enum status cupti_session_hold(const char *device, void **attached, struct error *err);
bool cupti_session_missed(const void *session);

#endif
