/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds, opens and checks plug-ins. What was found is kept for the life of the process in one
 * table, because kernels are listed by functions without a handle (engine/run/kernels.h). */
#include "engine/run/plugin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/system/library.h"
#include "base/system/plugin_files.h"
#include "engine/graph/op.h"
#include "engine/run/provider.h"

struct plugin_table {
    struct arena arena;
    struct plugin_info *infos;
    struct kernel **kernels;      /* copies: a field that the plug-in did not know is zero */
    struct device_kind **devices; /* copies too */
    struct device_roof *roofs;    /* and these */
    size_t info_cap, kernel_cap, device_cap, roof_cap;
    int info_count, kernel_count, device_count, roof_count;
};

static struct plugin_table table;

/* ---- what the host offers ---- */

static const char *node_op(const struct node *node)
{
    return node->op->name;
}

__attribute__((format(printf, 3, 4))) static enum status refuse(struct error *why, enum status code,
                                                                const char *format, ...)
{
    if (!why)
        return code;
    va_list args;
    va_start(args, format);
    vsnprintf(why->message, sizeof(why->message), format, args);
    va_end(args);
    why->code = code;
    why->file = "plug-in";
    why->line = 0;
    return code;
}

static const struct plugin_host host = {
    .abi = PLUGIN_ABI,
    .size = sizeof(struct plugin_host),
    .node_attr = node_attr,
    .node_int = node_int,
    .node_float = node_float,
    .node_string = node_string,
    .node_ints = node_ints,
    .node_op = node_op,
    .desc_is_plain = desc_is_plain,
    .desc_is_nhwc = desc_is_nhwc,
    .desc_is_dense = desc_is_dense,
    .desc_same_memory = desc_same_memory,
    .pool_run = pool_run,
    .pool_threads = pool_threads,
    .refuse = refuse,
};

const struct plugin_host *plugin_host(void)
{
    return &host;
}

/* ---- the table ---- */

int plugin_info_count(void)
{
    return table.info_count;
}

const struct plugin_info *plugin_info_at(int index)
{
    return &table.infos[index];
}

int plugin_kernel_count(void)
{
    return table.kernel_count;
}

const struct kernel *plugin_kernel_at(int index)
{
    return table.kernels[index];
}

int plugin_device_count(void)
{
    return table.device_count;
}

const struct device_kind *plugin_device_at(int index)
{
    return table.devices[index];
}

int device_roof_count(void)
{
    return table.roof_count;
}

const struct device_roof *device_roof_at(int index)
{
    return &table.roofs[index];
}

const struct plugin_info *plugin_info_find(const char *name)
{
    for (int k = 0; k < table.info_count; k++)
        if (strcmp(table.infos[k].name, name) == 0)
            return &table.infos[k];
    return NULL;
}

const char *plugin_version(const char *name)
{
    const struct plugin_info *info = plugin_info_find(name);
    return info && info->state == PLUGIN_LOADED ? info->version : NULL;
}

/* Copies the strings. Without memory the entry is lost, and with it the plug-in: not an error. */
static void add_info(struct plugin_info info)
{
    size_t need = (size_t)table.info_count + 1;
    struct plugin_info *infos =
        arena_grow(&table.arena, table.infos, &table.info_cap, need, sizeof(*infos));
    if (!infos)
        return;
    table.infos = infos;
    info.name = arena_strdup(&table.arena, info.name);
    info.path = info.path ? arena_strdup(&table.arena, info.path) : NULL;
    info.version = info.version ? arena_strdup(&table.arena, info.version) : NULL;
    info.reason = info.reason ? arena_strdup(&table.arena, info.reason) : NULL;
    if (info.name)
        table.infos[table.info_count++] = info;
}

static enum status add_kernel(const struct kernel *kernel, size_t kernel_size, struct error *why)
{
    size_t need = (size_t)table.kernel_count + 1;
    struct kernel **kernels =
        arena_grow(&table.arena, table.kernels, &table.kernel_cap, need, sizeof(struct kernel *));
    if (!kernels)
        return FAIL_NO_MEMORY(why);
    table.kernels = kernels;
    struct kernel *copy = arena_alloc(&table.arena, sizeof(*copy));
    if (!copy)
        return FAIL_NO_MEMORY(why);
    memcpy(copy, kernel, kernel_size < sizeof(*copy) ? kernel_size : sizeof(*copy));
    table.kernels[table.kernel_count++] = copy;
    return STATUS_OK;
}

static enum status add_device(const struct device_kind *kind, struct error *why)
{
    size_t need = (size_t)table.device_count + 1;
    struct device_kind **devices =
        arena_grow(&table.arena, table.devices, &table.device_cap, need, sizeof(*devices));
    if (!devices)
        return FAIL_NO_MEMORY(why);
    table.devices = devices;
    struct device_kind *copy = arena_alloc(&table.arena, sizeof(*copy));
    if (!copy)
        return FAIL_NO_MEMORY(why);
    memcpy(copy, kind, kind->size < sizeof(*copy) ? kind->size : sizeof(*copy));
    table.devices[table.device_count++] = copy;
    return STATUS_OK;
}

