/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/suite/suite.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/options.h"
#include "harness/suite/suite_source.h"
#include "harness/suite/suite_values.h"
#include "workloads/model_file.h"

enum { INCLUDE_DEPTH = 16, FILES_MAX = 64, NAMES_MAX = 128, ENTRIES_MAX = 4096 };

#define BIT(table) (1u << (table))

struct loader {
    struct suite *suite;
    struct error *err;
    const char *open[INCLUDE_DEPTH]; /* files being read, the outermost first */
    int depth;
    const char *done[FILES_MAX];
    int done_count;
};

/* A table being read. */
struct section {
    struct loader *loader;
    const struct toml_value *table;
    const char *shown;         /* "workload.stop" */
    unsigned tables;           /* BIT of those whose keys may stand here */
    struct suite_axis *axes;   /* [KEY_COUNT] */
    struct suite_entry *entry; /* whose parameters may stand here too; NULL */
};

static struct suite_place place_of(const struct section *s, const struct toml_value *value)
{
    return (struct suite_place){value->file, value->line, s->shown, value->key ? value->key : ""};
}

/* ---- unknown keys ---- */

static int add_name(const char **names, int count, const char *name)
{
    if (count < NAMES_MAX)
        names[count++] = name;
    return count;
}

static enum status unknown_key(const struct section *s, const struct toml_value *value)
{
    const char *names[NAMES_MAX];
    int count = 0;
    for (int k = 0; k < KEY_COUNT; k++)
        if (s->tables & BIT(suite_key((enum suite_key_id)k)->table))
            count = add_name(names, count, suite_key((enum suite_key_id)k)->name);
    if (s->tables & BIT(TABLE_TOP))
        for (int k = 0; k < 4; k++)
            count = add_name(names, count,
                             (const char *[]){"defaults", "workload", "ceilings", "output"}[k]);
    if (s->tables & BIT(TABLE_SETTINGS))
        for (int k = 0; k < 3; k++)
            count = add_name(names, count, (const char *[]){"stop", "server", "scaling"}[k]);
    for (const struct param *p = s->entry ? s->entry->known : NULL; p && p->name; p++)
        count = add_name(names, count, p->name);
    struct suite_place place = place_of(s, value);
    const char *near = nearest_word(value->key, names, count);
    char of[80] = "";
    if (s->entry && s->entry->workload)
        snprintf(of, sizeof(of), ", nor a parameter of %s", s->entry->workload->name);
    else if (s->entry)
        snprintf(of, sizeof(of), ", nor a size that the file leaves open");
    if (near)
        return suite_complain(&place, s->loader->err, "is no key here%s; did you mean \"%s\"?", of,
                              near);
    return suite_complain(&place, s->loader->err,
                          "is no key here%s; `ridge help suite.toml` lists all", of);
}

/* ---- tables ---- */

static enum status read_section(struct section *s);
static enum status load(struct loader *l, const char *word, const char *from,
                        const struct suite_place *place);

/* A table inside of a table: stop, server, defaults ...; *known: whether it was one. */
static enum status read_inner(const struct section *s, const struct toml_value *value, bool *known)
{
    static const struct {
        const char *name;
        enum suite_table outer;
        unsigned tables;
    } rows[] = {
        {"defaults", TABLE_TOP, BIT(TABLE_SETTINGS)},
        {"ceilings", TABLE_TOP, BIT(TABLE_CEILINGS)},
        {"output", TABLE_TOP, BIT(TABLE_OUTPUT)},
        {"stop", TABLE_SETTINGS, BIT(TABLE_STOP)},
        {"server", TABLE_SETTINGS, BIT(TABLE_SERVER)},
        {"scaling", TABLE_SETTINGS, BIT(TABLE_SCALING)},
    };
    *known = false;
    for (int k = 0; k < ARRAY_COUNT(rows); k++) {
        if (strcmp(value->key, rows[k].name) != 0 || !(s->tables & BIT(rows[k].outer)))
            continue;
        *known = true;
        struct suite_place place = place_of(s, value);
        if (value->kind != TOML_TABLE)
            return suite_complain(&place, s->loader->err, "is a table: [%s%s%s]", s->shown,
                                  *s->shown ? "." : "", value->key);
        char shown[64];
        snprintf(shown, sizeof(shown), "%s%s%s", s->shown, *s->shown ? "." : "", value->key);
        struct section inner = {s->loader, value, shown, rows[k].tables, s->axes, NULL};
        return read_section(&inner);
    }
    return STATUS_OK;
}

static const struct param *find_param(const struct suite_entry *entry, const char *name, int *index)
{
    const struct param *known = entry ? entry->known : NULL;
    for (*index = 0; known && known[*index].name; ++*index)
        if (strcmp(known[*index].name, name) == 0)
            return &known[*index];
    return NULL;
}

