/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens what a profiler has behind a shared object: plugins/profilers/NAME.so, in a folder of its
 * own because plugins/ holds kernels, all of which are opened at every start. Looked for where
 * engine/run/plugin.c looks for kernels, when it is needed. Never closed: libraries that have a
 * state per process do not survive that.
 */
#ifndef PROFILERS_LIB_PLUGIN_H
#define PROFILERS_LIB_PLUGIN_H

#include <stddef.h>

struct profiler_plugin {
    const char *name;    /* "papi": of the file and of the Makefile's feature */
    const char *symbol;  /* its one export */
    const char *library; /* in the linker's message when the library behind it is missing: ... */
    const char *fix;     /* ... then this is what to do */
};

/* The export's address, or NULL and a reason. */
void *profiler_plugin_open(const struct profiler_plugin *plugin, char *reason, size_t size);

#endif
