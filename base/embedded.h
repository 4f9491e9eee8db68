/* SPDX-License-Identifier: Apache-2.0
 *
 * Data files that the program carries in itself, so that one binary is enough: schema, views,
 * plots, profiler groups, suites. The Makefile writes them into build/<config>/gen/embedded.c.
 * A folder of such files is a catalogue like any other: adding one is adding a file.
 */
#ifndef BASE_EMBEDDED_H
#define BASE_EMBEDDED_H

#include <stddef.h>

struct embedded {
    const char *path; /* from the root of the sources: "results/views/roofline.sql" */
    const char *text; /* ends in a NUL that size does not count */
    size_t size;
};

/* In the order of their paths; a path of NULL ends the array. */
extern const struct embedded embedded_files[];

const struct embedded *embedded_find(const char *path);
/* The next file of a folder ("results/views/") after `after` (NULL: the first). */
const struct embedded *embedded_next(const char *folder, const struct embedded *after);

#endif
