/* SPDX-License-Identifier: Apache-2.0
 *
 * The texts of one flat JSON object, such as another ridge prints: {"version": "0.1", ...}; and a
 * single text, for readers of JSON of one certain form. */
#ifndef BASE_TEXT_JSON_READ_H
#define BASE_TEXT_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

/* Copies the text that stands under the key, escapes resolved. False when the object has no such
 * key at its top, when something else than a text stands there, when it is longer than size - 1, or
 * when the JSON is broken before it; text is "" then. */
bool json_read_text(const char *json, const char *key, char *text, size_t size);
/* The text whose opening quote is *at, escapes resolved. Returns what follows its closing quote;
 * NULL when there is none or *at is no quote. *length: its bytes, of which text holds size - 1 at
 * most, and a NUL. */
const char *json_text_at(const char *at, char *text, size_t size, size_t *length);

#endif
