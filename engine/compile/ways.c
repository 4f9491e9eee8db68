/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/numbers/stats.h"
#include "base/system/hash.h"
#include "engine/compile/stages.h"
#include "engine/run/provider.h"

/* Of the network as it was lowered, the device and all that can compute. 0: out of memory. */
static uint64_t key_of(struct exe *exe, const struct ways *ways)
{
    uint64_t key = hash_fnv1a(ways->names[0]) ^ providers_identity();
    for (int s = 0; s < exe->step_count; s++) {
        const char *signature = step_signature(exe, &exe->steps[s], &exe->arena);
        if (!signature)
            return 0;
        key = (key ^ hash_fnv1a(signature)) * 0x100000001b3u;
    }
    return key;
}

int ways_known(struct ways *ways, struct exe *exe)
{
    struct tune_cache cache;
    int known = NONE;
    ways->cache = exe->options.cache;
    ways->key = key_of(exe, ways);
    if (ways->key == 0 || exe->options.retune)
        return known;
    tune_cache_load(&cache, ways->cache);
    cache.build = providers_identity();
    const struct tune_entry *entry = tune_cache_find(&cache, ways->key);
    for (int way = 0; entry && way < 2; way++)
        if (strcmp(entry->kernel, ways->names[way]) == 0)
            known = way;
    tune_cache_save(&cache, ways->cache);
    tune_cache_release(&cache);
    return known;
}

static void remember(const struct ways *ways, int way, double time_ns)
{
    struct tune_cache cache;
    struct tune_entry entry = {.key = ways->key, .time_ns = time_ns};
    snprintf(entry.kernel, sizeof(entry.kernel), "%s", ways->names[way]);
    tune_cache_load(&cache, ways->cache);
    cache.build = providers_identity();
    tune_cache_put(&cache, &entry);
    tune_cache_save(&cache, ways->cache);
    tune_cache_release(&cache);
}

enum { TURNS = 5, RUNS_MOST = 1000 };
/* Of a sample; and of the work before the first, since the clock of an idle device is low. */
static const double sample_ns = 2e6, warm_ns = 2e7;

static int64_t runs_in(double span_ns, double each_ns)
{
    double runs = each_ns > 0 ? span_ns / each_ns : RUNS_MOST;
    return runs < 1 ? 1 : runs < RUNS_MOST ? (int64_t)runs : RUNS_MOST;
}

enum status ways_compare(const struct ways *ways, int *faster, struct error *err)
{
    double samples[2][TURNS], each[2];
    for (int way = 0; way < 2; way++) {
        TRY(ways->time(ways->context, way, 1, &each[way], err));
        TRY(ways->time(ways->context, way, runs_in(warm_ns, each[way]), &each[way], err));
    }
    for (int turn = 0; turn < TURNS; turn++)
        for (int way = 0; way < 2; way++)
            TRY(ways->time(ways->context, way, runs_in(sample_ns, each[way]), &samples[way][turn],
                           err));
    for (int way = 0; way < 2; way++) {
        stats_sort(samples[way], TURNS);
        each[way] = stats_median(samples[way], TURNS);
    }
    *faster = each[1] < each[0];
    if (ways->key)
        remember(ways, *faster, each[*faster]);
    return STATUS_OK;
}
