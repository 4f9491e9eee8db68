/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads TOML 1.0 into a tree of plain values that know where they stood, so that every complaint
 * can name file, line and key. base/text/toml.cpp wraps toml++ (Debian has no TOML library for C);
 * it is the only C++ file. Nothing here throws; a syntax error is a status with file:line:column.
 */
#ifndef BASE_TEXT_TOML_H
#define BASE_TEXT_TOML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum toml_kind {
    TOML_TABLE,
    TOML_ARRAY,
    TOML_TEXT,
    TOML_INT,
    TOML_FLOAT,
    TOML_BOOL,
    TOML_OTHER, /* dates and times */
};

struct toml_value {
    enum toml_kind kind;
    const char *key; /* in a table; NULL in an array and for the root */
    const char *file;
    int line, column;
    const char *text; /* TOML_TEXT */
    int64_t integer;
    double number; /* also for TOML_INT */
    bool truth;
    const struct toml_value *first; /* children of a table (in the order of the file) or array */
    const struct toml_value *next;
    int count; /* of children */
};

/* file: the name that messages carry. The tree lives in the arena. Nesting is limited to 32. */
enum status toml_parse(const char *file, const char *text, size_t size, struct arena *arena,
                       const struct toml_value **root, struct error *err);
/* Child of a table by key; NULL when absent or when table is NULL. */
const struct toml_value *toml_find(const struct toml_value *table, const char *key);
/* "table", "string" ... for messages. */
const char *toml_kind_name(enum toml_kind kind);

#ifdef __cplusplus
}
#endif

#endif
