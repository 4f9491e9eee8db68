/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs code under test in a forked child, so that a crash or a hang is one failure, not the end.
 */
#ifndef TESTS_LIB_CHILD_H
#define TESTS_LIB_CHILD_H

#include <stddef.h>

#include "base/error.h"

/* Memory that child and parent share; NULL when there is none. Never given back. */
void *child_shared(size_t bytes);
/* INVALID when the child was killed, ran longer than limit_s or left with another code than 0,
 * as a sanitizer makes it. The caller must have no threads running. */
enum status child_run(void (*body)(void *context), void *context, int limit_s, struct error *err);

#endif
