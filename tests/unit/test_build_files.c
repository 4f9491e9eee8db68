/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/machine/build_files.h"
#include "harness/machine/environment.h"
#include "tests/lib/unit.h"

/* A program with plug-ins at three places, under a folder of its own. */
struct tree {
    char folder[64], program[96], named[96];
};

static void shell(const struct tree *t, const char *command)
{
    char line[512];
    snprintf(line, sizeof(line), "cd %s && %s", t->folder, command);
    assert_int_equal(system(line), 0);
}

static void make_tree(struct tree *t)
{
    snprintf(t->folder, sizeof(t->folder), "/tmp/ridge_files_XXXXXX");
    assert_non_null(mkdtemp(t->folder));
    snprintf(t->program, sizeof(t->program), "%s/ridge", t->folder);
    snprintf(t->named, sizeof(t->named), "%s/own", t->folder);
    shell(t, "mkdir -p own plugins/profilers build/release/plugins && echo program >ridge && "
             "echo a >own/vendor.so && echo b >plugins/b.so && echo a >plugins/a.so && "
             "echo p >plugins/profilers/papi.so && echo r >build/release/plugins/r.so && "
             "echo no >plugins/readme.txt && ln -s ../ridge plugins/link");
}

static void uid_of(const char *program, const char *named, char uid[HASH64_TEXT])
{
    struct arena arena = {0};
    struct build_files files;
    MUST(build_files_find, program, named, &arena, &files);
    MUST(build_files_uid, &files, uid);
    arena_release(&arena);
}

TEST(files_have_an_order_and_a_place)
{
    static const char *const places[] = {
        "ridge",        "named/0/vendor.so",         "plugins/a.so",
        "plugins/b.so", "plugins/profilers/papi.so", "build/release/plugins/r.so"};
    struct tree t;
    struct arena arena = {0};
    struct build_files files;
    make_tree(&t);
    MUST(build_files_find, t.program, t.named, &arena, &files);
    assert_int_equal(files.count, 6);
    assert_int_equal(files.named, 1);
    for (size_t k = 0; k < files.count; k++)
        assert_string_equal(files.files[k].place, places[k]);
    FAILS(STATUS_FAILED, "No such file", build_files_find, "/tmp/no such program", NULL, &arena,
          &files);
    arena_release(&arena);
    shell(&t, "rm -r $PWD");
}

TEST(any_file_changes_the_uid)
{
    struct tree t;
    char first[HASH64_TEXT], then[HASH64_TEXT], link[128];
    make_tree(&t);
    uid_of(t.program, t.named, first);
    snprintf(link, sizeof(link), "%s/plugins/link", t.folder);
    uid_of(link, t.named, then); /* plug-ins lie beside the real file */
    assert_string_equal(first, then);
    uid_of(t.program, NULL, then);
    assert_string_not_equal(first, then);
    shell(&t, "echo other >plugins/readme.txt");
    uid_of(t.program, t.named, then);
    assert_string_equal(first, then);
    static const char *const changes[] = {"echo x >>ridge", "echo x >own/vendor.so",
                                          "mv plugins/a.so plugins/c.so",
                                          "rm build/release/plugins/r.so"};
    for (size_t k = 0; k < sizeof(changes) / sizeof(*changes); k++) {
        shell(&t, changes[k]);
        uid_of(t.program, t.named, then);
        assert_string_not_equal(first, then);
        memcpy(first, then, sizeof(first));
    }
    shell(&t, "rm -r $PWD");
}

/* What `ridge version --json` says of itself is what others find out about it. */
TEST(own_uid_is_that_of_the_files)
{
    struct arena arena = {0};
    struct build_record build;
    char uid[HASH64_TEXT], path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    assert_true(length > 0);
    path[length] = '\0';
    MUST(build_probe, &build, &arena);
    uid_of(path, getenv("RIDGE_PLUGIN_PATH"), uid);
    assert_string_equal(build.uid, uid);
    arena_release(&arena);
}
