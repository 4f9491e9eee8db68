/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/unit/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/unit.h"

char test_file[64];

int test_file_open(void **state)
{
    (void)state;
    snprintf(test_file, sizeof(test_file), "/tmp/ridge-test-XXXXXX");
    int file = mkstemp(test_file);
    return file < 0 ? -1 : close(file);
}

int test_file_remove(void **state)
{
    (void)state;
    return remove(test_file);
}

void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

void put_file(const char *root, const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof(whole), "%s%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(whole, 0755);
        *at = '/';
    }
    write_file(whole, text);
}
