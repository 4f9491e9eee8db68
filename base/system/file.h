/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole file as read-only memory. Mapped, not read: weights of gigabytes cost no copy, and pages
 * that are not looked at cost nothing. And the folders that a file to be written needs. */
#ifndef BASE_SYSTEM_FILE_H
#define BASE_SYSTEM_FILE_H

#include <stddef.h>

#include "base/error.h"

struct file {
    const void *data; /* NULL when empty */
    size_t size;
};

/* Regular files only; the message names the path and what was wrong with it. */
enum status file_map(const char *path, struct file *file, struct error *err);
/* The same for a path inside a folder, which no ".." and no link may lead out of. */
enum status file_map_beneath(const char *folder, const char *path, struct file *file,
                             struct error *err);
void file_unmap(struct file *file); /* a zeroed struct file is fine */

/* Makes the folders before a path's last '/', as far as they are missing. */
enum status folders_make(const char *path, struct error *err);

#endif
