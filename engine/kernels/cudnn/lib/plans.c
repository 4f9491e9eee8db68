/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/cudnn/lib/plans.h"

#include <pthread.h>
#include <stdlib.h>

static struct plan *plans;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct plan *find(const struct plan_wish *wish)
{
    for (struct plan *plan = plans; plan; plan = plan->next)
        if (plan->graph == wish->graph->hash && plan->engine == wish->engine &&
            plan->device == wish->device)
            return plan;
    return NULL;
}

static enum status plan_new(const struct plan_wish *wish, struct plan **out, struct error *why)
{
    struct plan *plan = calloc(1, sizeof(*plan));
    if (!plan)
        return cudnn_host->refuse(why, STATUS_NO_MEMORY, "out of memory");
    *plan = (struct plan){.graph = wish->graph->hash,
                          .engine = wish->engine,
                          .device = wish->device,
                          .compiled = wish->compiled,
                          .next = plans};
    enum status status =
        plan_make(wish->config, wish->chip, wish->handle, &plan->desc, &plan->workspace, why);
    if (status != STATUS_OK) {
        free(plan);
        return status;
    }
    *out = plans = plan;
    return STATUS_OK;
}

/* Under the lock also while it is compiled: who wants the same waits for it. */
enum status plan_take(const struct plan_wish *wish, struct plan **plan, struct error *why)
{
    enum status status = STATUS_OK;
    pthread_mutex_lock(&lock);
    *plan = find(wish);
    if (!*plan)
        status = plan_new(wish, plan, why);
    if (*plan)
        (*plan)->users++;
    pthread_mutex_unlock(&lock);
    return status;
}

static void drop_unused(bool compiled_too)
{
    struct plan **at = &plans;
    while (*at) {
        struct plan *plan = *at;
        if (plan->users > 0 || (plan->compiled && !compiled_too)) {
            at = &plan->next;
            continue;
        }
        *at = plan->next;
        desc_free(&plan->desc);
        free(plan);
    }
}

void plan_give_back(struct plan *plan)
{
    if (!plan)
        return;
    pthread_mutex_lock(&lock);
    plan->users--;
    drop_unused(false);
    pthread_mutex_unlock(&lock);
}

void plans_release(void)
{
    pthread_mutex_lock(&lock);
    drop_unused(true);
    pthread_mutex_unlock(&lock);
}
