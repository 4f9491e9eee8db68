/* SPDX-License-Identifier: Apache-2.0
 *
 * A made-up language and its translations, for NMT: each word of a sentence has one translation,
 * and they follow in reverse order. */
#ifndef WORKLOADS_LIB_SENTENCES_H
#define WORKLOADS_LIB_SENTENCES_H

#include "workloads/training.h"

/* What ids mean; words are those from FIRST on. A target that is NOTHING is not asked for. */
enum { SENTENCES_NOTHING = -1, SENTENCES_START = 1, SENTENCES_END = 2, SENTENCES_FIRST = 3 };

#define SENTENCES_LESSON "sentences word by word in another language, last word first"

/* Inputs "source" [N, S], "source_length" [N], "target_given" [N, T]: START and then the words of
 * the translation, and "target" [N, T]: these words and then END. */
void sentences_fill(const struct batch *batch);

#endif
