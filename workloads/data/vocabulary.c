/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/data/vocabulary.h"

#include <stdlib.h>

static int small(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ';
}

static bool is_letter(char c)
{
    return (c >= '0' && c <= '9') || (small(c) >= 'a' && small(c) <= 'z') || c & 0x80;
}

bool word_take(struct field *line, struct field *word)
{
    while (line->length && is_blank(*line->text)) {
        line->text++;
        line->length--;
    }
    if (!line->length)
        return false;
    *word = (struct field){line->text, 1};
    while (is_letter(*line->text) && word->length < line->length &&
           is_letter(word->text[word->length]))
        word->length++;
    line->text += word->length;
    line->length -= word->length;
    return true;
}

static int by_text(const void *a, const void *b)
{
    const struct field *x = a, *y = b;
    int shorter = x->length < y->length ? x->length : y->length;
    for (int k = 0; k < shorter; k++)
        if (small(x->text[k]) != small(y->text[k]))
            return small(x->text[k]) - small(y->text[k]);
    return (x->length > y->length) - (x->length < y->length);
}

/* A word and how often it is there; place: among the words in order. */
struct tally {
    int64_t count, place;
};

static int by_count(const void *a, const void *b)
{
    const struct tally *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

enum status vocabulary_make(struct arena *arena, struct field *words, int64_t count,
                            int32_t unknown, int32_t end, struct vocabulary *v, struct error *err)
{
    int64_t distinct = 0;
    qsort(words, (size_t)count, sizeof(*words), by_text);
    struct tally *tallies = arena_array(arena, (size_t)count + 1, sizeof(*tallies));
    *v = (struct vocabulary){.words = words, .unknown = unknown};
    v->ids = arena_array(arena, (size_t)count + 1, sizeof(*v->ids));
    if (!tallies || !v->ids)
        return FAIL_NO_MEMORY(err);
    for (int64_t k = 0; k < count; k++) {
        if (distinct == 0 || by_text(&words[k], &words[distinct - 1]) != 0) {
            tallies[distinct] = (struct tally){.place = distinct};
            words[distinct++] = words[k];
        }
        tallies[distinct - 1].count++;
    }
    qsort(tallies, (size_t)distinct, sizeof(*tallies), by_count);
    for (int64_t k = 0; k < distinct; k++)
        v->ids[tallies[k].place] = k < end - unknown - 1 ? unknown + 1 + (int32_t)k : unknown;
    v->count = distinct;
    return STATUS_OK;
}

int32_t vocabulary_id(const struct vocabulary *v, const struct field *word)
{
    const struct field *found =
        v->count ? bsearch(word, v->words, (size_t)v->count, sizeof(*word), by_text) : NULL;
    return found ? v->ids[found - v->words] : v->unknown;
}
