/* SPDX-License-Identifier: Apache-2.0
 *
 * Citation graphs: Cora and the like. They are no samples: gcn reads the folder itself
 * (workloads/data/cora.h), for papers and links say how large the network is. */
#include <stdio.h>
#include <string.h>

#include "workloads/data/data.h"

static enum status cora_parameters(const char *folder, char *text, size_t size, struct error *err)
{
    static const char *const sets[] = {"cora", "citeseer", "pubmed"};
    const struct data_source source = {.folder = folder};
    const char *found = NULL;
    for (int k = 0; k < ARRAY_COUNT(sets) && !found; k++) {
        char name[32];
        snprintf(name, sizeof(name), "%s.content", sets[k]);
        if (data_has(&source, name))
            found = sets[k];
    }
    if (!found)
        return FAIL(err, STATUS_FAILED,
                    "%s: none of cora.content, citeseer.content, "
                    "pubmed.content is there",
                    folder);
    if (strchr(folder, ','))
        return FAIL(err, STATUS_FAILED, "%s: a path with a comma cannot be a parameter", folder);
    if (snprintf(text, size, "dataset=%s,data=%s", found, folder) >= (int)size)
        return FAIL(err, STATUS_FAILED, "%s: too long a path", folder);
    return STATUS_OK;
}

REGISTER(data_format, cora) = {
    .name = "cora",
    .summary = "citation graphs: cora.content and cora.cites; citeseer, pubmed likewise",
    .marks = {"cora.content", "citeseer.content", "pubmed.content"},
    .inside = {"cora", "citeseer", "pubmed"},
    .parameters = cora_parameters,
};
