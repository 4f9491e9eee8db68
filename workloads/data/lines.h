/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of lines of fields: CSV without quotes, and the like. */
#ifndef WORKLOADS_DATA_LINES_H
#define WORKLOADS_DATA_LINES_H

#include <stdint.h>

#include "workloads/data/data.h"

/* Text that does not end in 0. */
struct field {
    const char *text;
    int length;
};

struct lines {
    const char *name, *at, *end;
    int64_t number; /* of the line, from 1 */
    bool unended;   /* the line was the last one and has no line feed */
};

/* A mark of byte order before the first line is passed over. */
struct lines lines_of(const struct data_text *text);
/* Lines of more than 1 MiB are cut there. False: there are no more. */
bool lines_next(struct lines *lines, struct field *line);
/* Takes the text before the next separator off the line, without blanks around it; false: the line
 * is used up. line->text NULL: nothing is left, not even an empty field. */
bool field_take(struct field *line, const char *separator, struct field *field);
bool field_is(const struct field *field, const char *text);
/* Which of `count` words it is; -1: none. */
int field_among(const struct field *field, const char *const *words, int count);
bool field_int(const struct field *field, int64_t *value);
bool field_number(const struct field *field, double *value);
int field_shown(const struct field *field); /* how much of it a message shows: "%.*s" */

#endif
