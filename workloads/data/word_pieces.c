/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/data/word_pieces.h"

#include <string.h>

#include "workloads/data/characters.h"
#include "workloads/lib/bert.h"

enum { WORD_CHARACTERS = 200, WORD_BYTES = 4 * WORD_CHARACTERS };

/* ---- the vocabulary ---- */

static const char *const special[] = {
    [BERT_PAD] = "[PAD]",   [BERT_CLS] = "[CLS]",   [BERT_SEP] = "[SEP]",
    [BERT_MASK] = "[MASK]", [BERT_WORDS] = "[UNK]",
};

static enum status add_piece(struct word_pieces *p, struct arena *arena, struct field piece,
                             int32_t id, struct error *err)
{
    int32_t place;
    bool inside = piece.length > 2 && memcmp(piece.text, "##", 2) == 0;
    struct vocabulary *to = inside ? &p->inner : &p->first;
    if (inside)
        piece = (struct field){piece.text + 2, piece.length - 2};
    p->longest = piece.length > p->longest ? piece.length : p->longest;
    TRY(vocabulary_count(to, arena, &piece, &place, err));
    to->words[place].id = id;
    return STATUS_OK;
}

enum status word_pieces_read(struct word_pieces *p, struct arena *arena,
                             const struct data_text *file, enum letter_case letters, int64_t room,
                             struct error *err)
{
    struct vocabulary all = {.exact = true};
    int32_t next = BERT_WORDS + 1;
    *p = (struct word_pieces){.first.exact = true, .inner.exact = true, .unknown = BERT_WORDS};
    TRY(vocabulary_read(&all, arena, file, room, err));
    for (int k = 0; k < ARRAY_COUNT(special); k++) {
        struct field word = {special[k], (int)strlen(special[k])};
        int32_t place = vocabulary_find(&all, &word);
        if (place == NONE)
            return FAIL(err, STATUS_FAILED,
                        "%s: there is no line %s; BERT's vocabularies have [PAD], [UNK], [CLS], "
                        "[SEP] and [MASK]",
                        file->name, special[k]);
        all.words[place].id = NONE; /* text never means it */
    }
    for (int64_t k = 0; k < all.count; k++)
        if (all.words[k].id != NONE)
            TRY(add_piece(p, arena, all.words[k].text, next++, err));
    p->count = all.count;
    p->lowers = letters == LETTERS_LOWERED ||
                (letters == LETTERS_AS_VOCABULARY && !vocabulary_has_capitals(&all));
    return STATUS_OK;
}

/* ---- words ---- */

/* A word under way, and where the ids of its pieces go. */
struct word {
    const struct word_pieces *pieces;
    char text[WORD_BYTES];
    int length, characters; /* one more than WORD_CHARACTERS: too long */
    int32_t *ids, count;
    int64_t *unknown;
};

/* The longest piece at `from`; its length, or 0. */
static int longest_piece(const struct word *w, int from, int32_t *id)
{
    const struct vocabulary *v = from ? &w->pieces->inner : &w->pieces->first;
    int left = w->length - from;
    for (int length = left < w->pieces->longest ? left : w->pieces->longest; length > 0; length--) {
        int32_t place = vocabulary_find(v, &(struct field){w->text + from, length});
        if (place == NONE)
            continue;
        *id = v->words[place].id;
        return length;
    }
    return 0;
}

static void end_word(struct word *w)
{
    int32_t before = w->count;
    bool fits = w->characters <= WORD_CHARACTERS;
    for (int at = 0, length; fits && at < w->length; at += length) {
        length = longest_piece(w, at, &w->ids[w->count]);
        fits = length > 0;
        w->count += fits;
    }
    if (!fits) {
        w->count = before;
        w->ids[w->count++] = w->pieces->unknown;
        ++*w->unknown;
    }
    w->length = w->characters = 0;
}

static void add_character(struct word *w, uint32_t c)
{
    if (w->characters < WORD_CHARACTERS)
        w->length += character_put(c, w->text + w->length);
    w->characters += w->characters <= WORD_CHARACTERS;
}

int32_t word_pieces_take(const struct word_pieces *p, const struct field *line, int32_t *ids,
                         int64_t *unknown)
{
    struct word w = {.pieces = p, .ids = ids, .unknown = unknown};
    for (int at = 0, bytes; at < line->length; at += bytes) {
        uint32_t c = character_take(line->text + at, line->length - at, &bytes);
        if (c == 0 || character_is_control(c))
            continue;
        c = p->lowers ? character_small(c) : c;
        bool alone = character_is_punctuation(c) || character_is_chinese(c);
        if ((alone || character_is_blank(c)) && w.characters)
            end_word(&w);
        if (c && !character_is_blank(c))
            add_character(&w, c);
        if (alone)
            end_word(&w);
    }
    if (w.characters)
        end_word(&w);
    return w.count;
}
