/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface between ridge and a plug-in: a shared object that brings kernels (and, later,
 * devices, profilers and communicators) which need a library or an accelerator of their own.
 *
 * A plug-in exports one function, ridge_plugin. Ridge calls it once after dlopen with what the host
 * offers; the plug-in answers with a table that stays valid until the program ends, or with NULL
 * and a reason (library too old, no device). Nothing else of ridge may be called: the functions of
 * struct plugin_host and the inline data of engine/kernel.h are the whole contract. Structs grow at
 * their end only; a plug-in built against another PLUGIN_ABI is refused with both numbers.
 * A complete plug-in that lives outside the tree: tests/plugin_sample/.
 */
#ifndef ENGINE_PLUGIN_H
#define ENGINE_PLUGIN_H

#include "engine/kernel.h"

enum { PLUGIN_ABI = 1 };

struct plugin_host {
    int abi; /* PLUGIN_ABI of the host */
    size_t size;
    const struct attr *(*node_attr)(const struct node *node, const char *name);
    int64_t (*node_int)(const struct node *node, const char *name, int64_t fallback);
    double (*node_float)(const struct node *node, const char *name, double fallback);
    const char *(*node_string)(const struct node *node, const char *name, const char *fallback);
    int (*node_ints)(const struct node *node, const char *name, int64_t *values, int max);
    const char *(*node_op)(const struct node *node); /* operator's ONNX name */
    bool (*desc_is_plain)(const struct desc *desc);
    bool (*desc_is_nhwc)(const struct desc *desc);
    void (*pool_run)(struct pool *pool, int64_t tiles, pool_work *work, void *context);
    int (*pool_threads)(const struct pool *pool);
    enum status (*refuse)(struct error *why, enum status code, const char *format, ...);
};

struct plugin {
    int abi; /* PLUGIN_ABI the plug-in was built with */
    size_t size;
    const char *name;    /* "onednn": what --providers calls it */
    const char *version; /* of the library behind it; part of the tuner's key */
    const struct kernel *const *kernels;
    int kernel_count;
};

typedef const struct plugin *ridge_plugin_entry(const struct plugin_host *host, struct error *why);
extern ridge_plugin_entry ridge_plugin;

/* ---- host side ---- */

enum plugin_state { PLUGIN_LOADED, PLUGIN_REFUSED, PLUGIN_ABSENT };

struct plugin_info {
    const char *name, *path;
    enum plugin_state state;
    const char *version; /* LOADED */
    const char *reason;  /* REFUSED, ABSENT */
};

/* Opens every *.so in the plug-in folders (beside the program, RIDGE_PLUGIN_PATH) once; `wanted`
 * is a --providers list or NULL for all. Called by commands before any executable is made. */
void plugins_load(const char *wanted);
int plugin_info_count(void);
const struct plugin_info *plugin_info_at(int index);

#endif