static const struct device_roof *roof_of(const struct roof_group *group, int index)
{
    return (const void *)((const char *)group->roofs + (size_t)index * group->size);
}

static enum status add_roofs(const struct roof_group *group, struct error *why)
{
    size_t need = (size_t)(table.roof_count + group->count);
    struct device_roof *roofs =
        arena_grow(&table.arena, table.roofs, &table.roof_cap, need, sizeof(*roofs));
    if (!roofs)
        return FAIL_NO_MEMORY(why);
    table.roofs = roofs;
    for (int k = 0; k < group->count; k++) {
        struct device_roof *copy = &roofs[table.roof_count++];
        memset(copy, 0, sizeof(*copy));
        memcpy(copy, roof_of(group, k), group->size < sizeof(*copy) ? group->size : sizeof(*copy));
    }
    return STATUS_OK;
}

/* ---- opening one ---- */

static enum status check_kernel(const struct plugin *plugin, const struct kernel *kernel,
                                struct error *why)
{
    if (!kernel || !kernel->name || !kernel->provider)
        return UNSUPPORTED(why, "one of its kernels has no name or provider");
    if (strcmp(kernel->provider, plugin->name) != 0)
        return UNSUPPORTED(why, "its kernel %s says provider \"%s\", not \"%s\"", kernel->name,
                           kernel->provider, plugin->name);
    if (!(kernel->ops || kernel->elementwise) || !kernel->plan || !kernel->launch)
        return UNSUPPORTED(why, "its kernel %s lacks ops, plan or launch", kernel->name);
    return STATUS_OK;
}

enum { CAPTURE_HOOKS = 4 };

/* The first function that the table should have and has not; NULL: it is complete. */
static const char *missing_hook(const struct device_kind *kind)
{
    bool captures = kind->capture_begin || kind->capture_end || kind->replay || kind->graph_free;
#define HOOK(hook)                                                                                 \
    {                                                                                              \
        .name = #hook, .there = kind->hook != NULL                                                 \
    }
    const struct {
        const char *name;
        bool there;
    } hooks[] = {
        HOOK(count),         HOOK(open),          HOOK(close),       HOOK(bind),
        HOOK(alloc),         HOOK(free),          HOOK(alloc_host),  HOOK(free_host),
        HOOK(stream_new),    HOOK(stream_free),   HOOK(wait),        HOOK(copy),
        HOOK(fill),          HOOK(event_new),     HOOK(event_free),  HOOK(event_record),
        HOOK(event_elapsed), HOOK(capture_begin), HOOK(capture_end), HOOK(replay),
        HOOK(graph_free),
    };
#undef HOOK
    for (int k = 0; k < ARRAY_COUNT(hooks) - (captures ? 0 : CAPTURE_HOOKS); k++)
        if (!hooks[k].there)
            return hooks[k].name;
    return NULL;
}

static enum status check_device(const struct device_kind *kind, struct error *why)
{
    char text[32];
    int index;
    if (!kind || kind->size < offsetof(struct device_kind, activate) || !kind->name)
        return UNSUPPORTED(why, "one of its devices has no size or name");
    if (strchr(kind->name, ':') || device_parse(kind->name, text, &index, why) != STATUS_OK)
        return UNSUPPORTED(why,
                           "its device \"%.40s\" needs a name of 1 to 31 characters and no colon",
                           kind->name);
    const char *missing = missing_hook(kind);
    if (missing)
        return UNSUPPORTED(why, "its device \"%s\" lacks %s", kind->name, missing);
    for (int k = 0; k < device_kind_count(); k++)
        if (strcmp(device_kind_at(k)->name, kind->name) == 0)
            return UNSUPPORTED(why, "there is a device \"%s\" already", kind->name);
    return STATUS_OK;
}

static enum status check_roof(const struct device_roof *roof, struct error *why)
{
    if (!roof->name || !roof->device || !roof->level || !roof->precision || !roof->pattern ||
        !roof->isa || !roof->unit)
        return UNSUPPORTED(why, "one of its roofs lacks a name, or a word that says what it is");
    if (!roof->prepare || !roof->run || !roof->release)
        return UNSUPPORTED(why, "its roof %s lacks prepare, run or release", roof->name);
    return STATUS_OK;
}

static enum status check_roofs(const struct roof_group *group, struct error *why)
{
    if (!group || group->size < offsetof(struct device_roof, release) + sizeof(group->roofs))
        return UNSUPPORTED(why, "one of its groups of roofs has no size");
    for (int k = 0; k < group->count; k++)
        TRY(check_roof(roof_of(group, k), why));
    return STATUS_OK;
}

