/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the files of plug-ins lie, without opening any. */
#ifndef ENGINE_RUN_PLUGIN_FILES_H
#define ENGINE_RUN_PLUGIN_FILES_H

#include <stdbool.h>
#include <stdint.h>

/* folder: with no slash at its end. named: RIDGE_PLUGIN_PATH has it, so that it should be there. */
typedef void plugin_folder_visit(const char *folder, bool named, void *context);
/* In the order in which plug-ins are looked for: the folders of RIDGE_PLUGIN_PATH, then plugins/
 * and build/release/plugins/ beside the program. */
void plugin_folders_each(plugin_folder_visit *visit, void *context);

/* name: the file's without ".so". */
typedef void plugin_file_visit(const char *path, const char *name, void *context);
/* Every *.so of the folder in the order of their names; false: there is no such folder. */
bool plugin_files_each(const char *folder, plugin_file_visit *visit, void *context);

/* Hash of what is loaded of a shared object to run: code and constants, not what debuggers read nor
 * its notes. 0: it cannot be read. */
uint64_t plugin_code(const char *path);

#endif
