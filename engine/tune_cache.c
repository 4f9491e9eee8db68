/* SPDX-License-Identifier: Apache-2.0
 *
 * The tuner's memory between runs: a text file, one line per signature:
 *     key kernel variant time_ns
 * A line that does not parse is skipped; the file is replaced as a whole, so two runs at once lose
 * entries at worst. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/output.h"
#include "engine/compile.h"

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
        struct tune_entry entry;
        if (sscanf(line, "%" SCNx64 " %47s %d %lf", &entry.key, entry.kernel, &entry.variant,
                   &entry.time_ns) == 4)
            tune_cache_put(cache, &entry);
    }
    cache->dirty = false;
    fclose(file);
    file_unmap(&text);
}

const struct tune_entry *tune_cache_find(const struct tune_cache *cache, uint64_t key)
{
    for (int k = 0; k < cache->count; k++)
        if (cache->entries[k].key == key)
            return &cache->entries[k];
    return NULL;
}

void tune_cache_put(struct tune_cache *cache, const struct tune_entry *entry)
{
    cache->dirty = true;
    for (int k = 0; k < cache->count; k++) {
        if (cache->entries[k].key == entry->key) {
            cache->entries[k] = *entry;
            return;
        }
    }
    if (cache->count == cache->capacity) {
        int capacity = cache->capacity ? cache->capacity * 2 : 64;
        struct tune_entry *grown =
            realloc(cache->entries, (size_t)capacity * sizeof(*cache->entries));
        if (!grown)
            return; /* only a cache: the winner is found again next time */
        cache->entries = grown;
        cache->capacity = capacity;
    }
    cache->entries[cache->count++] = *entry;
}

static void make_folder_of(const char *path)
{
    char folder[512];
    snprintf(folder, sizeof(folder), "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(folder, 0755);
        *slash = '/';
    }
}

void tune_cache_save(struct tune_cache *cache, const char *path)
{
    if (!path || !cache->dirty)
        return;
    struct output out;
    make_folder_of(path);
    if (output_open(&out, path, OUTPUT_DERIVED, NULL) != STATUS_OK)
        return; /* `ridge doctor` tells; what was tuned is used all the same */
    for (int k = 0; k < cache->count; k++) {
        const struct tune_entry *e = &cache->entries[k];
        fprintf(out.stream, "%016" PRIx64 " %s %d %.0f\n", e->key, e->kernel, e->variant,
                e->time_ns);
    }
    output_close(&out, STATUS_OK, NULL);
}

void tune_cache_release(struct tune_cache *cache)
{
    free(cache->entries);
    *cache = (struct tune_cache){0};
}
