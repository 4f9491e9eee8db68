/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/system/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status map_open(int fd, const char *path, struct file *file, struct error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return FAIL(err, STATUS_FAILED, "%s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return FAIL(err, STATUS_FAILED, "%s: is %s, not a regular file", path,
                    S_ISDIR(info.st_mode) ? "a folder" : "a device or pipe");
    if (info.st_size == 0)
        return STATUS_OK; /* an empty mapping is an error of mmap */
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return FAIL(err, STATUS_FAILED, "%s: cannot be mapped: %s", path, strerror(errno));
    file->data = data;
    file->size = (size_t)info.st_size;
    return STATUS_OK;
}

enum status file_map(const char *path, struct file *file, struct error *err)
{
    *file = (struct file){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make it wait */
    if (fd < 0)
        return FAIL(err, STATUS_FAILED, "%s: %s", path, strerror(errno));
    enum status status = map_open(fd, path, file, err);
    close(fd);
    return status;
}

/* What /proc says about the open file: between looking and using no name can be changed under us.
 */
static enum status check_beneath(int folder, int fd, const char *path, struct error *err)
{
    char link[64], top[PATH_MAX], place[PATH_MAX];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, top, sizeof(top) - 1);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t whole = readlink(link, place, sizeof(place) - 1);
    if (length <= 0 || whole <= 0)
        return FAIL(err, STATUS_FAILED, "%s: /proc does not say where it is", path);
    if (length > 1 &&
        (whole <= length || memcmp(top, place, (size_t)length) != 0 || place[length] != '/'))
        return FAIL(err, STATUS_FAILED, "%s: a link leads out of the model's folder, to %.*s", path,
                    (int)whole, place);
    return STATUS_OK;
}

enum status file_map_beneath(const char *folder, const char *path, struct file *file,
                             struct error *err)
{
    *file = (struct file){0};
    int top = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = top < 0 ? -1 : openat(top, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    enum status status = STATUS_OK;
    if (fd < 0)
        status = FAIL(err, STATUS_FAILED, "%s/%s: %s", folder, path, strerror(errno));
    else
        status = check_beneath(top, fd, path, err);
    if (status == STATUS_OK)
        status = map_open(fd, path, file, err);
    if (fd >= 0)
        close(fd);
    if (top >= 0)
        close(top);
    return status;
}

void file_unmap(struct file *file)
{
    if (file->data)
        munmap((void *)(uintptr_t)file->data, file->size);
    *file = (struct file){0};
}

static enum status make_folder(const char *path, struct error *err)
{
    struct stat info;
    int why = mkdir(path, 0777) == 0 ? 0 : errno;
    /* Not EEXIST alone: some file systems say first that nothing can be made there. */
    if (why == 0 || (stat(path, &info) == 0 && S_ISDIR(info.st_mode)))
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "cannot make the folder %s: %s", path, strerror(why));
}

enum status folders_make(const char *path, struct error *err)
{
    char folder[PATH_MAX];
    if (snprintf(folder, sizeof(folder), "%s", path) >= (int)sizeof(folder))
        return FAIL(err, STATUS_FAILED, "the path is too long: %.100s...", path);
    for (char *at = folder + strspn(folder, "/"); (at = strchr(at, '/')); at++) {
        *at = '\0';
        TRY(make_folder(folder, err));
        *at = '/';
    }
    return STATUS_OK;
}
