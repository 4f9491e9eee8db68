/* SPDX-License-Identifier: Apache-2.0
 *
 * Text from files and command lines, made fit to print. What a terminal would obey or a reader
 * could not see (control characters, marks that turn the direction of writing, the two codes that
 * are no characters) and what is no well-formed UTF-8 becomes U+FFFD each. The output is therefore
 * always valid UTF-8 of one line. */
#ifndef BASE_CLEAN_H
#define BASE_CLEAN_H

#include <stddef.h>
#include <stdio.h>

/* Length of the well-formed UTF-8 sequence at s (RFC 3629), 0 when there is none. */
int utf8_length(const char *s);
/* Length of the character at s when it can be printed as it is, else 0: then one goes on by
 * utf8_length, or by one byte. */
int clean_length(const char *s);
/* Copies, cut between characters to fit; returns `to`. */
const char *clean_copy(char *to, size_t size, const char *from);
/* Replaces in place all but lines and tabs; what takes more room than before is a '?'. */
void clean_lines(char *text);
void clean_put(FILE *stream, const char *text);
/* Takes away what is left of a last character that the end of a buffer has cut; returns the length.
 */
size_t clean_end(char *text);

#endif
