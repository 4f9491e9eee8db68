/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system/clock.h"
#include "collective/plugin.h"
#include "collective/plugins/nccl/nccl_backend.h"

enum {
    LOOK_EVERY = 32,       /* attempts between two looks at the clock */
    AWAKE_NS = 500 * 1000, /* before this rank sleeps between attempts */
    SLEEP_NS = 50 * 1000,
    CAUSE_NS = 1000 * 1000 * 1000 /* in which the cause of another rank's failure becomes known */
};

/* All ranks of a machine take its first GPU: what NCCL refuses unless each is a host of its own. */
#define SHARE "RIDGE_NCCL_SHARE"

/* ---- failures ---- */

void nccl_give_up(struct link *link)
{
    struct link_state *state = link->state;
    if (state->comm)
        state->nccl.abort(state->comm);
    state->comm = NULL;
}

/* What failed first, where somebody has said so. A rank that is gone leaves its peers with a broken
 * connection before anybody has: then that is waited for. */
static void find_cause(struct link *link, bool gone, struct error *err)
{
    const struct link *control = &link->state->control;
    uint64_t limit_ns = link->group->options.deadline_ns / 2;
    uint64_t end = clock_now_ns() + (limit_ns < CAUSE_NS ? limit_ns : CAUSE_NS);
    struct awaited awaited = {.peer = NOBODY};
    struct error cause = {0};
    for (unsigned idle = 0; idle == 0 || (gone && clock_now_ns() < end); idle++) {
        if (control->backend->wait(&link->state->control, idle, &awaited, &cause) != STATUS_OK) {
            *err = cause;
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    }
}

enum status nccl_check(struct link *link, ncclResult_t result, const char *call, struct error *err)
{
    const struct nccl_api *nccl = &link->state->nccl;
    struct error own = {0};
    if (result == ncclSuccess || result == ncclInProgress)
        return STATUS_OK;
    const char *more = nccl->last_error(link->state->comm);
    FAIL(&own, STATUS_FAILED, "rank %d: %s: %s%s%.200s", link->rank, call, nccl->error_text(result),
         more && *more ? ": " : "", more ? more : "");
    for (char *at = own.message; *at; at++)
        *at = *at == '\n' ? ' ' : *at;
    find_cause(link, result == ncclRemoteError, &own);
    nccl_give_up(link);
    *err = own;
    return own.code;
}

enum status nccl_look(struct link *link, bool *settled, struct error *err)
{
    struct link_state *state = link->state;
    ncclResult_t now = ncclSuccess;
    *settled = false;
    if (!state->comm)
        return FAIL(err, STATUS_FAILED, "rank %d has left the communicator", link->rank);
    TRY(nccl_check(link, state->nccl.state(state->comm, &now), "ncclCommGetAsyncError", err));
    TRY(nccl_check(link, now, "the communicator", err));
    *settled = now == ncclSuccess;
    return STATUS_OK;
}

static enum status nccl_wait(struct link *link, unsigned idle, const struct awaited *awaited,
                             struct error *err)
{
    struct link_state *state = link->state;
    enum status status = state->control.backend->wait(&state->control, idle, awaited, err);
    if (status != STATUS_OK) {
        nccl_give_up(link);
        return status;
    }
    if (idle % LOOK_EVERY == 0) {
        bool settled;
        uint64_t now = clock_now_ns();
        TRY(nccl_look(link, &settled, err));
        state->since_ns = idle == 0 ? now : state->since_ns;
        state->sleeps = now - state->since_ns > AWAKE_NS;
    }
    if (state->sleeps)
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    else
        sched_yield();
    return STATUS_OK;
}

enum status nccl_settle(struct link *link, uint32_t operation, struct error *err)
{
    struct awaited awaited = {.peer = NOBODY, .call = operation};
    for (unsigned idle = 0;; idle++) {
        bool settled;
        TRY(nccl_look(link, &settled, err));
        if (settled)
            return STATUS_OK;
        TRY(nccl_wait(link, idle, &awaited, err));
    }
}

/* ---- groups ---- */

static enum status group_new(int ranks, const struct group_options *options, struct group **out,
                             struct error *err)
{
    struct group *group = calloc(1, sizeof(*group));
    if (!group)
        return FAIL_NO_MEMORY(err);
    *group = (struct group){.options = *options, .ranks = ranks};
    enum status status = options->control->group_new(ranks, options, &group->control, err);
    if (status != STATUS_OK)
        free(group);
    else
        *out = group;
    return status;
}

static void group_free(struct group *group)
{
    if (group)
        group->options.control->group_free(group->control);
    free(group);
}

static void announce(struct group *group, int rank, const char *text)
{
    group->options.control->announce(group->control, rank, text);
}

/* ---- links ---- */

static enum status open_control(struct link *link, struct error *err)
{
    struct group *group = link->group;
    struct link *control = &link->state->control;
    *control = (struct link){
        .backend = group->options.control, .group = group->control, .rank = link->rank};
    TRY(control->backend->open(control, err));
    link->rank = control->rank;
    link->ranks = control->ranks;
    return STATUS_OK;
}

/* A launcher may show to each rank no GPU but its own. Where it is that of another rank, too, NCCL
 * refuses it. */
static bool sees_one(void)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    return visible && *visible && !strchr(visible, ',');
}

