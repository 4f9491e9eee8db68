/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes JSON to a stream, indented, with commas and escapes put by itself. NaN and infinities
 * become null. Example: json_open(&j, NULL, '{'); json_int(&j, "batch", 32); json_close(&j);
 * Inside an array the key is NULL.
 */
#ifndef BASE_TEXT_JSON_H
#define BASE_TEXT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 32 };

struct json {
    FILE *stream;
    int depth;
    bool compact;
    bool filled[JSON_DEPTH]; /* something was written at this depth */
    char close[JSON_DEPTH];
};

void json_begin(struct json *json, FILE *stream);
void json_open(struct json *json, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *json);
void json_text(struct json *json, const char *key, const char *value); /* NULL: null */
void json_int(struct json *json, const char *key, int64_t value);
void json_number(struct json *json, const char *key, double value);
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
void json_verbatim(struct json *json, const char *key, const char *value); /* JSON itself */
void json_ints(struct json *json, const char *key, const int64_t *values, int count);

#endif
