/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of unit tests. */
#ifndef TESTS_LIB_UNIT_FILES_H
#define TESTS_LIB_UNIT_FILES_H

/* An empty file in /tmp for each test: before_each and after_each of a program's fixture. */
extern char test_file[64];
int test_file_open(void **state);
int test_file_remove(void **state);

/* A file of this text, in place of what was there. */
void write_file(const char *path, const char *text);

/* For tests of what reads /proc, /sys and the like: a file of a machine that is not this one, below
 * a folder. Writes root/path, and makes the folders that it needs; path begins with '/'. */
void put_file(const char *root, const char *path, const char *text);

#endif