static enum status open_device(struct link *link, int index, struct error *err)
{
    struct link_state *state = link->state;
    char name[32];
    snprintf(name, sizeof(name), "cuda:%d", getenv(SHARE) || sees_one() ? 0 : index);
    if (link->group->options.device_open(name, &state->device, err) != STATUS_OK)
        return error_context(err, "rank %d takes a GPU of its own", link->rank);
    TRY(state->device.kind->bind(&state->device, err));
    return state->device.kind->stream_new(&state->device, &state->stream, err);
}

static enum status connect_ranks(struct link *link, const ncclUniqueId *id, struct error *err)
{
    struct link_state *state = link->state;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclResult_t result =
        state->nccl.init_rank(&state->comm, link->ranks, *id, link->rank, &config);
    TRY(nccl_check(link, result, "ncclCommInitRankConfig", err));
    return nccl_settle(link, 0, err);
}

/* Before NCCL is asked for anything: it looks once. */
static enum status name_host(const struct link *link, struct error *err)
{
    char host[32];
    snprintf(host, sizeof(host), "rank%d", link->rank);
    return !getenv(SHARE) || setenv("NCCL_HOSTID", host, 1) == 0 ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status open_all(struct link *link, struct error *err)
{
    struct meeting meeting = {.device = 0};
    TRY(nccl_api_open(&link->state->nccl, err));
    TRY(open_control(link, err));
    TRY(name_host(link, err));
    TRY(nccl_meet(link, &meeting, err));
    TRY(open_device(link, meeting.device, err));
    return connect_ranks(link, &meeting.id, err);
}

/* Destroying a communicator may wait for its ranks; aborting it does not. */
static void disconnect(struct link *link)
{
    struct link_state *state = link->state;
    struct error ignored = {0};
    if (!state->comm)
        return;
    bool well = nccl_check(link, state->nccl.finalize(state->comm), "ncclCommFinalize", &ignored) ==
                    STATUS_OK &&
                nccl_settle(link, 0, &ignored) == STATUS_OK;
    if (well)
        state->nccl.destroy(state->comm);
    state->comm = NULL;
}

static void close_device(struct link *link)
{
    struct link_state *state = link->state;
    const struct device_kind *kind = state->device.kind;
    if (!kind)
        return;
    kind->bind(&state->device, NULL);
    for (struct pinned *next, *p = state->pinned; p; p = next) {
        next = p->next;
        kind->free_host(&state->device, p->memory);
        free(p);
    }
    if (state->stream)
        kind->stream_free(&state->device, state->stream);
    link->group->options.device_close(&state->device);
}

static void close_link(struct link *link)
{
    struct link_state *state = link->state;
    if (!state)
        return;
    disconnect(link);
    close_device(link);
    if (state->control.state)
        state->control.backend->close(&state->control);
    free(state);
    link->state = NULL;
}

static enum status open_link(struct link *link, struct error *err)
{
    link->state = calloc(1, sizeof(*link->state));
    if (!link->state)
        return FAIL_NO_MEMORY(err);
    enum status status = open_all(link, err);
    if (status != STATUS_OK) {
        nccl_give_up(link);
        close_link(link);
    }
    return status;
}

static void *pinned_memory(struct link *link, size_t bytes)
{
    struct link_state *state = link->state;
    struct pinned *p = calloc(1, sizeof(*p));
    bool well =
        p && state->device.kind->bind(&state->device, NULL) == STATUS_OK &&
        state->device.kind->alloc_host(&state->device, bytes, &p->memory, NULL) == STATUS_OK;
    if (!well) {
        free(p);
        return NULL;
    }
    p->next = state->pinned;
    state->pinned = p;
    return p->memory;
}

static void version(char *text, size_t size)
{
    struct nccl_api nccl;
    struct error ignored;
    text[0] = '\0';
    if (nccl_api_open(&nccl, &ignored) == STATUS_OK)
        nccl_version_text(&nccl, text, size);
}

static const struct backend backend = {
    .name = "nccl",
    .summary = "whole operations of NCCL between GPUs",
    .separate = true,
    .for_measures = true,
    .device = "cuda",
    .own = &nccl_own,
    .version = version,
    .group_new = group_new,
    .group_free = group_free,
    .announce = announce,
    .memory = pinned_memory,
    .open = open_link,
    .close = close_link,
    .wait = nccl_wait,
};

const struct backend_plugin *ridge_backend(struct error *why)
{
    static const struct backend_plugin plugin = {BACKEND_ABI, &backend};
    struct nccl_api nccl;
    return nccl_api_open(&nccl, why) == STATUS_OK ? &plugin : NULL;
}
