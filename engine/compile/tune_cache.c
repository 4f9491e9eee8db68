/* SPDX-License-Identifier: Apache-2.0
 *
 * The tuner's memory between runs: a text file, one line per build that uses it and one per winner:
 *     # build seconds
 *     key kernel variant time_ns build [losses]
 * Keys contain what would run (provider_identity), so that builds share what is the same in both
 * and keep the rest apart; winners of builds that have long not been used are dropped. A line that
 * does not parse is skipped; files of earlier versions have no builds. The file is replaced as a
 * whole, so two runs at once lose entries at worst. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system/file.h"
#include "base/system/output.h"
#include "engine/compile/stages.h"

/* ---- entries by key ---- */

/* Where the key stands, or would stand. */
static int *slot_of(const struct tune_cache *cache, uint64_t key)
{
    uint64_t mask = (uint64_t)cache->slot_count - 1, at = key * 0x9e3779b97f4a7c15u >> 20 & mask;
    while (cache->slots[at] && cache->entries[cache->slots[at] - 1].key != key)
        at = (at + 1) & mask;
    return &cache->slots[at];
}

static bool grow(struct tune_cache *cache)
{
    int capacity = cache->capacity ? cache->capacity * 2 : 64;
    int *slots = calloc((size_t)capacity * 2, sizeof(*slots));
    struct tune_entry *entries =
        slots ? realloc(cache->entries, (size_t)capacity * sizeof(*entries)) : NULL;
    if (!entries) {
        free(slots);
        return false;
    }
    free(cache->slots);
    cache->entries = entries;
    cache->capacity = capacity;
    cache->slots = slots;
    cache->slot_count = capacity * 2;
    for (int k = 0; k < cache->count; k++)
        *slot_of(cache, entries[k].key) = k + 1;
    return true;
}

/* Without memory the entry is lost: only a cache, the winner is found again next time. */
static void insert(struct tune_cache *cache, const struct tune_entry *entry)
{
    if (cache->count == cache->capacity && !grow(cache))
        return;
    int *slot = slot_of(cache, entry->key);
    if (!*slot)
        *slot = ++cache->count;
    cache->entries[*slot - 1] = *entry;
}

const struct tune_entry *tune_cache_find(struct tune_cache *cache, uint64_t key)
{
    int slot = cache->count ? *slot_of(cache, key) : 0;
    if (!slot)
        return NULL;
    struct tune_entry *entry = &cache->entries[slot - 1];
    cache->dirty = cache->dirty || entry->build != cache->build;
    entry->build = cache->build;
    return entry;
}

void tune_cache_put(struct tune_cache *cache, const struct tune_entry *entry)
{
    struct tune_entry own = *entry;
    own.build = cache->build;
    cache->dirty = true;
    insert(cache, &own);
}

/* ---- builds ---- */

static struct tune_build *find_build(struct tune_cache *cache, uint64_t id)
{
    for (int k = 0; k < cache->build_count; k++)
        if (cache->builds[k].id == id)
            return &cache->builds[k];
    return NULL;
}

static struct tune_build *oldest_build(struct tune_cache *cache)
{
    struct tune_build *oldest = &cache->builds[0];
    for (int k = 1; k < cache->build_count; k++)
        oldest = cache->builds[k].used_s < oldest->used_s ? &cache->builds[k] : oldest;
    return oldest;
}

/* The one that has not been used for longest makes room. */
static void note_build(struct tune_cache *cache, uint64_t id, int64_t used_s)
{
    struct tune_build *build = find_build(cache, id);
    bool room = cache->build_count < TUNE_BUILDS_MAX;
    if (!build)
        build = room ? &cache->builds[cache->build_count++] : oldest_build(cache);
    *build = (struct tune_build){.id = id, .used_s = used_s};
}

/* ---- the file ---- */

void tune_cache_load(struct tune_cache *cache, const char *path)
{
    *cache = (struct tune_cache){0};
    struct file text = {0};
    FILE *file = NULL;
    if (path && file_map(path, &text, NULL) == STATUS_OK && text.size)
        file = fmemopen((void *)(uintptr_t)text.data, text.size, "r");
    if (!file) {
        file_unmap(&text);
        return;
    }
    char line[256];
    while (fgets(line, sizeof(line), file)) {
        struct tune_entry entry = {.build = 0};
        struct tune_build build;
        if (sscanf(line, "# %" SCNx64 " %" SCNd64, &build.id, &build.used_s) == 2)
            note_build(cache, build.id, build.used_s);
        else if (sscanf(line, "%" SCNx64 " %47s %d %lf %" SCNx64 " %d", &entry.key, entry.kernel,
                        &entry.variant, &entry.time_ns, &entry.build, &entry.losses) >= 4)
            insert(cache, &entry);
    }
    fclose(file);
    file_unmap(&text);
}

/* Entries of builds that nobody notes any more are left out. Those without a build are of an
 * earlier version or of a test, and stay until there are as many builds as may be. */
static void write_entries(struct tune_cache *cache, FILE *file)
{
    if (cache->build)
        note_build(cache, cache->build, (int64_t)time(NULL));
    for (int k = 0; k < cache->build_count; k++)
        fprintf(file, "# %016" PRIx64 " %" PRId64 "\n", cache->builds[k].id,
                cache->builds[k].used_s);
    for (int k = 0; k < cache->count; k++) {
        const struct tune_entry *e = &cache->entries[k];
        if (e->build ? find_build(cache, e->build) != NULL : cache->build_count < TUNE_BUILDS_MAX)
            fprintf(file, "%016" PRIx64 " %s %d %.0f %016" PRIx64 " %d\n", e->key, e->kernel,
                    e->variant, e->time_ns, e->build, e->losses);
    }
}

void tune_cache_save(struct tune_cache *cache, const char *path)
{
    if (!path || !cache->dirty)
        return;
    struct output out;
    if (folders_make(path, NULL) != STATUS_OK ||
        output_open(&out, path, OUTPUT_DERIVED, NULL) != STATUS_OK)
        return; /* `ridge doctor` reports it; what was tuned is used all the same */
    write_entries(cache, out.stream);
    output_close(&out, STATUS_OK, NULL);
}

void tune_cache_release(struct tune_cache *cache)
{
    free(cache->entries);
    free(cache->slots);
    *cache = (struct tune_cache){0};
}
