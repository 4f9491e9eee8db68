/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/run/provider.h"

#include <stdio.h>
#include <string.h>

#include "base/registry.h"
#include "base/system/hash.h"
#include "base/system/plugin_files.h"
#include "base/text/options.h"
#include "engine/run/plugin.h"

enum { NAME_BYTES = 64 };

static const char separators[] = ", ";

/* Those that are always there, then the plug-ins of this tree, built or not. */
static const char *const known[] = {
    "native",
    "reference",
#define X(name) #name,
#include "provider_list.inc"
#undef X
};

enum { BUILT_IN = 2 };

/* The next name of the list; false at its end. */
static bool next_name(const char **list, char name[NAME_BYTES])
{
    const char *at = *list ? *list + strspn(*list, separators) : "";
    size_t length = strcspn(at, separators);
    snprintf(name, NAME_BYTES, "%.*s", (int)length, at);
    *list = at + length;
    return length > 0;
}

bool provider_named(const char *list, const char *name)
{
    char word[NAME_BYTES];
    while (next_name(&list, word))
        if (strcmp(word, name) == 0)
            return true;
    return false;
}

bool provider_allowed(const char *list, const char *name)
{
    return !list || !*list || strcmp(name, "reference") == 0 || provider_named(list, name);
}

/* ---- names ---- */

struct names {
    struct arena *arena;
    const char **list;
    size_t capacity;
    int count; /* -1: out of memory */
};

static bool is_among(const struct names *names, const char *name)
{
    for (int k = 0; k < names->count; k++)
        if (strcmp(names->list[k], name) == 0)
            return true;
    return false;
}

static void add_name(struct names *names, const char *name)
{
    if (names->count < 0 || is_among(names, name))
        return;
    const char *copy = arena_strdup(names->arena, name);
    const char **list = arena_grow(names->arena, names->list, &names->capacity,
                                   (size_t)names->count + 1, sizeof(*list));
    if (!copy || !list) {
        names->count = -1;
        return;
    }
    names->list = list;
    list[names->count++] = copy;
}

static void add_file(const char *path, const char *name, void *context)
{
    (void)path;
    add_name(context, name);
}

static void add_folder(const char *folder, bool named, void *context)
{
    (void)named;
    plugin_files_each(folder, add_file, context);
}

static void gather(struct names *names)
{
    for (int k = 0; k < ARRAY_COUNT(known); k++)
        add_name(names, known[k]);
    plugin_folders_each(add_folder, names);
}

int provider_names(struct arena *arena, const char *const **names)
{
    struct names all = {.arena = arena};
    gather(&all);
    *names = all.list;
    return all.count;
}

bool provider_is_ours(const char *name)
{
    for (int k = 0; k < ARRAY_COUNT(known); k++)
        if (strcmp(known[k], name) == 0)
            return true;
    return false;
}

/* ---- checks ---- */

static enum status unknown(const char *name, const struct names *names, struct error *err)
{
    char list[400] = "";
    size_t used = 0;
    const char *near = nearest_word(name, names->list, names->count);
    for (int k = 0; k < names->count && used < sizeof(list); k++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s", k ? ", " : "",
                                 names->list[k]);
    return FAIL(err, STATUS_FAILED, "provider \"%s\" is not known%s%s%s; known are: %s", name,
                near ? ", did you mean \"" : "", near ? near : "", near ? "\"?" : "", list);
}

enum status providers_check(const char *list, struct error *err)
{
    char name[NAME_BYTES];
    struct arena arena = {0};
    struct names names = {.arena = &arena};
    enum status status = STATUS_OK;
    if (!list || !*list)
        return STATUS_OK;
    if (!list[strspn(list, separators)])
        return FAIL(err, STATUS_FAILED, "\"%s\" names no provider", list);
    gather(&names);
    if (names.count < 0)
        status = FAIL_NO_MEMORY(err);
    while (status == STATUS_OK && next_name(&list, name))
        if (!is_among(&names, name))
            status = unknown(name, &names, err);
    arena_release(&arena);
    return status;
}

struct search {
    const char *name;
    bool found;
};

static void compare_file(const char *path, const char *name, void *context)
{
    struct search *search = context;
    (void)path;
    search->found = search->found || strcmp(name, search->name) == 0;
}

static void search_folder(const char *folder, bool named, void *context)
{
    (void)named;
    plugin_files_each(folder, compare_file, context);
}

static bool is_built_in(const char *name)
{
    for (int k = 0; k < BUILT_IN; k++)
        if (strcmp(known[k], name) == 0)
            return true;
    return false;
}

enum status providers_find(const char *list, struct error *err)
{
    char name[NAME_BYTES];
    while (next_name(&list, name)) {
        struct search search = {.name = name};
        if (is_built_in(name))
            continue;
        plugin_folders_each(search_folder, &search);
        if (search.found)
            continue;
        const char *reason = plugin_left_out(name);
        if (reason)
            return UNSUPPORTED(err,
                               "provider \"%s\" is not in this build: %s. Build again with it, "
                               "or leave it out of the list of providers",
                               name, reason);
        return UNSUPPORTED(err,
                           "provider \"%s\": there is no %s.so in plugins/ beside the program, "
                           "nor in RIDGE_PLUGIN_PATH",
                           name, name);
    }
    return STATUS_OK;
}

enum status providers_load(const char *list, struct error *err)
{
    char name[NAME_BYTES];
    TRY(providers_check(list, err));
    TRY(providers_find(list, err));
    plugins_load(list && *list ? list : NULL);
    while (next_name(&list, name)) {
        const struct plugin_info *info = plugin_info_find(name);
        if (is_built_in(name) || (info && info->state == PLUGIN_LOADED))
            continue;
        return UNSUPPORTED(err, "provider \"%s\" cannot be used here: %s. `ridge doctor` says more",
                           name, info && info->reason ? info->reason : "out of memory");
    }
    return STATUS_OK;
}

/* ---- what would run ---- */

static uint64_t identity_of(const struct plugin_info *info)
{
    uint64_t hash = hash64_text(info->name);
    hash = hash64_more(hash, info->version, strlen(info->version));
    return hash64_more(hash, &info->code, sizeof(info->code));
}

uint64_t provider_identity(const char *name)
{
    const struct plugin_info *info = plugin_info_find(name);
    if (strcmp(name, "native") == 0)
        return hash64_text(kernel_code());
    return info && info->state == PLUGIN_LOADED ? identity_of(info) : hash64_text(name);
}

uint64_t providers_identity(void)
{
    uint64_t all = hash64_text(kernel_code());
    for (int k = 0; k < plugin_info_count(); k++)
        if (plugin_info_at(k)->state == PLUGIN_LOADED)
            all += identity_of(plugin_info_at(k)); /* in whatever order they were loaded */
    return all ? all : 1;
}
