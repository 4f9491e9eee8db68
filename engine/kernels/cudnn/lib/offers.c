/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kernels/cudnn/lib/offers.h"

#include <pthread.h>
#include <stdlib.h>

enum { KEPT = 8 };

static struct offer *kept[KEPT]; /* the one that was asked for last in front; each is a user */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void drop(struct offer *offer)
{
    if (!offer || --offer->users > 0)
        return;
    engines_free(&offer->engines);
    opgraph_free(&offer->graph);
    free(offer);
}

static bool answers(const struct offer *offer, const struct opgraph *g,
                    const struct engine_rule *rule)
{
    return offer->graph.hash == g->hash && offer->rule.device == rule->device &&
           offer->rule.exact == rule->exact && offer->rule.enough >= rule->enough;
}

static struct offer *find(const struct opgraph *g, const struct engine_rule *rule)
{
    for (int k = 0; k < KEPT; k++)
        if (kept[k] && answers(kept[k], g, rule))
            return kept[k];
    return NULL;
}

static void keep(struct offer *offer)
{
    drop(kept[KEPT - 1]);
    for (int k = KEPT - 1; k > 0; k--)
        kept[k] = kept[k - 1];
    kept[0] = offer;
    offer->users++;
}

static enum status ask(struct opgraph *g, const struct engine_rule *rule, struct offer **offer,
                       struct error *why)
{
    struct offer *made = calloc(1, sizeof(*made));
    if (!made)
        return cudnn_host->refuse(why, STATUS_NO_MEMORY, "out of memory");
    *made = (struct offer){.rule = *rule, .users = 1};
    enum status status = engines_find(g, rule, &made->engines, why);
    if (status != STATUS_OK) {
        free(made);
        return status;
    }
    opgraph_move(g, &made->graph);
    *offer = made;
    if (!made->engines.partial)
        keep(made);
    return STATUS_OK;
}

enum status offer_take(struct opgraph *g, const struct engine_rule *rule, struct offer **offer,
                       struct error *why)
{
    enum status status = STATUS_OK;
    pthread_mutex_lock(&lock);
    *offer = find(g, rule);
    if (*offer)
        (*offer)->users++;
    else
        status = ask(g, rule, offer, why);
    pthread_mutex_unlock(&lock);
    return status;
}

void offer_give_back(struct offer *offer)
{
    pthread_mutex_lock(&lock);
    drop(offer);
    pthread_mutex_unlock(&lock);
}

void offers_release(void)
{
    pthread_mutex_lock(&lock);
    for (int k = 0; k < KEPT; k++) {
        drop(kept[k]);
        kept[k] = NULL;
    }
    pthread_mutex_unlock(&lock);
}
