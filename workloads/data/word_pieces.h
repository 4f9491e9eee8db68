/* SPDX-License-Identifier: Apache-2.0
 *
 * Word pieces, as google-research/bert's tokenization.py cuts text: at blanks, at punctuation and
 * around Chinese characters, then each word, from its beginning on, into the longest pieces that
 * the vocabulary has. A word that cannot be cut so, or has more than 200 characters, is [UNK].
 *
 * Where capitals do not count, accents do not either. Letters: Latin up to U+017F, Greek,
 * Cyrillic; others are taken as they are. */
#ifndef WORKLOADS_DATA_WORD_PIECES_H
#define WORKLOADS_DATA_WORD_PIECES_H

#include "workloads/data/vocabulary.h"

struct word_pieces {
    struct vocabulary first, inner; /* pieces that begin a word; those after "##", without it */
    int longest;                    /* bytes of a piece at most */
    bool lowers;                    /* capitals do not count */
    int32_t unknown;
    int64_t count;
};

/* vocab.txt: a piece in each line, "##" before those inside of words; [PAD], [UNK], [CLS], [SEP]
 * and [MASK] among them. Ids: BERT_PAD ... of workloads/lib/bert.h, BERT_WORDS for [UNK], and after
 * it the others in the order of the file. room: as many as the network has. */
enum status word_pieces_read(struct word_pieces *pieces, struct arena *arena,
                             const struct data_text *file, enum letter_case letters, int64_t room,
                             struct error *err);
/* Ids of the pieces of a line, at most as many as it has bytes; returns how many. *unknown grows by
 * those that are [UNK]. */
int32_t word_pieces_take(const struct word_pieces *pieces, const struct field *line, int32_t *ids,
                         int64_t *unknown);

#endif
