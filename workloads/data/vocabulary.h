/* SPDX-License-Identifier: Apache-2.0
 *
 * Words of text and their ids: those of a given list, or the most frequent ones of what is read. */
#ifndef WORKLOADS_DATA_VOCABULARY_H
#define WORKLOADS_DATA_VOCABULARY_H

#include "workloads/data/lines.h"

struct vocabulary_word {
    struct field text;
    int64_t count; /* how often it was counted */
    int32_t id;
};

/* Zeroed: empty, and capitals of ASCII count as small letters. */
struct vocabulary {
    bool exact;                    /* capitals are other letters */
    struct vocabulary_word *words; /* in the order in which they came */
    int64_t count;
    size_t room;
    int32_t *slots; /* by hash: 1 + the word's place; 0: free */
    size_t slot_count;
};

/* The next word of the line: letters, digits and what is not ASCII, or a single other character;
 * false: there are no more. */
bool word_take(struct field *line, struct field *word);
/* The same of words between blanks. */
bool token_take(struct field *line, struct field *word);

/* Counts a word, whose text must stay; *place: where it is among the words. */
enum status vocabulary_count(struct vocabulary *vocabulary, struct arena *arena,
                             const struct field *word, int32_t *place, struct error *err);
/* Where a word is among the words; NONE: nowhere. */
int32_t vocabulary_find(const struct vocabulary *vocabulary, const struct field *word);
/* Ids first, first + 1 ... below end for the most frequent words, by their text where they are
 * equally frequent; `unknown` for the others. */
enum status vocabulary_rank(struct vocabulary *vocabulary, struct arena *arena, int32_t unknown,
                            int32_t first, int32_t end, struct error *err);

/* The words of a file, one in each line; none may be there twice or be more than `room`, which is
 * what the network has. Ids are as in the file, from 0 on. */
enum status vocabulary_read(struct vocabulary *vocabulary, struct arena *arena,
                            const struct data_text *file, int64_t room, struct error *err);
/* Whether a word that is not all in brackets, such as [CLS] or <unk>, has a capital. */
bool vocabulary_has_capitals(const struct vocabulary *vocabulary);

#endif
