/* SPDX-License-Identifier: Apache-2.0
 *
 * The files that make a program: its executable and the plug-ins that it finds, in its folder and
 * in those of RIDGE_PLUGIN_PATH. Their hash is the build's uid in the database. */
#ifndef HARNESS_MACHINE_BUILD_FILES_H
#define HARNESS_MACHINE_BUILD_FILES_H

#include "base/arena.h"
#include "base/error.h"
#include "base/system/hash.h"

struct build_file {
    const char *path;
    const char *place; /* in a folder that keeps the program: "ridge", "plugins/onednn.so" */
};

struct build_files {
    struct build_file *files; /* the executable first, then plug-ins in the order of the hash */
    size_t count, capacity;
    int named; /* folders of RIDGE_PLUGIN_PATH: kept as named/0, named/1 ... */
};

/* program: a path; links are followed, since plug-ins are beside the real file. named: what
 * RIDGE_PLUGIN_PATH is for it; NULL: nothing. */
enum status build_files_find(const char *program, const char *named, struct arena *arena,
                             struct build_files *out, struct error *err);
/* The same for the path of the real file, which may be gone. */
enum status build_files_at(const char *path, const char *named, struct arena *arena,
                           struct build_files *out, struct error *err);
enum status build_files_uid(const struct build_files *files, char uid[HASH64_TEXT],
                            struct error *err);

#endif
