/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens a plug-in when what is in it is needed: plugins/FOLDER/NAME.so, in a folder of its own
 * because plugins/ holds kernels, all of which are opened at every start. Looked for where
 * engine/run/plugin.c looks for kernels. Never closed: libraries that have a state per process do
 * not survive that. */
#ifndef BASE_SYSTEM_PLUGIN_OPEN_H
#define BASE_SYSTEM_PLUGIN_OPEN_H

#include <stddef.h>

struct plugin_wanted {
    const char *folder;  /* "profilers" */
    const char *name;    /* "papi": of the file and of the Makefile's feature */
    const char *symbol;  /* its one export */
    const char *library; /* in the linker's message when the library behind it is missing: ... */
    const char *fix;     /* ... then this is what to do */
};

/* The export's address, or NULL and a reason. */
void *plugin_open(const struct plugin_wanted *wanted, char *reason, size_t size);

#endif
