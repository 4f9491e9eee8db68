/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing replaces only what is ours, and only when it is whole. */
#define _GNU_SOURCE

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/output.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"

struct place {
    char folder[64], path[128];
};

static int place_open(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    assert_non_null(place);
    snprintf(place->folder, sizeof(place->folder), "/tmp/ridge-output-XXXXXX");
    assert_non_null(mkdtemp(place->folder));
    snprintf(place->path, sizeof(place->path), "%s/file", place->folder);
    *state = place;
    return 0;
}

static int place_close(void **state)
{
    struct place *place = *state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", place->folder);
    assert_int_equal(system(command), 0);
    free(place);
    return 0;
}

static void assert_holds(const char *path, const char *text)
{
    char found[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    found[fread(found, 1, sizeof(found) - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(found, text);
}

static int entry_count(const char *folder)
{
    int count = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(entries);
    return count;
}

static enum status put(const char *path, const char *text, enum status end, struct error *err)
{
    struct output out;
    TRY(output_open(&out, path, OUTPUT_PRECIOUS, err));
    fputs(text, out.stream);
    return output_close(&out, end, err);
}

static mode_t mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(lstat(path, &info), 0);
    return info.st_mode;
}

TEST(a_file_takes_its_place_when_it_is_whole)
{
    struct place *place = *state;
    struct output out;
    write_file(place->path, "old");
    MUST(output_open, &out, place->path, OUTPUT_DERIVED);
    fputs("new", out.stream);
    fflush(out.stream);
    assert_holds(place->path, "old");
    MUST(output_close, &out, STATUS_OK);
    assert_holds(place->path, "new");
    assert_int_equal(entry_count(place->folder), 1);
}

TEST(a_failure_keeps_the_old_file)
{
    struct place *place = *state;
    struct error err = {0};
    write_file(place->path, "old");
    FAIL(&err, STATUS_FAILED, "the first reason");
    assert_int_equal(put(place->path, "new", STATUS_UNSUPPORTED, &err), STATUS_UNSUPPORTED);
    assert_string_equal(err.message, "the first reason");
    assert_holds(place->path, "old");
    assert_int_equal(entry_count(place->folder), 1);
}

/* RLIMIT_FSIZE fails a write as a full disk does, after its first bytes. */
TEST(a_full_disk_keeps_the_old_file)
{
    struct place *place = *state;
    struct output out;
    struct error err = {0};
    struct rlimit old, small = {.rlim_cur = 20000};
    write_file(place->path, "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    MUST(output_open, &out, place->path, OUTPUT_PRECIOUS);
    for (int k = 0; k < 10000; k++)
        fputs("0123456789", out.stream);
    enum status status = output_close(&out, STATUS_OK, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, STATUS_FAILED);
    assert_non_null(strstr(err.message, place->path));
    assert_holds(place->path, "old");
    assert_int_equal(entry_count(place->folder), 1);
}

TEST(only_regular_files_are_replaced)
{
    struct place *place = *state;
    struct error err = {0};
    FAILS(STATUS_FAILED, "is a folder", put, place->folder, "x", STATUS_OK);

    assert_int_equal(mkfifo(place->path, 0600), 0);
    FAILS(STATUS_FAILED, "is a pipe", put, place->path, "x", STATUS_OK);
    assert_true(S_ISFIFO(mode_of(place->path)));
    assert_int_equal(output_check(place->path, &err), STATUS_FAILED);

    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(name.sun_path, sizeof(name.sun_path), "%s/socket", place->folder);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
    FAILS(STATUS_FAILED, "is a socket", put, name.sun_path, "x", STATUS_OK);
    close(fd);

    assert_int_equal(entry_count(place->folder), 2);
}

TEST(a_folder_that_is_not_there_is_named_before_work)
{
    struct error err;
    assert_int_equal(output_check_folder("new_file_of_test_output", &err), STATUS_OK);
    assert_int_equal(output_check_folder(NULL, &err), STATUS_OK);
    assert_int_equal(output_check("no_such_folder/file", &err), STATUS_OK);
    assert_int_equal(output_check_folder("no_such_folder/file", &err), STATUS_FAILED);
    assert_string_equal(err.message, "no_such_folder/file: cannot be written: folder "
                                     "no_such_folder/: No such file or directory");
}

/* Root could lose a device of the machine to a mistake here: it makes its own, where it may. */
TEST(a_device_is_not_replaced)
{
    struct place *place = *state;
    struct error err = {0};
    const char *device = "/dev/full";
    char link[160];
    if (geteuid() == 0) {
        device = place->path;
        if (mknod(device, S_IFCHR | 0666, makedev(1, 7)) != 0)
            skip();
    }
    FAILS(STATUS_FAILED, "is a device", put, device, "x", STATUS_OK);
    assert_true(S_ISCHR(mode_of(device)));
    snprintf(link, sizeof(link), "%s/link", place->folder);
    assert_int_equal(symlink(device, link), 0);
    assert_int_equal(put(link, "x", STATUS_OK, &err), STATUS_FAILED);
    assert_true(S_ISLNK(mode_of(link)) && S_ISCHR(mode_of(device)));
}

TEST(links_stay_and_their_file_is_replaced)
{
    struct place *place = *state;
    char one[160], two[160], far[160], folder[160];
    snprintf(one, sizeof(one), "%s/one", place->folder);
    snprintf(two, sizeof(two), "%s/two", place->folder);
    snprintf(folder, sizeof(folder), "%s/sub", place->folder);
    snprintf(far, sizeof(far), "%s/sub/far", place->folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(symlink("two", one), 0);
    assert_int_equal(symlink("sub/far", two), 0);
    MUST(put, one, "through a dangling link", STATUS_OK);
    assert_holds(far, "through a dangling link");
    MUST(put, one, "again", STATUS_OK);
    assert_holds(far, "again");
    assert_true(S_ISLNK(mode_of(one)) && S_ISLNK(mode_of(two)) && S_ISREG(mode_of(far)));

    assert_int_equal(unlink(two), 0);
    assert_int_equal(symlink("one", two), 0);
    FAILS(STATUS_FAILED, "too many links", put, one, "x", STATUS_OK);
}

TEST(permissions_stay_and_new_files_get_the_umask)
{
    struct place *place = *state;
    mode_t mask = umask(027);
    MUST(put, place->path, "x", STATUS_OK);
    assert_int_equal(mode_of(place->path) & 0777, 0640);
    assert_int_equal(chmod(place->path, 0604), 0);
    MUST(put, place->path, "y", STATUS_OK);
    assert_int_equal(mode_of(place->path) & 0777, 0604);
    umask(mask);
}

/* Twenty writers are killed in the middle: none leaves more than one file, and the next clears it
 * away. One that still writes keeps its own. */
TEST(what_killed_writers_leave_does_not_pile_up)
{
    struct place *place = *state;
    write_file(place->path, "old");
    for (int k = 0; k < 20; k++) {
        pid_t child = fork();
        if (child == 0) {
            struct output out;
            if (output_open(&out, place->path, OUTPUT_PRECIOUS, NULL) == STATUS_OK) {
                fputs("half", out.stream);
                fflush(out.stream);
            }
            raise(SIGKILL);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_holds(place->path, "old");
        assert_int_equal(entry_count(place->folder), 2);
    }
    struct output first, second;
    MUST(output_open, &first, place->path, OUTPUT_PRECIOUS);
    MUST(output_open, &second, place->path, OUTPUT_PRECIOUS);
    assert_string_not_equal(first.part, second.part);
    fputs("first", first.stream);
    fputs("second", second.stream);
    MUST(output_close, &second, STATUS_OK);
    assert_holds(place->path, "second");
    MUST(output_close, &first, STATUS_OK);
    assert_holds(place->path, "first");
    assert_int_equal(entry_count(place->folder), 1);
}

TEST(a_name_of_full_length_works)
{
    struct place *place = *state;
    struct error err = {0};
    char path[NAME_MAX + 128];
    int used = snprintf(path, sizeof(path), "%s/", place->folder);
    memset(path + used, 'n', NAME_MAX);
    path[used + NAME_MAX] = '\0';
    MUST(put, path, "x", STATUS_OK);
    assert_holds(path, "x");
    path[used + NAME_MAX] = 'n';
    path[used + NAME_MAX + 1] = '\0';
    assert_int_equal(put(path, "x", STATUS_OK, &err), STATUS_FAILED);
    assert_int_equal(entry_count(place->folder), 1);
}

TEST(standard_output_is_written_through)
{
    static const char *const names[] = {NULL, "-", "/dev/stdout", "/dev/fd/1"};
    for (int k = 0; k < 4; k++) {
        struct output out;
        MUST(output_open, &out, names[k], OUTPUT_PRECIOUS);
        assert_ptr_equal(out.stream, stdout);
        MUST(output_close, &out, STATUS_OK);
    }
}

const struct unit_fixture unit_fixture = {.before_each = place_open, .after_each = place_close};
