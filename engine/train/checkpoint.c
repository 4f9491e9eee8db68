/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/build_info.h"
#include "base/registry.h"
#include "base/system/hash.h"
#include "base/system/output.h"

#define FORMAT "ridge checkpoint 1"

enum { FIXED_NOTES = 7, NUMBER_TEXT = 24 };

static const struct {
    enum dtype dtype;
    const char *type;
} types[] = {{DTYPE_F32, "F32"},   {DTYPE_F64, "F64"},        {DTYPE_F16, "F16"},
             {DTYPE_BF16, "BF16"}, {DTYPE_F8E4M3, "F8_E4M3"}, {DTYPE_I64, "I64"},
             {DTYPE_I32, "I32"},   {DTYPE_I16, "I16"},        {DTYPE_I8, "I8"},
             {DTYPE_U64, "U64"},   {DTYPE_U32, "U32"},        {DTYPE_U16, "U16"},
             {DTYPE_U8, "U8"},     {DTYPE_BOOL, "BOOL"}};

static const char *type_of(enum dtype dtype)
{
    for (int k = 0; k < ARRAY_COUNT(types); k++)
        if (types[k].dtype == dtype)
            return types[k].type;
    return NULL;
}

enum dtype checkpoint_dtype(const struct safetensor *tensor)
{
    for (int k = 0; k < ARRAY_COUNT(types); k++)
        if (strcmp(types[k].type, tensor->type) == 0)
            return types[k].dtype;
    return DTYPE_NONE;
}

/* Of everything that the file says but for the checksum itself. */
static uint64_t checksum(const struct safetensors *contents)
{
    uint64_t hash = 0;
    for (int k = 0; k < contents->note_count; k++) {
        const struct safetensors_note *note = &contents->notes[k];
        if (strcmp(note->key, "checksum") == 0)
            continue;
        hash = hash64_more(hash, note->key, strlen(note->key));
        hash = hash64_more(hash, note->text, strlen(note->text));
    }
    for (int k = 0; k < contents->count; k++) {
        const struct safetensor *t = &contents->tensors[k];
        hash = hash64_more(hash, t->name, strlen(t->name));
        hash = hash64_more(hash, t->type, strlen(t->type));
        hash = hash64_more(hash, t->dim, (size_t)t->rank * sizeof(t->dim[0]));
        hash = hash64_more(hash, t->data, t->bytes);
    }
    return hash;
}

/* ---- writing ---- */

static enum status add_tensor(struct safetensors *contents, const struct value *value,
                              const void *data, struct error *err)
{
    struct safetensor *t = &contents->tensors[contents->count++];
    *t = (struct safetensor){.name = value->name,
                             .type = type_of(value->dtype),
                             .rank = value->shape.rank,
                             .data = data,
                             .bytes = value_size(value)};
    memcpy(t->dim, value->shape.dim, (size_t)t->rank * sizeof(t->dim[0]));
    if (!t->type)
        return UNSUPPORTED(err, "state \"%s\" is of type %s, which checkpoints do not hold",
                           value->name, dtype_name(value->dtype));
    return STATUS_OK;
}

/* Rank 0 has the memory for it. */
static enum status add_whole(struct safetensors *contents, const struct shard *shard,
                             struct exe *exe, struct error *err)
{
    bool first = exe_options(exe)->comm->rank == 0;
    size_t bytes = value_size(&shard->whole);
    void *whole = first ? arena_alloc(&contents->arena, bytes + 1) : NULL;
    if (first && !whole)
        return FAIL_NO_MEMORY(err);
    TRY(shard_gather(shard, exe, whole, err));
    return add_tensor(contents, &shard->whole, whole, err);
}

static bool is_part(const struct shards *shards, const struct value *value)
{
    return shards && shards_in(shards, value->name);
}

