/* SPDX-License-Identifier: Apache-2.0
 *
 * Characters of UTF-8 text: what cuts words, and letters without capitals and accents. */
#ifndef WORKLOADS_DATA_CHARACTERS_H
#define WORKLOADS_DATA_CHARACTERS_H

#include <stdbool.h>
#include <stdint.h>

/* The character at `text`, of which `length` bytes are left, 1 at least; *bytes: of it. 0: none
 * that is well-formed, one byte long. */
uint32_t character_take(const char *text, int length, int *bytes);
/* Writes it, at most 4 bytes; returns how many. */
int character_put(uint32_t c, char *text);

bool character_is_blank(uint32_t c);
bool character_is_control(uint32_t c); /* no part of any word */
bool character_is_punctuation(uint32_t c);
bool character_is_chinese(uint32_t c); /* which is a word by itself */
/* The small letter without its accent; 0: an accent. */
uint32_t character_small(uint32_t c);

#endif
