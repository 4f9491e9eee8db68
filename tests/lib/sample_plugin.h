/* SPDX-License-Identifier: Apache-2.0
 *
 * The sample plug-in of tests/plugin_sample/ as tests find it: RIDGE_SAMPLE_PLUGIN, or
 * ../plugin_sample/sample.so as seen from the test program. */
#ifndef TESTS_LIB_SAMPLE_PLUGIN_H
#define TESTS_LIB_SAMPLE_PLUGIN_H

#include <stddef.h>

/* Path of the shared object; aborts the test program with a message when it is not there. */
const char *sample_plugin_path(void);
/* Makes a folder below the temporary one and puts sample.so there under `name`; returns its path,
 * to be removed with folder_remove. */
void folder_with_sample(const char *name, char *folder, size_t size);
void folder_add_file(const char *folder, const char *name, const char *contents);
void folder_remove(const char *folder);

#endif
