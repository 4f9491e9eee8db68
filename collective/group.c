/* SPDX-License-Identifier: Apache-2.0
 *
 * Groups of backends. One of a device finds and watches its ranks by another backend: the one whose
 * launcher has started them, else memory that they share. */
#include "collective/backend.h"
#include "engine/run/device.h"

enum status group_make(const struct backend *backend, int ranks,
                       const struct group_options *options, struct group **out, struct error *err)
{
    struct group_options all = *options;
    int rank, started;
    if (!backend->device)
        return backend->group_new(ranks, options, out, err);
    const struct backend *starter = backend_starter(&rank, &started);
    TRY(backend_ready(starter ? starter : backend_find("shm"), &all.control, err));
    all.device_open = device_open;
    all.device_close = device_close;
    return backend->group_new(ranks, &all, out, err);
}
