/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the text of a suite comes from: a file, or the program itself. */
#ifndef HARNESS_SUITE_SUITE_SOURCE_H
#define HARNESS_SUITE_SUITE_SOURCE_H

#include <limits.h>
#include <stdbool.h>

#include "base/system/file.h"
#include "harness/suite/suite_values.h"

struct suite_source {
    char path[PATH_MAX]; /* shown, and what includes are relative to */
    const char *text;    /* NULL: a file that is not open */
    size_t size;
    struct file file;
};

/* A file `word` beside the suite `from` (NULL: the working folder), else an embedded suite of this
 * path or name. */
enum status suite_source_find(const char *word, const char *from, const struct suite_place *place,
                              struct suite_source *source, struct error *err);
enum status suite_source_open(struct suite_source *source, struct error *err);
void suite_source_close(struct suite_source *source);

enum { SUITE_NAMES_MAX = 32, SUITE_NAME_BYTES = 64 };

/* Names of the embedded suites, at most `names_max`; names point into text. Returns how many. */
int suite_source_names(char text[][SUITE_NAME_BYTES], const char **names, int names_max);

#endif
