/* SPDX-License-Identifier: Apache-2.0
 *
 * Words of plain text and their ids: a word is letters, digits and what is not ASCII, or a single
 * other character; capitals of ASCII count as small letters. The most frequent words have the
 * smallest ids. */
#ifndef WORKLOADS_DATA_VOCABULARY_H
#define WORKLOADS_DATA_VOCABULARY_H

#include "workloads/data/lines.h"

struct vocabulary {
    struct field *words; /* in the order of their text */
    int32_t *ids;        /* of each */
    int64_t count;
    int32_t unknown; /* id of any other word */
};

/* The next word of the line; false: there are no more. */
bool word_take(struct field *line, struct field *word);
/* Ids [unknown + 1, end) for the most frequent of `count` words, which are sorted in place. */
enum status vocabulary_make(struct arena *arena, struct field *words, int64_t count,
                            int32_t unknown, int32_t end, struct vocabulary *vocabulary,
                            struct error *err);
int32_t vocabulary_id(const struct vocabulary *vocabulary, const struct field *word);

#endif
