/* SPDX-License-Identifier: Apache-2.0
 *
 * Two records of past trials, kept in the tuner's cache beside the winners.
 *
 * How often in a row a distrusted kernel lost clearly on steps of the same operator and window
 * (LIKE_OPERATOR): after CHANCES losses quick tunings no longer try it there, and a win sets the
 * count back. Trying such a kernel is expensive: it runs in a child process first and then again
 * here. Native kernels are cheap to try, and which of them wins depends on the size (Winograd loses
 * only on small images), so they are not counted.
 *
 * And which candidate was on trial when a device was lost: trying it again would lose it again. */
#include <math.h>
#include <stdio.h>

#include "base/system/hash.h"
#include "engine/compile/trial.h"
#include "engine/run/provider.h"

enum { CHANCES = 3 };
static const double clear_loss = 1.3; /* times the winner */

static uint64_t key_of(uint64_t operator_key, const struct kernel *kernel)
{
    return operator_key ^ hash_fnv1a(kernel->name) ^ provider_identity(kernel->provider);
}

bool record_is_hopeless(const struct trial *t, const struct kernel *kernel)
{
    const struct tune_entry *entry =
        kernel->distrusted ? tune_cache_find(t->cache, key_of(t->operator_key, kernel)) : NULL;
    return entry && entry->losses >= CHANCES;
}

void record_outcome(const struct trial *t, const struct candidate *winner)
{
    const struct step *step = t->step;
    for (int k = 0; k < step->candidate_count; k++) {
        const struct candidate *c = &step->candidates[k];
        if (!c->kernel->distrusted || c->reason[0] || !isfinite(c->time_ns) || c->time_ns <= 0)
            continue;
        uint64_t key = key_of(t->operator_key, c->kernel);
        const struct tune_entry *known = tune_cache_find(t->cache, key);
        bool lost = c->time_ns > clear_loss * winner->time_ns;
        struct tune_entry entry = {.key = key,
                                   .losses = lost ? (known ? known->losses : 0) + 1 : 0};
        snprintf(entry.kernel, sizeof(entry.kernel), "%s", c->kernel->name);
        tune_cache_put(t->cache, &entry);
    }
}

/* ---- losers of devices ---- */

static uint64_t loser_key(const struct step *step, const struct candidate *c)
{
    const uint64_t prime = 0x100000001b3u;
    uint64_t key = hash_fnv1a(step->signature) ^ hash_fnv1a("lost the device");
    key ^= provider_identity(c->kernel->provider);
    return ((key * prime) ^ hash_fnv1a(c->kernel->name)) * prime ^ hash_fnv1a(c->text) ^
           (uint64_t)c->variant;
}

void record_loser(struct tune_cache *cache, const struct step *step, const struct candidate *loser)
{
    struct tune_entry entry = {.key = loser_key(step, loser), .variant = loser->variant};
    snprintf(entry.kernel, sizeof(entry.kernel), "%s", loser->kernel->name);
    tune_cache_put(cache, &entry);
}

void record_refuse_losers(struct tune_cache *cache, const struct step *step)
{
    for (int k = 0; k < step->candidate_count; k++) {
        struct candidate *c = &step->candidates[k];
        if (!c->reason[0] && tune_cache_find(cache, loser_key(step, c)))
            snprintf(c->reason, sizeof(c->reason),
                     "variant %d lost the device when it was on trial (--retune tries it again)",
                     c->variant);
    }
}
