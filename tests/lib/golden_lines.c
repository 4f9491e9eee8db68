/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/golden_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 160, NUMBER_BYTES = 40 };

/* Behind `head`, which a line begins with; NULL: no line does. */
static const char *find_line(const char *text, const char *end, const char *head)
{
    size_t length = strlen(head);
    while (text && (size_t)(end - text) > length) {
        if (memcmp(text, head, length) == 0)
            return text + length;
        text = memchr(text, '\n', (size_t)(end - text));
        text = text ? text + 1 : NULL;
    }
    return NULL;
}

enum status golden_line(const struct file *golden, const char *whose, const char *what,
                        double *numbers, int max, int *count, struct error *err)
{
    char head[HEAD_BYTES], number[NUMBER_BYTES];
    const char *end = (const char *)golden->data + golden->size;
    snprintf(head, sizeof(head), "%s %s ", whose, what);
    const char *at = find_line(golden->data, end, head);
    if (!at)
        return FAIL(err, STATUS_FAILED, "no line begins with \"%s\"", head);
    for (*count = 0; at < end && *at != '\n'; (*count)++) {
        size_t length = 0;
        while (at + length < end && !strchr(" \n", at[length]) && length + 1 < sizeof(number))
            length++;
        memcpy(number, at, length);
        number[length] = '\0';
        if (*count == max)
            return FAIL(err, STATUS_FAILED, "line \"%s\" has more than %d numbers", head, max);
        numbers[*count] = strtod(number, NULL);
        at += length + (at + length < end && at[length] == ' ');
    }
    return STATUS_OK;
}
