/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_TEXT_SHELL_H
#define BASE_TEXT_SHELL_H

#include "base/arena.h"

/* The word as a POSIX shell reads it back: in single quotes where it needs them, as it is
 * otherwise. NULL: no memory. */
const char *shell_word(struct arena *arena, const char *word);

#endif