static enum status collect(struct exe *exe, const struct shards *shards,
                           struct safetensors *contents, struct error *err)
{
    const struct graph *g = exe_graph(exe);
    size_t limit = (size_t)g->state_count + (size_t)(shards ? shards->count : 0) + 1;
    contents->tensors = arena_array(&contents->arena, limit, sizeof(*contents->tensors));
    if (!contents->tensors)
        return FAIL_NO_MEMORY(err);
    for (int s = 0; s < g->state_count; s++) {
        const struct value *value = &g->values[g->states[s].before];
        if (!is_part(shards, value))
            TRY(add_tensor(contents, value,
                           exe_input(exe, graph_input_index(g, g->states[s].before)), err));
    }
    for (int k = 0; shards && k < shards->count; k++)
        TRY(add_whole(contents, &shards->of[k], exe, err));
    return STATUS_OK;
}

static void add_note(struct safetensors *contents, const char *key, const char *text)
{
    contents->notes[contents->note_count++] =
        (struct safetensors_note){.key = key, .text = text ? text : ""};
}

static enum status write_file(const char *path, const struct safetensors *contents,
                              struct error *err)
{
    struct output out;
    TRY(output_open(&out, path, OUTPUT_PRECIOUS, err));
    enum status status = safetensors_write(out.stream, contents, err);
    return output_close(&out, status, err);
}

enum status checkpoint_save(const char *path, struct exe *exe, const struct shards *shards,
                            const struct checkpoint_about *about, struct error *err)
{
    const struct comm *comm = exe_options(exe)->comm;
    struct safetensors_note notes[FIXED_NOTES + CHECKPOINT_NOTES];
    struct safetensors contents = {.notes = notes};
    char step[NUMBER_TEXT], seed[NUMBER_TEXT], sum[HASH64_TEXT];
    if (about->more_count > CHECKPOINT_NOTES)
        return FAIL(err, STATUS_FAILED, "%d notes are more than a checkpoint takes",
                    about->more_count);
    snprintf(step, sizeof(step), "%" PRId64, about->step);
    snprintf(seed, sizeof(seed), "%" PRIu64, about->seed);
    add_note(&contents, "format", FORMAT);
    add_note(&contents, "ridge", build_info.version);
    add_note(&contents, "workload", about->workload);
    add_note(&contents, "recipe", about->recipe);
    add_note(&contents, "step", step);
    add_note(&contents, "seed", seed);
    for (int k = 0; k < about->more_count; k++)
        add_note(&contents, about->more[k].key, about->more[k].text);
    enum status status = collect(exe, shards, &contents, err);
    if (status == STATUS_OK && (!comm || comm->rank == 0)) {
        hash64_hex(checksum(&contents), sum);
        add_note(&contents, "checksum", sum);
        status = write_file(path, &contents, err);
    }
    arena_release(&contents.arena);
    return status;
}

/* ---- reading ---- */

static enum status need_note(const struct checkpoint *c, const char *key, const char **text,
                             struct error *err)
{
    *text = safetensors_note(&c->contents, key);
    if (!*text)
        return FAIL(err, STATUS_FAILED, "%s: no checkpoint of ridge: it lacks the note \"%s\"",
                    c->path, key);
    return STATUS_OK;
}

static enum status need_number(const struct checkpoint *c, const char *key, uint64_t max,
                               uint64_t *number, struct error *err)
{
    const char *text;
    char *end;
    TRY(need_note(c, key, &text, err));
    errno = 0;
    *number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || *number > max)
        return FAIL(err, STATUS_FAILED, "%s: its %s \"%s\" is no whole number", c->path, key, text);
    return STATUS_OK;
}

static enum status read_notes(struct checkpoint *c, struct error *err)
{
    const char *format, *sum;
    char found[HASH64_TEXT];
    uint64_t step;
    TRY(need_note(c, "format", &format, err));
    if (strcmp(format, FORMAT) != 0)
        return UNSUPPORTED(err, "%s: its format is \"%s\"; this ridge reads \"" FORMAT "\"",
                           c->path, format);
    TRY(need_note(c, "checksum", &sum, err));
    hash64_hex(checksum(&c->contents), found);
    if (strcmp(sum, found) != 0)
        return FAIL(err, STATUS_FAILED,
                    "%s: damaged: its checksum is %s, that of its contents %s; go back to an older "
                    "checkpoint",
                    c->path, sum, found);
    TRY(need_note(c, "ridge", &c->version, err));
    TRY(need_note(c, "workload", &c->workload, err));
    TRY(need_note(c, "recipe", &c->recipe, err));
    TRY(need_number(c, "step", INT64_MAX, &step, err));
    c->step = (int64_t)step;
    return need_number(c, "seed", UINT64_MAX, &c->seed, err);
}

