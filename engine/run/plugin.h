/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface between ridge and a plug-in: a shared object that brings kernels and devices which
 * need a library or an accelerator of their own. Backends between ranks have another interface,
 * collective/plugin.h.
 *
 * A plug-in is one file, <name>.so, that exports one function, ridge_plugin. Life cycle:
 *   1. ridge opens the file with RTLD_NOW | RTLD_LOCAL. A library it needs and cannot have makes it
 *      ABSENT, with the linker's message as the reason.
 *   2. ridge calls ridge_plugin once, with what the host offers. The plug-in compares host->abi
 *      with its own PLUGIN_ABI, looks at its library and device, reads the environment, and answers
 *      with a table that stays valid until the program ends, or with NULL and a reason.
 *   3. ridge checks the table (ABI, name, each kernel's mandatory fields) and copies the kernels.
 *   4. Their hooks are called as engine/graph/kernel.h says, by one thread at a time for one state.
 * The first call on a new signature runs in a forked child if the kernel is `distrusted`. It is
 * never closed: libraries with threads of their own do not survive that.
 *
 * The whole contract is this file's first half, the inline data of engine/graph/kernel.h, and what
 * those include; no other symbol of ridge can be reached. What knows a node's geometry and nothing
 * of running it (windows, axes, products, moves, expressions: engine/ops/lib/) is linked into a
 * plug-in instead: build/release/libplugin.a has it. Structs grow at their end only, and
 * `size` says how much of one the other side has: a plug-in built before a field existed has it
 * zeroed. Any other change raises PLUGIN_ABI, and the other number is refused. A complete plug-in
 * that lives outside the tree: tests/plugin_sample/. How to write one: docs/plugins.md.
 */
#ifndef ENGINE_RUN_PLUGIN_H
#define ENGINE_RUN_PLUGIN_H

#include "engine/graph/kernel.h"
#include "engine/run/device.h"
#include "engine/run/device_roof.h"

enum { PLUGIN_ABI = 2 };

/* What a plug-in may call. Valid until the program ends. */
struct plugin_host {
    int abi;     /* PLUGIN_ABI of the host; look at it before anything else */
    size_t size; /* of this struct in the host */
    /* The node: engine/graph/graph.h. */
    const struct attr *(*node_attr)(const struct node *node, const char *name);
    int64_t (*node_int)(const struct node *node, const char *name, int64_t fallback);
    double (*node_float)(const struct node *node, const char *name, double fallback);
    const char *(*node_string)(const struct node *node, const char *name, const char *fallback);
    int (*node_ints)(const struct node *node, const char *name, int64_t *values, int max);
    const char *(*node_op)(const struct node *node); /* operator's ONNX name */
    /* Memory: engine/graph/tensor.h. */
    bool (*desc_is_plain)(const struct desc *desc);
    bool (*desc_is_nhwc)(const struct desc *desc);
    bool (*desc_is_dense)(const struct desc *desc);
    bool (*desc_same_memory)(const struct desc *a, const struct desc *b);
    /* Threads: base/system/pool.h. */
    void (*pool_run)(struct pool *pool, int64_t tiles, pool_work *work, void *context);
    int (*pool_threads)(const struct pool *pool);
    /* Fills why (which may be NULL) and returns code: `return host->refuse(why, ...)`. */
    __attribute__((format(printf, 3, 4))) enum status (*refuse)(struct error *why, enum status code,
                                                                const char *format, ...);
};

/* What a plug-in answers with. */
struct plugin {
    int abi;             /* PLUGIN_ABI the plug-in was built with */
    size_t size;         /* sizeof(struct plugin) there */
    size_t kernel_size;  /* sizeof(struct kernel) there */
    const char *name;    /* the file's name without .so, and every kernel's provider */
    const char *version; /* of the library behind it, with choices that change speed ("0.3.21
                            Haswell"); part of the tuner's key */
    const struct kernel *const *kernels;
    int kernel_count;
    const struct device_kind *const *devices; /* engine/run/device.h; their names are new ones */
    int device_count;
    const struct roof_group *const *roofs; /* engine/run/device_roof.h; of any device */
    int roof_group_count;
};

/* The one export. The program will fork (engine/run/probe.h): threads that are started here, or by
 * a library that is opened here, must survive that or be restarted (pthread_atfork). */
typedef const struct plugin *ridge_plugin_entry(const struct plugin_host *host, struct error *why);
extern __attribute__((visibility("default"))) ridge_plugin_entry ridge_plugin;

/* ---- host side: nothing below is for plug-ins ---- */

enum plugin_state {
    PLUGIN_LOADED,
    PLUGIN_REFUSED, /* opened, but it or ridge said no */
    PLUGIN_ABSENT,  /* not built, or a library it needs is missing */
};

struct plugin_info {
    const char *name;
    const char *path; /* NULL: not built */
    enum plugin_state state;
    const char *version; /* LOADED */
    uint64_t code;       /* LOADED: plugin_code() of the file, base/system/plugin_files.h */
    const char *reason;  /* REFUSED, ABSENT */
};

/* Opens every *.so in the plug-in folders: those of RIDGE_PLUGIN_PATH (separated by colons),
 * plugins/ beside the program, build/release/plugins/ beside the program; of two with one name the
 * first counts. `wanted` is a --providers list ("native,onednn") or NULL for all; what is not
 * wanted is not opened. Called by commands before any executable, pool or thread is made: plug-ins
 * read the process's CPU mask. A later call opens only what was not wanted before. */
void plugins_load(const char *wanted);
int plugin_info_count(void);
const struct plugin_info *plugin_info_at(int index);
const struct plugin_info *plugin_info_find(const char *name); /* NULL: none of that name */
/* Version of a loaded plug-in; NULL when there is none of that name. */
const char *plugin_version(const char *name);

/* What plug-ins are given, for tests that link a plug-in's parts. */
const struct plugin_host *plugin_host(void);

/* Kernels of all loaded plug-ins, in order of loading; kernel_at() goes on with these. */
int plugin_kernel_count(void);
const struct kernel *plugin_kernel_at(int index);
/* The same for kinds of devices and device_kind_at(). */
int plugin_device_count(void);
const struct device_kind *plugin_device_at(int index);

#endif
