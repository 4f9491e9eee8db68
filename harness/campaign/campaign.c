/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/campaign/campaign.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system/clock.h"
#include "base/system/hash.h"
#include "base/text/utc.h"
#include "harness/campaign/campaign_state.h"
#include "harness/campaign/claim.h"
#include "harness/campaign/settings.h"
#include "harness/machine/environment.h"
#include "harness/machine/redact.h"
#include "harness/roofs/ceilings.h"
#include "harness/roofs/device_ceilings.h"

enum { SEEDS = 1000000 };

/* ---- the store, which must not cost what was measured ---- */

/* The database cannot be written any more: further results go into a file of their own, which the
 * next writer merges. */
static enum status begin_run(struct campaign *c, struct error *err);

static enum status fall_back(struct campaign *c, struct error *err)
{
    struct error why = *err;
    struct store *spool;
    if (store_open_spool(c->options->db, c->result->uuid, &spool, err) != STATUS_OK)
        return error_context(err, "%s; nor can results be kept apart", why.message);
    struct run_found found;
    store_close(c->store);
    c->store = spool;
    snprintf(c->result->spool, sizeof(c->result->spool), "%s", store_path(spool));
    snprintf(c->result->note, sizeof(c->result->note), "%.500s", why.message);
    TRY(run_find_uuid(spool, c->result->uuid, &found, err));
    c->run = found.run; /* when the spool itself failed for a while */
    return c->run ? STATUS_OK : begin_run(c, err);
}

/* What the caller wrote may also name homes and people. */
static enum status redact_head(struct campaign *c, struct run_head *head, struct error *err)
{
    const char **texts[] = {&head->command, &head->suite, &head->suite_text};
    if (c->options->redact)
        for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++) {
            *texts[k] = redact_lines(*texts[k], &c->arena);
            if (!*texts[k])
                return FAIL_NO_MEMORY(err);
        }
    return STATUS_OK;
}

static enum status begin_run(struct campaign *c, struct error *err)
{
    char *started = arena_alloc(&c->arena, UTC_TEXT);
    if (!started)
        return FAIL_NO_MEMORY(err);
    utc_now(started);
    struct run_head head = {.uuid = c->result->uuid,
                            .environment = &c->environment,
                            .build = &c->build,
                            .command = c->options->command,
                            .suite = c->plan->suite,
                            .suite_text = c->plan->suite_text,
                            .plan_hash = c->plan->hash,
                            .planned = c->plan->count,
                            .rounds = c->plan->rounds,
                            .order_seed = c->order_seed,
                            .started_utc = started,
                            .order_key = (int64_t)time(NULL),
                            .branch = "",
                            .tag = c->options->tag ? c->options->tag : ""};
    TRY(redact_head(c, &head, err));
    TRY(run_begin(c->store, &head, &c->run, err));
    TRY(settings_put(c, err));
    return run_put_facts(c->store, c->run, "before", &c->environment, err);
}

static enum status resume(struct campaign *c, struct error *err)
{
    struct run_found found;
    TRY(run_find_unfinished(c->store, c->plan->hash, &found, err));
    if (found.run)
        TRY(settings_check(c, &found, err));
    c->run = found.run;
    if (found.run) {
        memcpy(c->result->uuid, found.uuid, sizeof(found.uuid));
        c->order_seed = found.order_seed;
    }
    return STATUS_OK;
}

static enum status resume_or_begin(struct campaign *c, struct error *err)
{
    c->run = 0;
    if (c->options->resume)
        TRY(resume(c, err));
    if (!claim_run(c->result->uuid, &c->claim))
        return FAIL(err, STATUS_FAILED,
                    "the unfinished run %.8s is being measured by another process: wait until that "
                    "has ended, or begin anew without --resume",
                    c->result->uuid);
    if (c->options->resume && c->options->resumes)
        c->options->resumes(c->options->context, c->result->uuid, c->run != 0);
    return c->run ? STATUS_OK : begin_run(c, err);
}

