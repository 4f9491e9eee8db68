/* SPDX-License-Identifier: Apache-2.0
 *
 * Providers: whose kernels these are. `native` and `reference` are built in, every other one is a
 * plug-in of that name. A list of them ("native,onednn", commas or spaces) says whose kernels may
 * compute; NULL or "" says all. */
#ifndef ENGINE_RUN_PROVIDER_H
#define ENGINE_RUN_PROVIDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* Whether the list has the name; an empty one has none. */
bool provider_named(const char *list, const char *name);
/* Whether the provider's kernels may compute: it is named, or nothing is. The reference always may,
 * being what is left where no other kernel accepts. */
bool provider_allowed(const char *list, const char *name);

/* All names that mean something: built in, of this tree, of the files in the plug-in folders.
 * -1: out of memory. Opens nothing. */
int provider_names(struct arena *arena, const char *const **names);
/* Whether it is built in or of this tree. */
bool provider_is_ours(const char *name);

/* FAILED for a name that means nothing, with the names that do and the nearest. Opens nothing. */
enum status providers_check(const char *list, struct error *err);
/* UNSUPPORTED for one that is named but was left out of this build, or whose file is not there: why
 * and what to do. Opens nothing. */
enum status providers_find(const char *list, struct error *err);
/* plugins_load, and UNSUPPORTED when a named one could not be opened or refused to work here; also
 * all of the above. */
enum status providers_load(const char *list, struct error *err);

/* ---- what would run ---- */

/* Hash of the code of the native kernels and of the threads they run on, as 16 hex digits. Made
 * when the program is built (Makefile, kernel_code.c), of that code alone, so that a commit
 * elsewhere does not change it. */
const char *kernel_code(void);
/* Of the provider's kernels: changes when they are built anew from other code, or when a plug-in's
 * library has another version. */
uint64_t provider_identity(const char *name);
/* Of all that can compute now: the native kernels and the plug-ins that are loaded. Never 0. */
uint64_t providers_identity(void);

#endif
