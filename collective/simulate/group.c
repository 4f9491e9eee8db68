/* SPDX-License-Identifier: Apache-2.0
 *
 * In the place of collective/group.c: simulated ranks have no devices. */
#include "collective/backend.h"

enum status group_make(const struct backend *backend, int ranks,
                       const struct group_options *options, struct group **out, struct error *err)
{
    return backend->group_new(ranks, options, out, err);
}
