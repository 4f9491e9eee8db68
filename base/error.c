/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum status error_set(struct error *err, enum status code, const char *file, int line,
                      const char *format, ...)
{
    if (!err)
        return code;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    err->code = code;
    err->file = file;
    err->line = line;
    return code;
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
    snprintf(text + used, sizeof(text) - (size_t)used, ": %.*s",
             (int)(sizeof(text) - (size_t)used - 3), err->message);
    memcpy(err->message, text, sizeof(text));
    return err->code;
}
