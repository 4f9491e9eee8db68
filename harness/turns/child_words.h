/* SPDX-License-Identifier: Apache-2.0
 *
 * The command by which a program, perhaps an older one, serves samples of a point. */
#ifndef HARNESS_TURNS_CHILD_WORDS_H
#define HARNESS_TURNS_CHILD_WORDS_H

#include "base/arena.h"
#include "harness/model/model_options.h"
#include "harness/suite/plan.h"

enum { CHILD_WORDS_MAX = 40 };

/* PROGRAM run SPEC --on-request and whatever is not usual: an option that an older program does not
 * know is only said when it matters. Words end with NULL; what is not borrowed lives in the arena.
 */
enum status child_words(const char *program, const struct point *point,
                        const struct model_options *model, struct arena *arena,
                        const char *words[CHILD_WORDS_MAX], struct error *err);
/* Why samples on request cannot measure this point; NULL: they can. */
const char *child_refuses(const struct point *point);

#endif