enum status checkpoint_parse(const void *bytes, size_t size, const char *path,
                             struct checkpoint *checkpoint, struct error *err)
{
    *checkpoint = (struct checkpoint){.path = path};
    TRY(safetensors_parse(bytes, size, path, &checkpoint->contents, err));
    return read_notes(checkpoint, err);
}

enum status checkpoint_open(const char *path, struct checkpoint *checkpoint, struct error *err)
{
    struct file file;
    *checkpoint = (struct checkpoint){.path = path};
    TRY(file_map(path, &file, err));
    enum status status = checkpoint_parse(file.data, file.size, path, checkpoint, err);
    checkpoint->file = file;
    return status;
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    safetensors_release(&checkpoint->contents);
    file_unmap(&checkpoint->file);
    *checkpoint = (struct checkpoint){0};
}

/* ---- going on ---- */

static bool same_shape(const struct safetensor *t, const struct shape *shape)
{
    return t->rank == shape->rank &&
           memcmp(t->dim, shape->dim, (size_t)t->rank * sizeof(t->dim[0])) == 0;
}

static enum status match(const struct checkpoint *c, const struct value *value, struct error *err)
{
    const struct safetensor *t = safetensors_find(&c->contents, value->name);
    if (!t)
        return FAIL(err, STATUS_FAILED,
                    "%s is of another model or optimiser (%s, %s): it lacks \"%s\"", c->path,
                    c->workload, c->recipe, value->name);
    if (checkpoint_dtype(t) != value->dtype || !same_shape(t, &value->shape))
        return FAIL(err, STATUS_FAILED,
                    "%s is of another model (%s): \"%s\" has another type or shape there", c->path,
                    c->workload, value->name);
    return STATUS_OK;
}

/* All states and wholes are there, and nothing else is. */
static enum status match_all(const struct checkpoint *checkpoint, const struct graph *g,
                             const struct shards *shards, struct error *err)
{
    int wanted = shards ? shards->count : 0;
    for (int k = 0; shards && k < shards->count; k++)
        TRY(match(checkpoint, &shards->of[k].whole, err));
    for (int s = 0; s < g->state_count; s++) {
        const struct value *value = &g->values[g->states[s].before];
        if (is_part(shards, value))
            continue;
        TRY(match(checkpoint, value, err));
        wanted++;
    }
    if (checkpoint->contents.count != wanted)
        return FAIL(err, STATUS_FAILED,
                    "%s is of another model or optimiser (%s, %s): it has %d states, and %d are "
                    "wanted",
                    checkpoint->path, checkpoint->workload, checkpoint->recipe,
                    checkpoint->contents.count, wanted);
    return STATUS_OK;
}

enum status checkpoint_restore(const struct checkpoint *checkpoint, struct exe *exe,
                               const struct shards *shards, struct error *err)
{
    const struct graph *g = exe_graph(exe);
    TRY(match_all(checkpoint, g, shards, err));
    for (int k = 0; shards && k < shards->count; k++)
        shard_take(&shards->of[k], exe,
                   safetensors_find(&checkpoint->contents, shards->of[k].whole.name)->data);
    for (int s = 0; s < g->state_count; s++) {
        const struct value *value = &g->values[g->states[s].before];
        const struct safetensor *t = safetensors_find(&checkpoint->contents, value->name);
        if (!is_part(shards, value) && t->bytes)
            memcpy(exe_input(exe, graph_input_index(g, g->states[s].before)), t->data, t->bytes);
    }
    return STATUS_OK;
}
