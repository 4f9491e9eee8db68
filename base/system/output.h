/* SPDX-License-Identifier: Apache-2.0
 *
 * The one way in which Ridge writes files: models, tables, reports, plots, tensors, caches. What is
 * written goes to a temporary file beside the place and is renamed into it once it is whole; until
 * then, and after any failure, the old file stays. Only regular files are replaced: a device, a
 * pipe, a socket or a folder is refused. A link stays and its file is replaced; permissions stay.
 * The temporary file is locked while its writer lives, so that the next one clears away what a
 * killed process left. Standard output is written through, for "-" and its names in /dev. */
#ifndef BASE_SYSTEM_OUTPUT_H
#define BASE_SYSTEM_OUTPUT_H

#include <stdio.h>

#include "base/error.h"

enum output_kind {
    OUTPUT_PRECIOUS, /* on the disk before the old file goes: survives a power cut */
    OUTPUT_DERIVED   /* made again at any time from what is stored: not waited for */
};

struct output {
    FILE *stream;
    char *part;   /* path of the temporary file, NULL for standard output; owned */
    char *target; /* the file to be replaced, links followed; owned */
    enum output_kind kind;
};

/* Whether output_open would refuse the path for what is there. */
enum status output_check(const char *path, struct error *err);
/* The same, and whether its folder is there and takes files: before long work that ends there. */
enum status output_check_folder(const char *path, struct error *err);
/* path NULL is standard output. */
enum status output_open(struct output *out, const char *path, enum output_kind kind,
                        struct error *err);
/* Writes out what is buffered: before several files are closed that only go together. */
enum status output_flush(const struct output *out, struct error *err);
/* With `status` OK the file takes its place; otherwise nothing changes. Gives `status` or why
 * closing failed; err keeps the first failure. A zeroed struct output is fine. */
enum status output_close(struct output *out, enum status status, struct error *err);

#endif
