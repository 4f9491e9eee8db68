/* SPDX-License-Identifier: Apache-2.0 */
#include "base/embedded.h"

#include <string.h>

const struct embedded *embedded_find(const char *path)
{
    for (const struct embedded *file = embedded_files; file->path; file++)
        if (strcmp(file->path, path) == 0)
            return file;
    return NULL;
}

const struct embedded *embedded_next(const char *folder, const struct embedded *after)
{
    for (const struct embedded *file = after ? after + 1 : embedded_files; file->path; file++)
        if (strncmp(file->path, folder, strlen(folder)) == 0)
            return file;
    return NULL;
}
