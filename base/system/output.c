/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/system/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/registry.h"

enum { LINKS_MAX = 40, PARTS_MAX = 16, NAME_KEPT = 200 };

/* Bytes of a path up to and with its last slash. */
static int folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash + 1 - path) : 0;
}

static bool is_standard_output(const char *path)
{
    static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
    for (int k = 0; path && k < ARRAY_COUNT(names); k++)
        if (strcmp(path, names[k]) == 0)
            return true;
    return !path;
}

/* ---- the target ---- */

static const char *kind_name(mode_t mode)
{
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

/* The file at the end of a chain of links, which need not exist. */
static enum status follow_links(const char *path, char *target, struct error *err)
{
    char link[PATH_MAX], next[PATH_MAX];
    if (snprintf(target, PATH_MAX, "%s", path) >= PATH_MAX)
        return FAIL(err, STATUS_FAILED, "%.200s...: the path is too long", path);
    for (int k = 0; k < LINKS_MAX; k++) {
        ssize_t length = readlink(target, link, sizeof(link) - 1);
        if (length < 0)
            return STATUS_OK;
        link[length] = '\0';
        int kept = link[0] == '/' ? 0 : folder_length(target);
        if (snprintf(next, sizeof(next), "%.*s%s", kept, target, link) >= PATH_MAX)
            return FAIL(err, STATUS_FAILED, "%s: the link's path is too long", path);
        memcpy(target, next, strlen(next) + 1);
    }
    return FAIL(err, STATUS_FAILED, "%s: too many links", path);
}

/* *old: of the file that is there, st_nlink 0 when there is none. */
static enum status check_target(const char *path, const char *target, struct stat *old,
                                struct error *err)
{
    *old = (struct stat){0};
    if (lstat(target, old) != 0) {
        old->st_nlink = 0;
        return errno == ENOENT ? STATUS_OK
                               : FAIL(err, STATUS_FAILED, "%s: %s", path, strerror(errno));
    }
    if (!S_ISREG(old->st_mode))
        return FAIL(err, STATUS_FAILED, "%s: is %s; only a regular file is written or replaced",
                    path, kind_name(old->st_mode));
    if (faccessat(AT_FDCWD, target, W_OK, AT_EACCESS) != 0)
        return FAIL(err, STATUS_FAILED, "%s: %s", path, strerror(errno));
    return STATUS_OK;
}

enum status output_check(const char *path, struct error *err)
{
    char target[PATH_MAX];
    struct stat old;
    if (is_standard_output(path))
        return STATUS_OK;
    TRY(follow_links(path, target, err));
    return check_target(path, target, &old, err);
}

enum status output_check_folder(const char *path, struct error *err)
{
    char target[PATH_MAX], folder[PATH_MAX];
    if (is_standard_output(path))
        return STATUS_OK;
    TRY(output_check(path, err));
    TRY(follow_links(path, target, err));
    int length = folder_length(target);
    snprintf(folder, sizeof(folder), "%.*s", length ? length : 1, length ? target : ".");
    if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0)
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "%s: cannot be written: folder %s: %s", path, folder,
                strerror(errno));
}

/* ---- the temporary file ---- */

static bool is_same_file(int fd, const char *path)
{
    struct stat open_one, named;
    return fstat(fd, &open_one) == 0 && lstat(path, &named) == 0 && S_ISREG(named.st_mode) &&
           open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino;
}

/* Whether `part` was left by a process that ended: then it is gone. Its writer would hold the lock.
 */
static bool clear_away(const char *part)
{
    int fd = open(part, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT;
    bool cleared = flock(fd, LOCK_EX | LOCK_NB) == 0 && is_same_file(fd, part) && unlink(part) == 0;
    close(fd);
    return cleared;
}

/* A new file under the name, locked; -1 and errno. */
static int create_part(const char *part)
{
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_same_file(fd, part))
        return fd;
    close(fd); /* another writer took it for left over, in the moment before the lock */
    errno = EEXIST;
    return -1;
}

