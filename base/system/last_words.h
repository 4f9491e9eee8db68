/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process wrote last before it died, which mostly says why. */
#ifndef BASE_SYSTEM_LAST_WORDS_H
#define BASE_SYSTEM_LAST_WORDS_H

#include <stddef.h>

/* The last line in the file that has a letter or a digit: launchers draw rules of dashes below what
 * they say. "" when there is none among the last 1024 bytes, or no file (file < 0). */
void last_words(int file, char *text, size_t size);

#endif