static enum status open_store(struct campaign *c, struct error *err)
{
    if (!c->options->db)
        return STATUS_OK;
    enum status status = store_open(c->options->db, STORE_WRITE, &c->store, err);
    if (status != STATUS_OK)
        return status;
    const char *why, *left = store_spool_left(c->store, &why);
    if (*left && c->options->resume) /* what it holds would be measured again, and refused */
        return FAIL(
            err, STATUS_FAILED,
            "results of an earlier run are kept in %.200s and could not be taken into %.100s, so "
            "it is not known what is missing (%.200s). Take them in first, or begin anew "
            "without --resume",
            left, c->options->db, why);
    if (*left)
        snprintf(c->result->note, sizeof(c->result->note),
                 "results kept apart in %.200s could not be taken in: %.200s", left, why);
    return resume_or_begin(c, err);
}

enum status campaign_put(struct campaign *c, const struct record *record, struct error *err)
{
    if (!c->store)
        return STATUS_OK;
    if (run_put(c->store, c->run, record, err) == STATUS_OK)
        return STATUS_OK;
    TRY(fall_back(c, err));
    return run_put(c->store, c->run, record, err);
}

/* ---- devices that were lost ---- */

const char *campaign_why_lost(const struct campaign *c, const char *device)
{
    for (const struct lost_device *lost = c->lost; lost; lost = lost->next)
        if (strcmp(lost->device, device) == 0)
            return lost->why;
    return NULL;
}

/* `at`: the point where it happened. */
enum status campaign_note_lost(struct campaign *c, const char *device, const char *at,
                               const struct error *how, struct error *err)
{
    struct lost_device *lost = arena_alloc(&c->arena, sizeof(*lost));
    char *why = arena_printf(&c->arena, "not run: at %s %s", at, how->message);
    if (!lost || !why)
        return FAIL_NO_MEMORY(err);
    *lost = (struct lost_device){.device = device, .why = why, .next = c->lost};
    c->lost = lost;
    snprintf(c->result->note, sizeof(c->result->note), "the rest of %s is %.450s", device, why);
    return STATUS_OK;
}

/* ---- ceilings ---- */

static bool is_first_on_device(const struct plan *plan, int k)
{
    const struct point *point = &plan->points[k];
    if (point->skip || !point_has_device(point))
        return false;
    for (int i = 0; i < k; i++)
        if (!plan->points[i].skip && strcmp(plan->points[i].device, point->device) == 0)
            return false;
    return true;
}

static enum status join_ceilings(struct campaign *c, const struct ceiling_list *more,
                                 struct error *err)
{
    struct ceiling_list *list = &c->ceilings;
    struct ceiling_record *all =
        arena_array(&c->arena, (size_t)(list->count + more->count), sizeof(*all));
    if (!all)
        return FAIL_NO_MEMORY(err);
    memcpy(all, list->records, (size_t)list->count * sizeof(*all));
    memcpy(all + list->count, more->records, (size_t)more->count * sizeof(*all));
    *list = (struct ceiling_list){all, list->count + more->count};
    return STATUS_OK;
}

/* A ceiling that failed is a record with its reason; only the device itself reports that it is
 * lost.
 */
static enum status check_device(struct campaign *c, const char *name, struct error *err)
{
    struct device device;
    struct error how = {0};
    if (device_open(name, &device, &how) == STATUS_LOST)
        return campaign_note_lost(c, name, "its ceilings", &how, err);
    device_close(&device);
    return STATUS_OK;
}

/* Ceilings of every other device that the plan uses. For one that cannot be opened its points give
 * the reason. */
static enum status measure_devices(struct campaign *c, struct error *err)
{
    const struct ceiling_options options = {.quick = true};
    for (int k = 0; k < c->plan->count; k++) {
        struct ceiling_list more;
        struct error why = {0};
        const char *device = c->plan->points[k].device;
        if (!is_first_on_device(c->plan, k))
            continue;
        progress_show(&c->progress, device, NAN, NAN);
        if (device_ceilings_measure(device, &options, &c->arena, &more.records, &more.count,
                                    &why) == STATUS_OK)
            TRY(join_ceilings(c, &more, err));
        else if (!c->result->note[0])
            snprintf(c->result->note, sizeof(c->result->note), "no ceilings of %s: %.400s", device,
                     why.message);
        TRY(check_device(c, device, err));
    }
    return STATUS_OK;
}

