/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/data/vocabulary.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS_FIRST = 64 };

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

static bool skip_blanks(struct field *line)
{
    while (line->length && is_blank(*line->text)) {
        line->text++;
        line->length--;
    }
    return line->length > 0;
}

static void take(struct field *line, int length, struct field *word)
{
    *word = (struct field){line->text, length};
    line->text += length;
    line->length -= length;
}

bool word_take(struct field *line, struct field *word)
{
    int length = 1;
    if (!skip_blanks(line))
        return false;
    while (is_letter(*line->text) && length < line->length && is_letter(line->text[length]))
        length++;
    take(line, length, word);
    return true;
}

bool token_take(struct field *line, struct field *word)
{
    int length = 0;
    if (!skip_blanks(line))
        return false;
    while (length < line->length && !is_blank(line->text[length]))
        length++;
    take(line, length, word);
    return true;
}

/* ---- finding ---- */

static uint64_t hash_of(const struct vocabulary *v, const struct field *word)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (int k = 0; k < word->length; k++) {
        hash ^= v->exact ? (unsigned char)word->text[k] : (uint64_t)small(word->text[k]);
        hash *= 0x100000001b3u;
    }
    return hash ^ hash >> 32;
}

static bool is_same(const struct vocabulary *v, const struct field *a, const struct field *b)
{
    if (a->length != b->length)
        return false;
    if (v->exact)
        return memcmp(a->text, b->text, (size_t)a->length) == 0;
    for (int k = 0; k < a->length; k++)
        if (small(a->text[k]) != small(b->text[k]))
            return false;
    return true;
}

/* The word's slot, or the free one that it would take. */
static size_t slot_of(const struct vocabulary *v, const struct field *word)
{
    size_t mask = v->slot_count - 1, at = (size_t)hash_of(v, word) & mask;
    while (v->slots[at] && !is_same(v, &v->words[v->slots[at] - 1].text, word))
        at = (at + 1) & mask;
    return at;
}

int32_t vocabulary_find(const struct vocabulary *v, const struct field *word)
{
    return v->slot_count ? v->slots[slot_of(v, word)] - 1 : NONE;
}

/* At most half of the slots are taken. */
static enum status make_slots(struct vocabulary *v, struct arena *arena, struct error *err)
{
    if (2 * ((size_t)v->count + 1) <= v->slot_count)
        return STATUS_OK;
    size_t wanted = v->slot_count ? 2 * v->slot_count : SLOTS_FIRST;
    int32_t *slots = arena_array(arena, wanted, sizeof(*slots));
    if (!slots)
        return FAIL_NO_MEMORY(err);
    v->slots = slots;
    v->slot_count = wanted;
    for (int64_t k = 0; k < v->count; k++)
        v->slots[slot_of(v, &v->words[k].text)] = (int32_t)k + 1;
    return STATUS_OK;
}

enum status vocabulary_count(struct vocabulary *v, struct arena *arena, const struct field *word,
                             int32_t *place, struct error *err)
{
    TRY(make_slots(v, arena, err));
    size_t slot = slot_of(v, word);
    if (!v->slots[slot]) {
        if (v->count == INT32_MAX - 1)
            return FAIL(err, STATUS_FAILED, "more than %d different words", INT32_MAX - 1);
        struct vocabulary_word *words =
            arena_grow(arena, v->words, &v->room, (size_t)v->count + 1, sizeof(*words));
        if (!words)
            return FAIL_NO_MEMORY(err);
        v->words = words;
        v->words[v->count] = (struct vocabulary_word){.text = *word};
        v->slots[slot] = (int32_t)++v->count;
    }
    *place = v->slots[slot] - 1;
    v->words[*place].count++;
    return STATUS_OK;
}

/* ---- ids ---- */

static int by_frequency(const void *a, const void *b)
{
    const struct vocabulary_word *x = *(const struct vocabulary_word *const *)a;
    const struct vocabulary_word *y = *(const struct vocabulary_word *const *)b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    int shorter = x->text.length < y->text.length ? x->text.length : y->text.length;
    for (int k = 0; k < shorter; k++)
        if (small(x->text.text[k]) != small(y->text.text[k]))
            return small(x->text.text[k]) - small(y->text.text[k]);
    if (x->text.length != y->text.length)
        return x->text.length < y->text.length ? -1 : 1;
    return memcmp(x->text.text, y->text.text, (size_t)shorter);
}

enum status vocabulary_rank(struct vocabulary *v, struct arena *arena, int32_t unknown,
                            int32_t first, int32_t end, struct error *err)
{
    struct vocabulary_word **order = arena_array(arena, (size_t)v->count + 1, sizeof(*order));
    if (!order)
        return FAIL_NO_MEMORY(err);
    for (int64_t k = 0; k < v->count; k++)
        order[k] = &v->words[k];
    qsort(order, (size_t)v->count, sizeof(*order), by_frequency);
    for (int64_t k = 0; k < v->count; k++)
        order[k]->id = k < end - first ? first + (int32_t)k : unknown;
    return STATUS_OK;
}

/* ---- a given list ---- */

enum status vocabulary_read(struct vocabulary *v, struct arena *arena, const struct data_text *file,
                            int64_t room, struct error *err)
{
    struct lines lines = lines_of(file);
    struct field line, word;
    int32_t place;
    while (lines_next(&lines, &line)) {
        struct field rest = line;
        if (!token_take(&rest, &word) || skip_blanks(&rest))
            return FAIL(err, STATUS_FAILED, "%s:%lld: \"%.*s\"; a line of a vocabulary is one word",
                        file->name, (long long)lines.number, field_shown(&line), line.text);
        TRY(vocabulary_count(v, arena, &word, &place, err));
        if (v->words[place].count > 1)
            return FAIL(err, STATUS_FAILED, "%s:%lld: \"%.*s\" was there before, in line %d%s",
                        file->name, (long long)lines.number, field_shown(&word), word.text,
                        place + 1, v->exact ? "" : "; capitals do not count");
        v->words[place].id = place;
    }
    if (v->count > room)
        return FAIL(err, STATUS_FAILED,
                    "%s: %lld words, and the network has room for %lld: vocabulary=%lld gives it "
                    "as many",
                    file->name, (long long)v->count, (long long)room, (long long)v->count);
    return STATUS_OK;
}

static bool is_bracketed(const struct field *word)
{
    return word->length > 1 && (*word->text == '[' || *word->text == '<');
}

bool vocabulary_has_capitals(const struct vocabulary *v)
{
    for (int64_t k = 0; k < v->count; k++)
        for (int c = 0; !is_bracketed(&v->words[k].text) && c < v->words[k].text.length; c++)
            if (small(v->words[k].text.text[c]) != (unsigned char)v->words[k].text.text[c])
                return true;
    return false;
}
