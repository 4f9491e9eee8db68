/* SPDX-License-Identifier: Apache-2.0
 *
 * For unit tests of what reads /proc, /sys and the like: the files of a machine that is not this
 * one, below a folder. */
#ifndef TESTS_LIB_UNIT_FILES_H
#define TESTS_LIB_UNIT_FILES_H

/* Writes root/path, and makes the folders that it needs; path begins with '/'. */
void put_file(const char *root, const char *path, const char *text);

#endif
