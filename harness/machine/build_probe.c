/* SPDX-License-Identifier: Apache-2.0
 *
 * Which program this is: the hash of the executable and of the plug-ins beside it, because a debug
 * build and a patched plug-in have the same version and commit. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/build_info.h"
#include "harness/machine/build_files.h"
#include "harness/machine/environment.h"

static const char self[] = "/proc/self/exe";

enum status build_probe_files(struct build_files *files, struct arena *arena, struct error *err)
{
    static const char deleted[] = " (deleted)";
    char path[4096];
    ssize_t length = readlink(self, path, sizeof(path) - 1);
    if (length <= 0)
        return FAIL(err, STATUS_FAILED, "/proc/self/exe cannot be read: is /proc mounted?");
    path[length] = '\0';
    char *end = strstr(path, deleted);
    if (end && !end[sizeof(deleted) - 1])
        *end = '\0';
    TRY(build_files_at(path, getenv("RIDGE_PLUGIN_PATH"), arena, files, err));
    /* The file may have been replaced by another since it was started. */
    files->files[0].path = self;
    return STATUS_OK;
}

enum status build_probe(struct build_record *build, struct arena *arena, struct error *err)
{
    struct build_files files;
    TRY(build_probe_files(&files, arena, err));
    *build = (struct build_record){
        .version = build_info.version,
        .git = build_info.commit,
        .config = build_info.config,
        .compiler = build_info.compiler,
        .flags = build_info.flags,
        .features = build_info.features,
    };
    return build_files_uid(&files, build->uid, err);
}
