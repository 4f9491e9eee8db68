/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface between ridge and a plug-in that has a backend: plugins/collective/NAME.so with one
 * export. It links the parts of ridge that it needs (Makefile); both are built from one tree, and
 * BACKEND_ABI rises with every change of backend.h or engine/run/comm.h. */
#ifndef COLLECTIVE_PLUGIN_H
#define COLLECTIVE_PLUGIN_H

#include "collective/backend.h"

enum { BACKEND_ABI = 3 };

struct backend_plugin {
    int abi; /* BACKEND_ABI; nothing else is read where it differs */
    const struct backend *backend;
};

/* NULL and a reason where the library cannot be used. Called any number of times. */
typedef const struct backend_plugin *ridge_backend_entry(struct error *why);
extern __attribute__((visibility("default"))) ridge_backend_entry ridge_backend;

#endif
