/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/unit/files.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/lib/unit.h"

void put_file(const char *root, const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof(whole), "%s%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(whole, 0755);
        *at = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}