/* ".NAME.ridge-part", ".NAME.ridge-part1" ... beside the target; false: too long. */
static bool name_part(const char *target, int index, char *part)
{
    char number[12] = "";
    int folder = folder_length(target);
    if (index)
        snprintf(number, sizeof(number), "%d", index);
    return snprintf(part, PATH_MAX, "%.*s.%.*s.ridge-part%s", folder, target, NAME_KEPT,
                    target + folder, number) < PATH_MAX;
}

/* Opens the first free name, and clears away what was left under later ones. */
static int open_part(const char *target, char *part)
{
    char left[PATH_MAX];
    int fd = -1, k = 0;
    for (; k < PARTS_MAX && fd < 0; k++) {
        if (!name_part(target, k, part)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = create_part(part);
        if (fd < 0 && errno != EEXIST)
            return -1;
        if (fd < 0 && clear_away(part))
            fd = create_part(part);
    }
    for (; k < PARTS_MAX && fd >= 0 && name_part(target, k, left); k++)
        clear_away(left);
    return fd;
}

/* Owner and permissions of the file that is replaced; those of a new one are the umask's. */
static void keep_permissions(int fd, const struct stat *old)
{
    if (!old->st_nlink)
        return;
    if (fchown(fd, old->st_uid, old->st_gid) != 0 && fchown(fd, (uid_t)-1, old->st_gid) != 0)
        errno = 0; /* not ours to give: the file is then its writer's */
    fchmod(fd, old->st_mode & 0777);
}

static enum status begin(struct output *out, const char *path, struct error *err)
{
    char target[PATH_MAX], part[PATH_MAX];
    struct stat old;
    TRY(follow_links(path, target, err));
    TRY(check_target(path, target, &old, err));
    int fd = open_part(target, part);
    if (fd < 0)
        return FAIL(err, STATUS_FAILED, "%s: cannot be written: no temporary file beside it: %s",
                    path, strerror(errno));
    keep_permissions(fd, &old);
    out->target = strdup(target);
    out->part = strdup(part);
    out->stream = out->target && out->part ? fdopen(fd, "w") : NULL;
    if (out->stream)
        return STATUS_OK;
    unlink(part);
    close(fd);
    free(out->target);
    free(out->part);
    *out = (struct output){0};
    return FAIL_NO_MEMORY(err);
}

enum status output_open(struct output *out, const char *path, enum output_kind kind,
                        struct error *err)
{
    *out = (struct output){.kind = kind};
    if (!is_standard_output(path))
        return begin(out, path, err);
    out->stream = stdout;
    return STATUS_OK;
}

/* ---- the end ---- */

static const char *name_of(const struct output *out)
{
    return out->part ? out->target : "standard output";
}

enum status output_flush(const struct output *out, struct error *err)
{
    const char *name = name_of(out);
    if (!out->stream)
        return STATUS_OK;
    errno = 0;
    bool bad = fflush(out->stream) != 0;
    if (!bad && ferror(out->stream)) /* an earlier write, whose reason is gone */
        return FAIL(err, STATUS_FAILED, "%s: cannot be written whole: is the disk full?", name);
    if (!bad && out->part && out->kind == OUTPUT_PRECIOUS)
        bad = fsync(fileno(out->stream)) != 0 && errno != EINVAL; /* some file systems have none */
    return bad ? FAIL(err, STATUS_FAILED, "%s: cannot be written: %s", name, strerror(errno))
               : STATUS_OK;
}

enum status output_close(struct output *out, enum status status, struct error *err)
{
    if (!out->stream)
        return status;
    enum status flushed = output_flush(out, status == STATUS_OK ? err : NULL);
    status = status == STATUS_OK ? flushed : status;
    if (!out->part)
        return status;
    if (status == STATUS_OK && rename(out->part, out->target) != 0)
        status =
            FAIL(err, STATUS_FAILED, "%s: cannot be replaced: %s", name_of(out), strerror(errno));
    if (status != STATUS_OK)
        unlink(out->part);
    fclose(out->stream); /* after the rename: the lock goes with it */
    free(out->target);
    free(out->part);
    *out = (struct output){0};
    return status;
}