static enum status measure_host(struct campaign *c, struct ceiling_list *list, struct error *err)
{
    struct ceiling_options options = {.isa = isa_detect(), .quick = true};
    struct pool *pool;
    progress_point(&c->progress, 0, "machine");
    progress_show(&c->progress, "measuring its ceilings", NAN, NAN);
    TRY(pool_new((int)c->options->model->threads, &pool, err));
    enum status status =
        ceilings_measure(pool, &options, &c->arena, &list->records, &list->count, err);
    pool_free(pool);
    return status;
}

static enum status measure_ceilings(struct campaign *c, struct error *err)
{
    struct ceiling_list *list = &c->ceilings;
    if (!c->store || !c->plan->ceilings)
        return STATUS_OK;
    enum status status = measure_host(c, list, err);
    if (status == STATUS_OK)
        status = measure_devices(c, err);
    if (status == STATUS_OK)
        status = run_put_ceilings(c->store, c->run, list->records, list->count, err);
    return status;
}

/* A virtual machine whose CPUs shared a core at the start of the run has ceilings of half its
 * speed, above which everything lies. So they are measured again where a burst beside the samples
 * was faster, and the higher ones count. */
static enum status renew_ceilings(struct campaign *c, struct error *err)
{
    struct ceiling_list again;
    if (!c->ceilings_low || c->result->interrupted)
        return STATUS_OK;
    TRY(measure_host(c, &again, err));
    struct ceiling_record *list = arena_array(&c->arena, (size_t)again.count, sizeof(*list));
    if (!list)
        return FAIL_NO_MEMORY(err);
    memcpy(list, c->ceilings.records, (size_t)again.count * sizeof(*list)); /* devices come after */
    ceilings_take_higher(list, again.records, again.count);
    return run_put_ceilings(c->store, c->run, list, again.count, err);
}

/* ---- the end ---- */

/* A machine whose settings change during a run makes its numbers incomparable. */
static enum status finish(struct campaign *c, struct error *err)
{
    struct environment after;
    char reason[512] = "", changes[400];
    if (!c->store)
        return STATUS_OK;
    TRY(environment_probe(&after, &c->arena, c->options->redact, err));
    c->result->changed = strcmp(after.hash, c->environment.hash) != 0;
    if (c->result->changed) {
        environment_changes(&c->environment, &after, changes, sizeof(changes));
        snprintf(reason, sizeof(reason), "the environment changed while the run went on: %s",
                 changes);
    }
    if (c->result->changed && !c->result->note[0])
        snprintf(c->result->note, sizeof(c->result->note), "the run is invalid: %.480s", reason);
    TRY(run_put_facts(c->store, c->run, "after", &after, err));
    return run_end(c->store, c->run, !c->result->interrupted, !c->result->changed, reason, err);
}

static enum status probe(struct campaign *c, struct error *err)
{
    TRY(environment_probe(&c->environment, &c->arena, c->options->redact, err));
    return build_probe(&c->build, &c->arena, err);
}

enum status campaign_run(const struct plan *plan, const struct campaign_options *options,
                         struct campaign_result *result, struct error *err)
{
    struct campaign c = {.plan = plan, .options = options, .result = result, .claim = -1};
    *result = (struct campaign_result){.note = ""};
    uuid_make(result->uuid);
    /* Without a given seed any will do; it is short enough to be typed. */
    c.order_seed = plan->order_seed.given ? plan->order_seed.value
                                          : (int64_t)(hash_fnv1a(result->uuid) % SEEDS);
    c.began_ns = clock_now_ns();
    progress_begin(&c.progress, plan->count, options->quiet);
    enum status status = probe(&c, err);
    if (status == STATUS_OK)
        status = open_store(&c, err);
    if (status == STATUS_OK)
        status = measure_ceilings(&c, err);
    if (status == STATUS_OK)
        status = campaign_visit_all(&c, err);
    if (status == STATUS_OK)
        status = renew_ceilings(&c, err);
    progress_clear(&c.progress);
    if (status == STATUS_OK)
        status = finish(&c, err);
    store_close(c.store);
    claim_release(c.claim);
    arena_release(&c.arena);
    return status;
}
