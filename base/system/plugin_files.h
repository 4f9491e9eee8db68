/* SPDX-License-Identifier: Apache-2.0
 *
 * Plug-ins as files: where they lie, which ones the build left out, and what is in one, without
 * opening any. */
#ifndef BASE_SYSTEM_PLUGIN_FILES_H
#define BASE_SYSTEM_PLUGIN_FILES_H

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

/* Why the build left the plug-in out and what it would need; NULL: it did not. */
const char *plugin_left_out(const char *name);
/* Those that it left out, in order; NULL: no more. */
const char *plugin_left_out_at(int index);

/* Hash of what is loaded of a shared object to run: code and constants, not what debuggers read nor
 * its notes. 0: it cannot be read. */
uint64_t plugin_code(const char *path);

#endif
