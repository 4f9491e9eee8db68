/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
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

void file_unmap(struct file *file)
{
    if (file->data)
        munmap((void *)(uintptr_t)file->data, file->size);
    *file = (struct file){0};
}
