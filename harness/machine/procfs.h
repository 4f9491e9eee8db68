/* SPDX-License-Identifier: Apache-2.0
 *
 * Small readers for /proc and /sys. `root` is put in front of every path: "" on a real machine, a
 * folder with copies of such files in tests. Text that could not be read is "".
 */
#ifndef HARNESS_MACHINE_PROCFS_H
#define HARNESS_MACHINE_PROCFS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "results/record.h"

/* First line of a file without blanks at its ends. */
enum fact_status procfs_line(const char *root, const char *path, char *text, size_t size);
/* The whole file, at most 1 MiB, in the arena; its bytes may hold NULs. NULL unless FACT_OK. */
char *procfs_text(const char *root, const char *path, struct arena *arena, size_t *size,
                  enum fact_status *status);
/* Value of the first line "key : value" (also "key value"); key is matched up to blank or colon. */
enum fact_status procfs_key(const char *root, const char *path, const char *key, char *value,
                            size_t size);
/* "always [madvise] never": the word in brackets. */
enum fact_status procfs_choice(const char *root, const char *path, char *text, size_t size);

/* CPUs' worth of time that the control group and those above it grant, of either version; -1: no
 * limit, or not known. */
double procfs_cpu_quota(const char *root);
/* Folder of this process's control group (version 2) under /sys/fs/cgroup, "" at its top. */
void procfs_cgroup(const char *root, char *path, size_t size);

#endif
