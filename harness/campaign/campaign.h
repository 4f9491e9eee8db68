/* SPDX-License-Identifier: Apache-2.0
 *
 * harness/campaign: a plan at work. It visits every point, round by round, turns what was measured
 * into records, and stores them. A campaign is one run of a plan.
 *
 * Runs a plan, in rounds: the first visit of a point opens, verifies, times, times the steps and
 * counts; later ones time again. A point that fails becomes a record with its reason, and the plan
 * goes on. Its record is on disk after every visit; a killed campaign goes on with `resume`.
 */
#ifndef HARNESS_CAMPAIGN_CAMPAIGN_H
#define HARNESS_CAMPAIGN_CAMPAIGN_H

#include "harness/campaign/progress.h"
#include "harness/campaign/record.h"
#include "harness/model/model_options.h"
#include "harness/suite/plan.h"
#include "results/record.h"

/* Called after the last visit of each point, in the order of the plan; the record lives until it
 * returns. Its samples may be gone by then. */
typedef void campaign_listener(void *context, const struct point *point,
                               const struct record *record);

struct campaign_options {
    const struct model_options *model; /* options of the command line, for all points */
    const char *db;                    /* NULL: nothing is stored */
    const char *tag, *command;
    bool resume, quiet, redact;
    campaign_listener *listener;
    /* With resume, before anything is measured: the run that is continued, or a new one because
     * there was none. May be NULL. */
    void (*resumes)(void *context, const char *uuid, bool found);
    void *context;
    count_apart *apart; /* for what a profiler misses here; NULL: it stays missed */
};

struct campaign_result {
    char uuid[37];
    int ok, wrong, failed, skipped, invalid, resumed;
    int unasked;     /* points in whose time the reference kernel has a share that counts, unless it
                        was asked for by name */
    int over_budget; /* points that have less than was planned, or nothing */
    bool interrupted;
    bool lost;       /* a device was lost, so that what was planned for it after that was not run */
    bool changed;    /* the environment changed during the run: none of it may be ranked */
    char spool[300]; /* where the run is kept while the database cannot be written; else "" */
    char note[512];  /* what the caller should report: a spool was used ... */
};

enum status campaign_run(const struct plan *plan, const struct campaign_options *options,
                         struct campaign_result *result, struct error *err);

#endif
