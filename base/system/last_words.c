/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/last_words.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

/* Bytes above 127 are parts of letters. */
static bool says_something(const char *line, size_t length)
{
    for (size_t k = 0; k < length; k++)
        if (isalnum((unsigned char)line[k]) || (unsigned char)line[k] > 127)
            return true;
    return false;
}

void last_words(int file, char *text, size_t size)
{
    char tail[1024];
    off_t all = file < 0 ? 0 : lseek(file, 0, SEEK_END);
    off_t from = all > (off_t)sizeof(tail) ? all - (off_t)sizeof(tail) : 0;
    ssize_t got = all > 0 ? pread(file, tail, sizeof(tail), from) : 0;
    size_t end = got > 0 ? (size_t)got : 0;
    text[0] = '\0';
    while (end > 0) {
        size_t start = end;
        while (start > 0 && tail[start - 1] != '\n')
            start--;
        size_t length = end - start;
        while (length > 0 && isspace((unsigned char)tail[start + length - 1]))
            length--;
        if (says_something(tail + start, length)) {
            snprintf(text, size, "%.*s", (int)length, tail + start);
            return;
        }
        end = start > 0 ? start - 1 : 0;
    }
}