static enum status read_param(const struct section *s, const struct toml_value *value,
                              const struct param *param, int index)
{
    struct suite_place place = place_of(s, value);
    struct suite_key key = suite_key_of_param(param);
    return suite_axis_read(s->loader->suite, &key, &place, value, &s->entry->params[index],
                           s->loader->err);
}

/* What a file calls like a key of suites, such as "batch", stands on a command line only. */
static enum status read_key(const struct section *s, const struct toml_value *value)
{
    struct suite *suite = s->loader->suite;
    struct suite_place place = place_of(s, value);
    int index;
    const struct param *param = find_param(s->entry, value->key, &index);
    if (param && s->entry && s->entry->workload)
        return read_param(s, value, param, index);
    for (int k = 0; k < KEY_COUNT; k++) {
        const struct suite_key *key = suite_key((enum suite_key_id)k);
        if ((s->tables & BIT(key->table)) && strcmp(key->name, value->key) == 0)
            return suite_axis_read(suite, key, &place, value, &s->axes[k], s->loader->err);
    }
    return param ? read_param(s, value, param, index) : unknown_key(s, value);
}

static enum status read_section(struct section *s)
{
    for (const struct toml_value *value = s->table->first; value; value = value->next) {
        bool known = false;
        if ((s->tables & BIT(TABLE_TOP)) &&
            (strcmp(value->key, "workload") == 0 || strcmp(value->key, "include") == 0))
            continue; /* these two are read apart */
        TRY(read_inner(s, value, &known));
        if (!known)
            TRY(read_key(s, value));
    }
    return STATUS_OK;
}

/* ---- workloads ---- */

static struct suite_entry *add_entry(struct suite *suite)
{
    struct suite_entry *entries = arena_grow(&suite->arena, suite->entries, &suite->capacity,
                                             suite->count + 1, sizeof(*entries));
    if (!entries)
        return NULL;
    suite->entries = entries;
    struct suite_entry *entry = &entries[suite->count++];
    memset(entry, 0, sizeof(*entry));
    return entry;
}

static enum status find_workload(const char *name, const struct suite_place *place,
                                 struct suite_entry *entry, struct error *err)
{
    const char *names[NAMES_MAX];
    char suites[SUITE_NAMES_MAX][SUITE_NAME_BYTES];
    int count = 0;
    entry->workload = workload_find(name);
    entry->known = entry->workload ? entry->workload->params : NULL;
    if (entry->workload)
        return STATUS_OK;
    for (int k = 0; k < workload_count(); k++)
        count = add_name(names, count, workload_at(k)->name);
    if (place->line == 0) /* a suite could stand here as well */
        count += suite_source_names(suites, names + count, NAMES_MAX - count);
    const char *near = nearest_word(name, names, count);
    if (near)
        return suite_complain(place, err, "workload \"%.60s\" is not known, did you mean \"%s\"?",
                              name, near);
    return suite_complain(place, err, "workload \"%.60s\" is not known; `ridge list` shows all",
                          name);
}

