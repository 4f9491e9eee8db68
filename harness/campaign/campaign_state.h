/* SPDX-License-Identifier: Apache-2.0
 *
 * For harness/campaign*.c alone: a campaign at work. */
#ifndef HARNESS_CAMPAIGN_CAMPAIGN_STATE_H
#define HARNESS_CAMPAIGN_CAMPAIGN_STATE_H

#include "harness/campaign/campaign.h"
#include "harness/campaign/point_run.h"
#include "harness/roofs/levels.h"
#include "harness/roofs/peak.h"
#include "results/store.h"

/* A device that was lost: nothing else can run on it until the process ends. */
struct lost_device {
    const char *device, *why;
    struct lost_device *next;
};

struct campaign {
    const struct plan *plan;
    const struct campaign_options *options;
    struct campaign_result *result;
    struct arena arena; /* of the whole campaign */
    struct environment environment;
    struct build_record build;
    struct store *store; /* NULL: nothing is stored */
    int64_t run, order_seed;
    int claim; /* harness/campaign/claim.h */
    struct ceiling_list ceilings;
    bool ceilings_low; /* a burst beside samples was faster */
    struct progress progress;
    struct lost_device *lost;
    struct levels *levels; /* NULL: there was no memory for them */
    uint64_t began_ns;
};

/* ---- campaign.c ---- */

enum status campaign_put(struct campaign *c, const struct record *record, struct error *err);
/* NULL: it was not. */
const char *campaign_why_lost(const struct campaign *c, const char *device);
/* `at`: the point where it happened. */
enum status campaign_note_lost(struct campaign *c, const char *device, const char *at,
                               const struct error *how, struct error *err);

/* ---- campaign_rounds.c ---- */

/* All points, round by round. */
enum status campaign_visit_all(struct campaign *c, struct error *err);

#endif
