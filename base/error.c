/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clean.h"

enum status error_set(struct error *err, enum status code, const char *file, int line,
                      const char *format, ...)
{
    if (!err)
        return code;
    char text[sizeof(err->message)];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    clean_copy(err->message, sizeof(err->message), text); /* names from files are part of it */
    err->code = code;
    err->file = file;
    err->line = line;
    return code;
}

static const char gap[] = ": ...: ";

/* The message where it fits, else its end, from where a context or the cause begins: the cause
 * stands last and must not be what is cut off. A cause that is too long alone loses its end. */
static const char *tail_of(const char *message, size_t room)
{
    size_t length = strlen(message);
    if (length <= room || room >= sizeof(((struct error *)0)->message))
        return message;
    const char *next = strstr(message + (length - room), ": ");
    if (next && strncmp(next, gap, strlen(gap)) == 0)
        return next + strlen(gap); /* of an earlier cut */
    return next ? next + 2 : message;
}

enum status error_context(struct error *err, const char *format, ...)
{
    if (!err)
        return STATUS_FAILED;
    char text[sizeof(err->message)];
    va_list args;
    va_start(args, format);
    int used = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (used < 0 || (size_t)used >= sizeof(text))
        return err->code;
    const char *rest = tail_of(err->message, sizeof(text) - (size_t)used - sizeof(gap));
    bool whole = rest == err->message;
    snprintf(text + used, sizeof(text) - (size_t)used, "%s%.*s", whole ? ": " : gap,
             (int)(sizeof(text) - (size_t)used - (whole ? 3 : sizeof(gap))), rest);
    clean_copy(err->message, sizeof(err->message), text);
    return err->code;
}