/* Model files are relative to the suite; written so that they can be opened from here. */
static enum status find_model(struct suite *suite, const char *path,
                              const struct suite_place *place, struct suite_entry *entry,
                              struct error *err)
{
    const char *slash = place->line ? strrchr(place->file, '/') : NULL;
    size_t length = model_file_path(path);
    if (!length)
        return suite_complain(place, err, "\"%.200s\" does not end in .onnx", path);
    if (path[length])
        return suite_complain(place, err,
                              "\"%.200s\": a size has a line of its own, as in: "
                              "sequence = 128",
                              path);
    entry->path =
        path[0] == '/' || !slash
            ? arena_strdup(&suite->arena, path)
            : arena_printf(&suite->arena, "%.*s/%s", (int)(slash - place->file), place->file, path);
    if (!entry->path)
        return FAIL_NO_MEMORY(err);
    if (access(entry->path, R_OK) != 0)
        return suite_complain(place, err, "%.300s: %s", entry->path, strerror(errno));
    entry->known = model_file_params(entry->path, &suite->arena, &entry->file_batch);
    return entry->known ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status read_entry(struct loader *l, const struct toml_value *table,
                              const struct suite_place *named, const char *name, bool is_path)
{
    struct suite *suite = l->suite;
    struct suite_entry *entry = add_entry(suite);
    if (!entry)
        return FAIL_NO_MEMORY(l->err);
    if (suite->count > ENTRIES_MAX)
        return suite_complain(named, l->err, "more than %d workloads", ENTRIES_MAX);
    if (is_path)
        TRY(find_model(suite, name, named, entry, l->err));
    else
        TRY(find_workload(name, named, entry, l->err));
    entry->origin = arena_printf(&suite->arena, "%s:%d", table->file, table->line);
    if (!entry->origin)
        return FAIL_NO_MEMORY(l->err);
    struct section section = {
        l, table, "workload", BIT(TABLE_WORKLOAD) | BIT(TABLE_SETTINGS), entry->axes, entry};
    return read_section(&section);
}

/* name = ["a", "b"] makes an entry of each. */
static enum status read_workload(struct loader *l, const struct toml_value *table)
{
    struct suite_place place = {table->file, table->line, "workload", ""};
    if (table->kind != TOML_TABLE)
        return suite_complain(&place, l->err, "is a table of its own: [[workload]]");
    const struct toml_value *name = toml_find(table, "name"), *path = toml_find(table, "path");
    if (!name == !path)
        return suite_complain(&place, l->err, "needs either a name or a path");
    const struct toml_value *named = name ? name : path;
    place.line = named->line;
    place.key = named->key;
    struct suite_axis axis;
    TRY(suite_axis_read(l->suite, suite_key(name ? KEY_WORKLOAD : KEY_PATH), &place, named, &axis,
                        l->err));
    for (int k = 0; k < axis.count; k++)
        TRY(read_entry(l, table, &place, axis.values[k].text, !name));
    return STATUS_OK;
}

static enum status read_workloads(struct loader *l, const struct toml_value *list)
{
    if (!list)
        return STATUS_OK;
    struct suite_place place = {list->file, list->line, "workload", ""};
    if (list->kind != TOML_ARRAY)
        return suite_complain(&place, l->err, "is a table in two brackets: [[workload]]");
    for (const struct toml_value *item = list->first; item; item = item->next)
        TRY(read_workload(l, item));
    return STATUS_OK;
}

static enum status read_includes(struct loader *l, const struct toml_value *root)
{
    const struct toml_value *value = toml_find(root, "include");
    if (!value)
        return STATUS_OK;
    struct suite_place place = {value->file, value->line, "", "include"};
    const struct toml_value single = {.first = value};
    const struct toml_value *list = value->kind == TOML_ARRAY ? value : &single;
    for (const struct toml_value *item = list->first; item;
         item = list == &single ? NULL : item->next) {
        if (item->kind != TOML_TEXT)
            return suite_complain(&place, l->err, "needs strings, got %s",
                                  toml_kind_name(item->kind));
        TRY(load(l, item->text, value->file, &place));
    }
    return STATUS_OK;
}

/* ---- files ---- */

static enum status append_text(struct suite *suite, const struct suite_source *source,
                               struct error *err)
{
    suite->text = arena_printf(&suite->arena, "%s# ---- %s ----\n%.*s%s", suite->text, source->path,
                               (int)source->size, source->size ? source->text : "",
                               source->size && source->text[source->size - 1] != '\n' ? "\n" : "");
    return suite->text ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* Includes are read first, so that this file can override them. */
static enum status read_source(struct loader *l, const struct suite_source *source)
{
    const struct toml_value *root;
    TRY(toml_parse(source->path, source->text, source->size, &l->suite->arena, &root, l->err));
    TRY(read_includes(l, root));
    TRY(append_text(l->suite, source, l->err));
    struct section top = {l, root, "", BIT(TABLE_TOP), l->suite->axes, NULL};
    TRY(read_section(&top));
    return read_workloads(l, toml_find(root, "workload"));
}

/* Every file counts once; one that includes itself is refused. */
static enum status enter(struct loader *l, const char *path, const struct suite_place *place,
                         bool *known)
{
    char real[PATH_MAX];
    *known = false;
    if (!realpath(path, real))
        snprintf(real, sizeof(real), "%s", path);
    for (int k = 0; k < l->depth; k++)
        if (strcmp(l->open[k], real) == 0)
            return suite_complain(place, l->err, "%.200s includes itself", path);
    for (int k = 0; k < l->done_count; k++)
        *known = *known || strcmp(l->done[k], real) == 0;
    if (*known)
        return STATUS_OK;
    const char *copy = arena_strdup(&l->suite->arena, real);
    if (!copy)
        return FAIL_NO_MEMORY(l->err);
    if (l->depth == INCLUDE_DEPTH || l->done_count == FILES_MAX)
        return suite_complain(place, l->err, "too many includes: %d deep, %d files at most",
                              INCLUDE_DEPTH, FILES_MAX);
    l->open[l->depth++] = copy;
    l->done[l->done_count++] = copy;
    return STATUS_OK;
}

static enum status load(struct loader *l, const char *word, const char *from,
                        const struct suite_place *place)
{
    struct suite_source source = {.text = NULL};
    bool known;
    TRY(suite_source_find(word, from, place, &source, l->err));
    TRY(enter(l, source.path, place, &known));
    if (known)
        return STATUS_OK;
    TRY(suite_source_open(&source, l->err));
    enum status status = read_source(l, &source);
    if (l->depth == 1)
        l->suite->path = arena_strdup(&l->suite->arena, source.path);
    suite_source_close(&source);
    l->depth--;
    return status;
}

static enum status finish(struct suite *suite, enum status status, struct error *err)
{
    if (status == STATUS_OK && suite->count == 0)
        status = FAIL(err, STATUS_FAILED, "%s: has no [[workload]]", suite->path);
    if (status != STATUS_OK)
        suite_release(suite);
    return status;
}

enum status suite_load(const char *path, int cpus, struct suite *suite, struct error *err)
{
    *suite = (struct suite){.path = path, .text = "", .cpus = cpus};
    struct loader loader = {.suite = suite, .err = err};
    struct suite_place place = {.file = path, .table = "", .key = ""};
    return finish(suite, load(&loader, path, NULL, &place), err);
}

enum status suite_parse(const char *path, const char *text, size_t size, int cpus,
                        struct suite *suite, struct error *err)
{
    *suite = (struct suite){.path = path, .text = "", .cpus = cpus};
    struct loader loader = {.suite = suite, .err = err};
    struct suite_place place = {.file = path, .table = "", .key = ""};
    struct suite_source source = {.text = text, .size = size};
    bool known;
    snprintf(source.path, sizeof(source.path), "%s", path);
    enum status status = enter(&loader, path, &place, &known);
    if (status == STATUS_OK)
        status = read_source(&loader, &source);
    return finish(suite, status, err);
}

void suite_release(struct suite *suite)
{
    arena_release(&suite->arena);
    *suite = (struct suite){.path = NULL};
}

/* ---- words of a command line ---- */

static enum status unknown_size(const struct suite_entry *entry, const char *name, const char *near,
                                struct error *err)
{
    if (strcmp(name, entry->file_batch) == 0)
        return FAIL(err, STATUS_FAILED, "%s: \"%.60s\" is the batch: give it with --batch",
                    entry->path, name);
    return FAIL(err, STATUS_FAILED, "%s leaves no size \"%.60s\" open%s%s%s", entry->path, name,
                near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static enum status unknown_param(const struct suite_entry *entry, const char *name,
                                 struct error *err)
{
    const char *names[PARAM_MAX];
    int count = 0;
    for (const struct param *p = entry->known; p && p->name && count < PARAM_MAX; p++)
        names[count++] = p->name;
    const char *near = nearest_word(name, names, count);
    if (entry->path)
        return unknown_size(entry, name, near, err);
    if (near)
        return FAIL(err, STATUS_FAILED, "%s has no parameter \"%.60s\", did you mean \"%s\"?",
                    entry->workload->name, name, near);
    return FAIL(err, STATUS_FAILED, "%s has no parameter \"%.60s\"; `ridge list` shows all",
                entry->workload->name, name);
}

static enum status add_params(struct suite *suite, struct suite_entry *entry, char *params,
                              const struct suite_place *place, struct error *err)
{
    char *save = NULL;
    for (char *word = strtok_r(params, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        char *equals = strchr(word, '=');
        int index;
        if (!equals)
            return suite_complain(place, err, "\"%.60s\" should be PARAMETER=VALUE", word);
        *equals = '\0';
        const struct param *param = find_param(entry, word, &index);
        if (!param)
            return unknown_param(entry, word, err);
        struct suite_key key = suite_key_of_param(param);
        char *end;
        struct toml_value value = {.kind = TOML_TEXT, .text = equals + 1};
        value.integer = strtoll(equals + 1, &end, 10);
        if (!param->choices && end != equals + 1 && !*end)
            value.kind = TOML_INT;
        TRY(suite_axis_read(suite, &key, place, &value, &entry->params[index], err));
    }
    return STATUS_OK;
}

enum status suite_add_word(struct suite *suite, const char *word, struct error *err)
{
    struct suite_place place = {.file = "", .table = "", .key = ""};
    struct suite_entry *entry = add_entry(suite);
    char *name = arena_strdup(&suite->arena, word);
    if (!entry || !name)
        return FAIL_NO_MEMORY(err);
    entry->origin = "command line";
    size_t path = model_file_path(name);
    char *colon = path ? name + path : strchr(name, ':');
    char *params = colon && *colon ? colon + 1 : NULL;
    if (params)
        *colon = '\0';
    TRY(path ? find_model(suite, name, &place, entry, err)
             : find_workload(name, &place, entry, err));
    place.file = word;
    return params ? add_params(suite, entry, params, &place, err) : STATUS_OK;
}
