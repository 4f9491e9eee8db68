/* SPDX-License-Identifier: Apache-2.0
 *
 * How much more memory this process can have. `root` is put in front of every path, as in
 * harness/machine/procfs.h. */
#ifndef HARNESS_WATCH_FREE_MEMORY_H
#define HARNESS_WATCH_FREE_MEMORY_H

#include <stdbool.h>

struct free_memory {
    double bytes;    /* INFINITY: nothing says how much */
    char where[128]; /* "on this machine", "in this control group of 1.5 GB" */
    bool is_address; /* of the address space: what is reserved counts as well as what is used */
};

/* The least of: MemAvailable; what each control group above this process grants and does not use
 * (versions 1 and 2; pages of files can be reclaimed and count as free, swap does not count); what
 * `ulimit -v` and `ulimit -d` leave. */
struct free_memory free_memory_find(const char *root);

#endif
