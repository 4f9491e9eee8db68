/* SPDX-License-Identifier: Apache-2.0
 *
 * The entry of the plug-in and its table: one kernel per file of engine/kernels/onednn/. */
#include <stdio.h>
#include <string.h>

#include "engine/kernels/onednn/lib/adapter.h"

#define X(name) extern const struct kernel kernel_onednn_##name;
#include "onednn_list.inc"
#undef X

static const struct kernel *const kernels[] = {
#define X(name) &kernel_onednn_##name,
#include "onednn_list.inc"
#undef X
};

const struct plugin_host *onednn_host; /* set once, at the entry */
dnnl_engine_t onednn_engine;
static char version[64];

enum status onednn_refuse(struct error *why, dnnl_status_t status, const char *call)
{
    static const char *const names[] = {"success",       "out of memory", "invalid arguments",
                                        "unimplemented", "iterator ends", "runtime error",
                                        "not required"};
    const char *name = status >= 0 && status < ARRAY_COUNT(names) ? names[status] : "?";
    return onednn_host->refuse(why,
                               status == dnnl_out_of_memory ? STATUS_NO_MEMORY : STATUS_UNSUPPORTED,
                               "%.*s: %s", (int)strcspn(call, "("), call, name);
}

static const struct plugin table = {
    .abi = PLUGIN_ABI,
    .size = sizeof(struct plugin),
    .kernel_size = sizeof(struct kernel),
    .name = "onednn",
    .version = version,
    .kernels = kernels,
    .kernel_count = ARRAY_COUNT(kernels),
};

const struct plugin *ridge_plugin(const struct plugin_host *host, struct error *why)
{
    if (host->abi != PLUGIN_ABI)
        return &table; /* the host compares both numbers */
    onednn_host = host;
    const dnnl_version_t *library = dnnl_version();
    if (library->major != DNNL_VERSION_MAJOR) {
        host->refuse(why, STATUS_UNSUPPORTED, "oneDNN %d.%d is there, built for version %d",
                     library->major, library->minor, DNNL_VERSION_MAJOR);
        return NULL;
    }
    snprintf(version, sizeof(version), "%d.%d.%d isa %#x", library->major, library->minor,
             library->patch, (unsigned)dnnl_get_effective_cpu_isa());
    team_remember_cpus();
    if (dnnl_engine_create(&onednn_engine, dnnl_cpu, 0) != dnnl_success) {
        host->refuse(why, STATUS_UNSUPPORTED, "oneDNN has no engine for this CPU");
        return NULL;
    }
    return &table;
}
