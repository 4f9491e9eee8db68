/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/data/data.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/numbers/random.h"
#include "base/system/hash.h"
#include "base/text/options.h"

#define X(name) extern const struct data_format data_format_##name;
#include "data_format_list.inc"
#undef X

static const struct data_format *const formats[] = {
#define X(name) &data_format_##name,
#include "data_format_list.inc"
#undef X
};

enum { ROWS_AT_ONCE = 64 };

int data_format_count(void)
{
    return ARRAY_COUNT(formats);
}

const struct data_format *data_format_at(int index)
{
    return formats[index];
}

/* ---- files ---- */

static bool path_of(const struct data_source *source, const char *name, char *path, size_t size)
{
    return (size_t)snprintf(path, size, "%s/%s", source->folder, name) < size;
}

bool data_has(const struct data_source *source, const char *name)
{
    char path[1024];
    for (int k = 0; k < source->text_count; k++)
        if (strcmp(source->texts[k].name, name) == 0)
            return true;
    return source->folder && path_of(source, name, path, sizeof(path)) && access(path, F_OK) == 0;
}

enum status data_map(struct data_source *source, const char *name, struct data_text *text,
                     struct error *err)
{
    char path[1024], packed[256];
    for (int k = 0; k < source->text_count; k++)
        if (strcmp(source->texts[k].name, name) == 0) {
            *text = source->texts[k];
            return STATUS_OK;
        }
    if (!source->folder)
        return FAIL(err, STATUS_FAILED, "%s is missing", name);
    if (source->file_count == DATA_FILES || !path_of(source, name, path, sizeof(path)))
        return FAIL(err, STATUS_FAILED, "%s/%s: too many files, or too long a path", source->folder,
                    name);
    snprintf(packed, sizeof(packed), "%s.gz", name);
    if (!data_has(source, name) && data_has(source, packed))
        return FAIL(err, STATUS_FAILED, "%s is compressed: gunzip it", path);
    struct file *file = &source->files[source->file_count];
    TRY(file_map(path, file, err));
    source->file_count++;
    *text = (struct data_text){arena_strdup(&source->arena, path), file->data, file->size};
    return text->name ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* ---- finding ---- */

static bool has_marks(const struct data_format *format, const char *folder)
{
    const struct data_source source = {.folder = folder};
    for (int k = 0; k < DATA_MARKS && format->marks[k]; k++)
        if (data_has(&source, format->marks[k]))
            return true;
    return format->recognises && format->recognises(folder);
}

/* The folder itself, or one inside it that the format knows. */
static bool lies_in(const struct data_format *format, const char *folder, struct data_place *place)
{
    place->format = format;
    snprintf(place->folder, sizeof(place->folder), "%s", folder);
    if (has_marks(format, folder))
        return true;
    for (int k = 0; k < ARRAY_COUNT(format->inside) && format->inside[k]; k++) {
        int length =
            snprintf(place->folder, sizeof(place->folder), "%s/%s", folder, format->inside[k]);
        if (length < (int)sizeof(place->folder) && has_marks(format, place->folder))
            return true;
    }
    snprintf(place->folder, sizeof(place->folder), "%s", folder);
    return false;
}

static enum status all_formats(const char *path, struct error *err)
{
    char all[300] = "";
    size_t used = 0;
    for (int k = 0; k < ARRAY_COUNT(formats) && used < sizeof(all); k++)
        used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", used ? ", " : "",
                                 formats[k]->name);
    return FAIL(err, STATUS_FAILED,
                "%s: its files are of no format that is known (%s); see `ridge list data`", path,
                all);
}

