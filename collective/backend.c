/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/backend.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/plugin_open.h"
#include "collective/plugin.h"

#define X(name) extern const struct backend backend_##name;
#include "backend_list.inc"
#undef X

static const struct backend *const backends[] = {
#define X(name) &backend_##name,
#include "backend_list.inc"
#undef X
};

int backend_count(void)
{
    return ARRAY_COUNT(backends);
}

const struct backend *backend_at(int index)
{
    return backends[index];
}

const struct backend *backend_find(const char *name)
{
    for (int k = 0; k < ARRAY_COUNT(backends); k++)
        if (strcmp(backends[k]->name, name) == 0)
            return backends[k];
    return NULL;
}

enum status link_open(const struct backend *backend, struct group *group, int rank,
                      struct link *out, struct error *err)
{
    *out = (struct link){.backend = backend, .group = group, .rank = rank};
    return backend->open(out, err);
}

enum status backend_ready(const struct backend *backend, const struct backend **out,
                          struct error *err)
{
    char reason[400];
    ridge_backend_entry *entry;
    struct error why = {0};
    *out = backend;
    if (!backend->plugin)
        return STATUS_OK;
    void *symbol = plugin_open(backend->plugin, reason, sizeof(reason));
    if (!symbol)
        return UNSUPPORTED(err, "%s is not here: %s", backend->name, reason);
    memcpy(&entry, &symbol, sizeof(entry)); /* POSIX's way round ISO C's rule on casts */
    const struct backend_plugin *plugin = entry(&why);
    if (!plugin)
        return UNSUPPORTED(err, "%s is not here: %s", backend->name, why.message);
    if (plugin->abi != BACKEND_ABI)
        return UNSUPPORTED(err, "%s is not here: its plug-in was built for another ridge: make",
                           backend->name);
    *out = plugin->backend;
    return STATUS_OK;
}

void backend_version(const struct backend *backend, char *text, size_t size)
{
    const struct backend *ready;
    text[0] = '\0';
    if (backend_ready(backend, &ready, NULL) == STATUS_OK && ready->version)
        ready->version(text, size);
}

static bool number_among(const char *const *variables, int *out)
{
    for (int k = 0; variables[k]; k++) {
        const char *text = getenv(variables[k]);
        char *end;
        if (!text)
            continue;
        *out = (int)strtol(text, &end, 10);
        return end != text;
    }
    return false;
}

bool backend_launched(const struct backend *backend, int *rank, int *ranks)
{
    const struct launcher *launcher = backend->launcher;
    return launcher && number_among(launcher->rank_variables, rank) &&
           number_among(launcher->ranks_variables, ranks) && *rank >= 0 && *rank < *ranks;
}

const struct backend *backend_starter(int *rank, int *ranks)
{
    for (int k = 0; k < backend_count(); k++)
        if (backend_launched(backend_at(k), rank, ranks))
            return backend_at(k);
    return NULL;
}

enum status backend_check_starter(struct error *err)
{
    static const char *const task[] = {"SLURM_PROCID", NULL};
    static const char *const tasks[] = {"SLURM_STEP_NUM_TASKS", NULL};
    int rank, ranks;
    if (!number_among(task, &rank) || !number_among(tasks, &ranks) || ranks < 2 ||
        backend_starter(&rank, &ranks))
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED,
                "srun has started %d tasks that know nothing of each other: srun --mpi=pmi2 is for "
                "MPICH, --mpi=pmix for Open MPI, and with -n 1 this command starts its own ranks",
                ranks);
}
