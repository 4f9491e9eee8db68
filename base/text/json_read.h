/* SPDX-License-Identifier: Apache-2.0
 *
 * The texts of one flat JSON object, such as another ridge prints: {"version": "0.1", ...}. */
#ifndef BASE_JSON_READ_H
#define BASE_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

/* Copies the text that stands under the key, escapes resolved. False when the object has no such
 * key at its top, when something else than a text stands there, when it is longer than size - 1, or
 * when the JSON is broken before it; text is "" then. */
bool json_read_text(const char *json, const char *key, char *text, size_t size);

#endif