static enum status unknown_format(const char *name, struct error *err)
{
    const char *names[ARRAY_COUNT(formats)];
    for (int k = 0; k < ARRAY_COUNT(formats); k++)
        names[k] = formats[k]->name;
    const char *near = nearest_word(name, names, ARRAY_COUNT(formats));
    return FAIL(err, STATUS_FAILED, "no format \"%s\" of data%s%s%s; see `ridge list data`", name,
                near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static enum status folder_of(const char *path, char *folder, size_t size, struct error *err)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return FAIL(err, STATUS_FAILED, "%s: there is no such file or folder", path);
    if (snprintf(folder, size, "%s", path) >= (int)size)
        return FAIL(err, STATUS_FAILED, "%s: too long a path", path);
    char *slash = strrchr(folder, '/');
    if (S_ISDIR(about.st_mode) && slash && slash > folder && !slash[1])
        *slash = '\0';
    else if (!S_ISDIR(about.st_mode) && !slash)
        snprintf(folder, size, ".");
    else if (!S_ISDIR(about.st_mode))
        slash[slash == folder] = '\0';
    return STATUS_OK;
}

static enum status take_name(const char *path, char name[128], struct error *err)
{
    const char *slash = strrchr(path, '/');
    if (snprintf(name, 128, "%s", slash ? slash + 1 : path) >= 128)
        return FAIL(err, STATUS_FAILED, "%s: too long a name", path);
    return STATUS_OK;
}

/* The folder of "PATH" or "PATH,PATH", and what is named in it. The second path may be a bare name.
 */
static enum status take_paths(const char *text, struct data_place *place, char *folder, size_t size,
                              struct error *err)
{
    char path[1024], other[sizeof(place->folder)];
    const char *comma = access(text, F_OK) != 0 ? strchr(text, ',') : NULL;
    int length = comma ? (int)(comma - text) : (int)strlen(text);
    struct stat about;
    if (snprintf(path, sizeof(path), "%.*s", length, text) >= (int)sizeof(path))
        return FAIL(err, STATUS_FAILED, "%s: too long a path", text);
    TRY(folder_of(path, folder, size, err));
    if (stat(path, &about) == 0 && !S_ISDIR(about.st_mode))
        TRY(take_name(path, place->file[0], err));
    if (!comma)
        return STATUS_OK;
    TRY(take_name(comma + 1, place->file[1], err));
    if (strchr(comma, '/')) {
        TRY(folder_of(comma + 1, other, sizeof(other), err));
        if (strcmp(other, folder) != 0)
            return FAIL(err, STATUS_FAILED, "%s: both files must lie in one folder", text);
    }
    if (!place->file[0][0] || !place->file[1][0])
        return FAIL(err, STATUS_FAILED, "%s: two files are named so, not folders", text);
    return STATUS_OK;
}

static bool is_named_so(const struct data_format *format, const struct data_place *place)
{
    size_t length = strlen(place->file[0]), end = format->ending ? strlen(format->ending) : 0;
    if (place->file[1][0])
        return format->pairs;
    return end && length > end && strcmp(place->file[0] + length - end, format->ending) == 0;
}

static const struct data_format *format_named(const char *name)
{
    for (int k = 0; k < ARRAY_COUNT(formats); k++)
        if (strcmp(formats[k]->name, name) == 0)
            return formats[k];
    return NULL;
}

enum status data_find(const char *text, struct data_place *place, struct error *err)
{
    char name[32] = "", folder[sizeof(place->folder)];
    const char *colon = strchr(text, ':'), *path = text;
    if (colon && access(text, F_OK) != 0) {
        snprintf(name, sizeof(name), "%.*s", (int)(colon - text), text);
        path = colon + 1;
    }
    *place = (struct data_place){.format = format_named(name)};
    if (*name && !place->format)
        return unknown_format(name, err);
    TRY(take_paths(path, place, folder, sizeof(folder), err));
    for (int k = 0; k < ARRAY_COUNT(formats) && !place->format; k++)
        if (is_named_so(formats[k], place))
            place->format = formats[k];
    if (place->file[1][0] && !place->format->pairs)
        return FAIL(err, STATUS_FAILED, "%s: data of format %s are not pairs of files", text,
                    place->format->name);
    if (place->format) {
        lies_in(place->format, folder, place);
        return STATUS_OK;
    }
    for (int k = 0; k < ARRAY_COUNT(formats); k++)
        if (lies_in(formats[k], folder, place))
            return STATUS_OK;
    return all_formats(path, err);
}

/* ---- opening ---- */

static enum status open_set(struct data_set *set, const struct graph *graph, struct error *err)
{
    if (!set->format->open)
        return UNSUPPORTED(err, "data of format %s are no samples of %s", set->format->name,
                           graph->name);
    TRY(set->format->open(set, graph, err));
    for (int part = 0; part < DATA_PARTS; part++)
        if (set->count[part] < 1)
            return FAIL(err, STATUS_FAILED, "%s: no samples %s",
                        set->source.folder ? set->source.folder : set->format->name,
                        part == DATA_LEARNT ? "to learn from" : "to be held out");
    return STATUS_OK;
}

enum status data_open(const struct data_place *place, const struct graph *graph,
                      struct data_set *set, struct error *err)
{
    struct data_source *source = &set->source;
    *set = (struct data_set){.format = place->format, .source = {.letters = place->letters}};
    source->folder = arena_strdup(&source->arena, place->folder);
    for (int k = 0; k < 2; k++)
        if (place->file[k][0])
            source->file[k] = arena_strdup(&source->arena, place->file[k]);
    return source->folder ? open_set(set, graph, err) : FAIL_NO_MEMORY(err);
}

enum status data_open_texts(const struct data_format *format, const struct data_text *texts,
                            int count, const struct graph *graph, struct data_set *set,
                            struct error *err)
{
    *set = (struct data_set){.format = format, .source = {.texts = texts, .text_count = count}};
    return open_set(set, graph, err);
}

void data_close(struct data_set *set)
{
    for (int k = 0; k < set->source.file_count; k++)
        file_unmap(&set->source.files[k]);
    arena_release(&set->source.arena);
    *set = (struct data_set){.format = NULL};
}

/* ---- order ---- */

/* A permutation of the numbers of 2 * half bits: four rounds of a Feistel network. */
static uint64_t permute(uint64_t seed, int half, uint64_t x)
{
    uint64_t mask = ((uint64_t)1 << half) - 1, left = x >> half, right = x & mask;
    for (uint64_t round = 0; round < 4; round++) {
        uint32_t word[4];
        random_words(seed, right << 2 | round, word);
        uint64_t next = left ^ ((uint64_t)word[0] & mask);
        left = right;
        right = next;
    }
    return left << half | right;
}

int64_t data_order(uint64_t seed, int64_t count, int64_t number)
{
    uint64_t n = (uint64_t)count, epoch = (uint64_t)(number / count),
             x = (uint64_t)(number % count);
    int half = 1;
    while (half < 31 && (uint64_t)1 << 2 * half < n)
        half++;
    seed += hash_fnv1a("epoch") + epoch * 0x9e3779b97f4a7c15u;
    do /* what lies outside goes on until it is inside: that, too, is a permutation */
        x = permute(seed, half, x);
    while (x >= n);
    return (int64_t)x;
}

enum status data_fill(const struct data_set *set, const struct batch *batch, int64_t first,
                      int64_t count, int64_t *bytes, struct error *err)
{
    int64_t record[ROWS_AT_ONCE], samples = set->count[batch->held_out];
    for (int64_t done = 0; done < count;) {
        struct data_rows rows = {.batch = batch, .first = first + done, .record = record};
        rows.count = count - done < ROWS_AT_ONCE ? count - done : ROWS_AT_ONCE;
        for (int64_t k = 0; k < rows.count; k++) {
            int64_t number = batch->first + rows.first + k;
            record[k] =
                batch->held_out ? number % samples : data_order(batch->seed, samples, number);
        }
        TRY(set->format->read(set, &rows, err));
        *bytes += rows.bytes;
        done += rows.count;
    }
    return STATUS_OK;
}

/* ---- for formats ---- */

enum status data_input(const struct data_set *set, const struct graph *graph, const char *name,
                       enum dtype dtype, int rank, const struct value **value, struct error *err)
{
    int v = graph_find_value(graph, name);
    *value = NULL;
    if (v == NONE || graph->values[v].kind != VALUE_INPUT)
        return UNSUPPORTED(err, "%s is not trained on data of format %s: it has no input \"%s\"",
                           graph->name, set->format->name, name);
    if (graph->values[v].dtype != dtype || graph->values[v].shape.rank != rank)
        return UNSUPPORTED(err, "%s is not trained on data of format %s: \"%s\" is of another kind",
                           graph->name, set->format->name, name);
    *value = &graph->values[v];
    return STATUS_OK;
}

int64_t data_ids(const struct value *value)
{
    return (int64_t)value->fill.b;
}

enum status data_split(struct arena *arena, int64_t records, struct data_split *split,
                       struct error *err)
{
    uint64_t stream = hash_fnv1a("held out");
    *split = (struct data_split){.count = {0}};
    for (int part = 0; part < DATA_PARTS; part++) {
        split->index[part] = arena_array(arena, (size_t)records + 1, sizeof(int64_t));
        if (!split->index[part])
            return FAIL_NO_MEMORY(err);
    }
    for (int64_t k = 0; k < records; k++) {
        int part = random_uniform(stream, (uint64_t)k) < 0.1 ? DATA_HELD_OUT : DATA_LEARNT;
        split->index[part][split->count[part]++] = k;
    }
    return STATUS_OK;
}