/* A plug-in that ends before the field has none. */
static int device_count_of(const struct plugin *plugin)
{
    return plugin->size >= offsetof(struct plugin, roofs) ? plugin->device_count : 0;
}

static int roof_group_count_of(const struct plugin *plugin)
{
    return plugin->size >= sizeof(*plugin) ? plugin->roof_group_count : 0;
}

static enum status check_plugin(const struct plugin *plugin, const char *name, struct error *why)
{
    if (plugin->abi != PLUGIN_ABI)
        return UNSUPPORTED(why, "built for plug-in interface %d, this ridge has %d: rebuild it",
                           plugin->abi, PLUGIN_ABI);
    if (plugin->size < offsetof(struct plugin, kernel_count) + sizeof(plugin->kernel_count) ||
        plugin->kernel_size < offsetof(struct kernel, release))
        return UNSUPPORTED(why,
                           "its tables are too short (%zu and %zu bytes): set size and "
                           "kernel_size",
                           plugin->size, plugin->kernel_size);
    if (!plugin->name || strcmp(plugin->name, name) != 0)
        return UNSUPPORTED(why, "it calls itself \"%s\", its file says \"%s\"",
                           plugin->name ? plugin->name : "", name);
    for (int k = 0; k < plugin->kernel_count; k++)
        TRY(check_kernel(plugin, plugin->kernels[k], why));
    for (int k = 0; k < device_count_of(plugin); k++)
        TRY(check_device(plugin->devices[k], why));
    for (int k = 0; k < roof_group_count_of(plugin); k++)
        TRY(check_roofs(plugin->roofs[k], why));
    return STATUS_OK;
}

static enum status take_plugin(void *library, const char *name, const char **version,
                               struct error *why)
{
    void *symbol = library_symbol(library, "ridge_plugin");
    if (!symbol)
        return UNSUPPORTED(why, "does not export ridge_plugin: not a plug-in of ridge");
    ridge_plugin_entry *entry;
    memcpy(&entry, &symbol, sizeof(entry)); /* POSIX's way round ISO C's rule on casts */
    const struct plugin *plugin = entry(&host, why);
    if (!plugin)
        return STATUS_UNSUPPORTED;
    TRY(check_plugin(plugin, name, why));
    for (int k = 0; k < plugin->kernel_count; k++)
        TRY(add_kernel(plugin->kernels[k], plugin->kernel_size, why));
    for (int k = 0; k < device_count_of(plugin); k++)
        TRY(add_device(plugin->devices[k], why));
    for (int k = 0; k < roof_group_count_of(plugin); k++)
        TRY(add_roofs(plugin->roofs[k], why));
    *version = plugin->version ? plugin->version : "";
    return STATUS_OK;
}

static void load_file(const char *path, const char *name)
{
    struct plugin_info info = {.name = name, .path = path, .state = PLUGIN_ABSENT};
    struct error why = {.message = "it gave no reason"};
    void *library;
    if (library_open_one(path, &library, &why) != STATUS_OK) {
        info.reason = why.message;
        add_info(info);
        return;
    }
    if (take_plugin(library, name, &info.version, &why) == STATUS_OK) {
        info.state = PLUGIN_LOADED;
        info.code = plugin_code(path);
    } else {
        info.state = PLUGIN_REFUSED;
        info.reason = why.message;
    }
    add_info(info);
}

/* ---- finding them ---- */

static void load_wanted(const char *path, const char *name, void *context)
{
    const char *const *wanted = context;
    if ((!*wanted || provider_named(*wanted, name)) && !plugin_info_find(name))
        load_file(path, name);
}

static void load_folder(const char *folder, bool named, void *context)
{
    if (!plugin_files_each(folder, load_wanted, context) && named && !plugin_info_find(folder))
        add_info((struct plugin_info){.name = folder,
                                      .path = folder,
                                      .state = PLUGIN_ABSENT,
                                      .reason = "RIDGE_PLUGIN_PATH names it, but there is no "
                                                "such folder"});
}

void plugins_load(const char *wanted)
{
    /* OpenMP's threads spin for 3 to 15 ms after a region by default, on the CPUs that the next
     * kernel's threads want. 20000 rounds are about 0.2 ms to 1 ms; read when libgomp is loaded. */
    setenv("GOMP_SPINCOUNT", "20000", 0);
    plugin_folders_each(load_folder, &wanted);
    const char *name;
    for (int k = 0; (name = plugin_left_out_at(k)) != NULL; k++)
        if ((!wanted || provider_named(wanted, name)) && !plugin_info_find(name))
            add_info((struct plugin_info){
                .name = name, .state = PLUGIN_ABSENT, .reason = plugin_left_out(name)});
}
