/* SPDX-License-Identifier: Apache-2.0
 *
 * The folders above a file that is to be written. */
#define _GNU_SOURCE

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "tests/lib/child.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"

struct place {
    char folder[64], path[128];
};

static int place_open(void **state)
{
    static struct place place;
    snprintf(place.folder, sizeof(place.folder), "/tmp/ridge-file-XXXXXX");
    assert_non_null(mkdtemp(place.folder));
    *state = &place;
    return 0;
}

static int place_close(void **state)
{
    struct place *place = *state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", place->folder);
    return system(command);
}

/* A path in the folder of this test. */
static const char *at(struct place *place, const char *rest)
{
    snprintf(place->path, sizeof(place->path), "%s/%s", place->folder, rest);
    return place->path;
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

TEST(path_without_a_folder)
{
    MUST(folders_make, "");
    MUST(folders_make, "file");
    MUST(folders_make, "/file");
    assert_int_not_equal(access("file", F_OK), 0);
}

TEST(nested_folders)
{
    MUST(folders_make, at(*state, "one/two//three/file"));
    assert_true(is_folder(at(*state, "one/two/three")));
    assert_int_not_equal(access(at(*state, "one/two/three/file"), F_OK), 0);
    MUST(folders_make, at(*state, "one/two/three/file"));
    MUST(folders_make, at(*state, "one/other/"));
    assert_true(is_folder(at(*state, "one/other")));
}

TEST(a_file_in_the_way)
{
    write_file(at(*state, "file"), "text");
    FAILS(STATUS_FAILED, "/file: File exists", folders_make, at(*state, "file/sub/file"));
    MUST(folders_make, at(*state, "file"));
}

TEST(a_path_that_is_too_long)
{
    char path[PATH_MAX + 1];
    memset(path, '/', sizeof(path));
    path[PATH_MAX - 1] = '\0';
    MUST(folders_make, path);
    path[PATH_MAX - 1] = '/';
    path[PATH_MAX] = '\0';
    FAILS(STATUS_FAILED, "too long", folders_make, path);
}

static void make_in_read_only_folder(void *context)
{
    struct error err = {0};
    if (geteuid() == 0 && setuid(65534)) /* root may write anywhere */
        _exit(1);
    if (folders_make(at(context, "closed/there/file"), &err) != STATUS_OK)
        _exit(2);
    if (folders_make(at(context, "closed/new/file"), &err) != STATUS_FAILED ||
        !strstr(err.message, "closed/new: Permission denied"))
        _exit(3);
}

TEST(a_folder_that_may_not_be_written)
{
    struct place *place = *state;
    MUST(folders_make, at(place, "closed/there/file"));
    assert_int_equal(chmod(place->folder, 0755), 0);
    assert_int_equal(chmod(at(place, "closed"), 0555), 0);
    MUST(child_run, make_in_read_only_folder, place, 20);
    assert_int_equal(chmod(at(place, "closed"), 0755), 0);
}

const struct unit_fixture unit_fixture = {.before_each = place_open, .after_each = place_close};
