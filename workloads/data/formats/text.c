/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain text for BERT: a line is a sentence and an empty line ends a document, as google-research's
 * create_pretraining_data has it. A sample is a line and either the next one of its document or, in
 * half of the samples, any other; 15 % of the words are hidden. With a vocabulary (vocab.txt) words
 * are cut into its pieces; without one they are whole, and the vocabulary is that of the most
 * frequent ones. */
#include <string.h>

#include "base/system/hash.h"
#include "workloads/data/word_pieces.h"
#include "workloads/lib/bert.h"

enum { MARKS = 3 }; /* of a sample: [CLS], and [SEP] after each line */

struct line_of {
    int64_t first; /* of its words */
    int32_t count;
    bool goes_on; /* the next line is of the same document */
};

struct text {
    struct line_of *lines;
    int64_t line_count, word_count;
    size_t line_room, word_room;
    bool in_pieces;
    struct word_pieces pieces; /* that were given, or ... */
    struct vocabulary words;   /* ... the words to learn from */
    int32_t *ids;         /* of all lines; of whole words until they are ranked: their places */
    int64_t learnt_lines; /* of the file to learn from: the first ones */
    int64_t *starts[DATA_PARTS]; /* lines that are followed by another one */
    int64_t tokens, asked, vocabulary;
    int64_t line_bytes[DATA_PARTS]; /* mean of the part's file */
};

/* ---- the file ---- */

/* From the words to learn from alone: those that are held out may be unknown. */
static enum status add_words(struct arena *arena, struct text *t, struct field line, bool learnt,
                             struct error *err)
{
    struct field word;
    while (word_take(&line, &word)) {
        int32_t *place = &t->ids[t->word_count++];
        if (learnt)
            TRY(vocabulary_count(&t->words, arena, &word, place, err));
        else
            *place = vocabulary_find(&t->words, &word);
    }
    return STATUS_OK;
}

static enum status add_line(struct data_set *set, struct field line, bool learnt, struct error *err)
{
    struct text *t = set->state;
    struct arena *arena = &set->source.arena;
    t->lines =
        arena_grow(arena, t->lines, &t->line_room, (size_t)t->line_count + 1, sizeof(*t->lines));
    t->ids = arena_grow(arena, t->ids, &t->word_room, (size_t)(t->word_count + line.length),
                        sizeof(*t->ids));
    if (!t->lines || !t->ids)
        return FAIL_NO_MEMORY(err);
    struct line_of *l = &t->lines[t->line_count++];
    *l = (struct line_of){.first = t->word_count};
    if (t->in_pieces)
        t->word_count += word_pieces_take(&t->pieces, &line, t->ids + t->word_count, &set->unknown);
    else
        TRY(add_words(arena, t, line, learnt, err));
    l->count = (int32_t)(t->word_count - l->first);
    return STATUS_OK;
}

static enum status read_file(struct data_set *set, const char *name, bool learnt, struct error *err)
{
    struct text *t = set->state;
    struct data_text file;
    struct field line, copy, word;
    bool follows = false;
    int64_t before = t->line_count;
    TRY(data_map(&set->source, name, &file, err));
    struct lines lines = lines_of(&file);
    while (lines_next(&lines, &line)) {
        copy = line;
        bool empty = !word_take(&copy, &word);
        if (!empty && follows)
            t->lines[t->line_count - 1].goes_on = true;
        if (!empty)
            TRY(add_line(set, line, learnt, err));
        follows = !empty;
    }
    int64_t lines_read = t->line_count - before;
    t->line_bytes[learnt ? DATA_LEARNT : DATA_HELD_OUT] =
        lines_read ? (int64_t)file.size / lines_read : 0;
    return STATUS_OK;
}

static enum status number_words(struct data_set *set, struct error *err)
{
    struct text *t = set->state;
    set->words = t->word_count;
    if (t->in_pieces)
        return STATUS_OK;
    TRY(vocabulary_rank(&t->words, &set->source.arena, BERT_WORDS, BERT_WORDS + 1,
                        (int32_t)t->vocabulary, err));
    for (int64_t k = 0; k < t->word_count; k++) {
        t->ids[k] = t->ids[k] == NONE ? BERT_WORDS : t->words.words[t->ids[k]].id;
        set->unknown += t->ids[k] == BERT_WORDS;
    }
    return STATUS_OK;
}

static enum status read_pieces(struct data_set *set, struct error *err)
{
    struct text *t = set->state;
    struct data_text file;
    t->in_pieces = data_has(&set->source, "vocab.txt");
    if (!t->in_pieces)
        return STATUS_OK;
    TRY(data_map(&set->source, "vocab.txt", &file, err));
    TRY(word_pieces_read(&t->pieces, &set->source.arena, &file, set->source.letters, t->vocabulary,
                         err));
    set->vocabulary = hash64_more(t->pieces.lowers, file.data, file.size);
    return STATUS_OK;
}

static enum status part_lines(struct data_set *set, bool splits, struct error *err)
{
    struct text *t = set->state;
    struct data_split split = {.count = {0}};
    int64_t *part_of = arena_array(&set->source.arena, (size_t)t->line_count + 1, sizeof(*part_of));
    for (int part = 0; part < DATA_PARTS; part++)
        t->starts[part] =
            arena_array(&set->source.arena, (size_t)t->line_count + 1, sizeof(int64_t));
    if (!part_of || !t->starts[0] || !t->starts[1])
        return FAIL_NO_MEMORY(err);
    if (splits)
        TRY(data_split(&set->source.arena, t->line_count, &split, err));
    for (int64_t k = 0; k < split.count[DATA_HELD_OUT]; k++)
        part_of[split.index[DATA_HELD_OUT][k]] = DATA_HELD_OUT;
    for (int64_t k = 0; k < t->line_count; k++) {
        int64_t part = splits ? part_of[k] : k >= t->learnt_lines;
        if (t->lines[k].goes_on)
            t->starts[part][set->count[part]++] = k;
    }
    if (set->count[DATA_LEARNT] < 2)
        return FAIL(err, STATUS_FAILED,
                    "train.txt: hardly a line is followed by another; a line is a sentence, and an "
                    "empty line ends a document");
    return STATUS_OK;
}

static enum status check_graph(struct data_set *set, const struct graph *graph, struct error *err)
{
    static const char *const names[] = {"input_ids",        "segment_ids",  "input_mask",
                                        "masked_positions", "masked_words", "next_is_random"};
    struct text *t = set->state;
    for (int k = 0; k < ARRAY_COUNT(names); k++) {
        const struct value *value;
        TRY(data_input(set, graph, names[k], DTYPE_I32, k < 5 ? 2 : 1, &value, err));
        t->tokens = k == 0 ? value->shape.dim[1] : t->tokens;
        t->asked = k == 3 ? value->shape.dim[1] : t->asked;
        t->vocabulary = k == 0 ? data_ids(value) : t->vocabulary;
    }
    if (t->tokens < 5)
        return UNSUPPORTED(err, "%s: %lld tokens have no room for two sentences", graph->name,
                           (long long)t->tokens);
    return STATUS_OK;
}

/* Any other line is as long, on average, as the one that follows. */
static void measure_padding(struct data_set *set)
{
    const struct text *t = set->state;
    int64_t places = t->tokens * set->count[DATA_LEARNT], tokens = 0;
    for (int64_t k = 0; k < set->count[DATA_LEARNT]; k++) {
        const struct line_of *line = &t->lines[t->starts[DATA_LEARNT][k]];
        int64_t both = (int64_t)line[0].count + line[1].count + MARKS;
        tokens += both < t->tokens ? both : t->tokens;
    }
    set->padding = (double)(places - tokens) / (double)places;
}

static enum status text_open(struct data_set *set, const struct graph *graph, struct error *err)
{
    struct text *t = arena_alloc(&set->source.arena, sizeof(*t));
    if (!t)
        return FAIL_NO_MEMORY(err);
    set->state = t;
    TRY(check_graph(set, graph, err));
    TRY(read_pieces(set, err));
    TRY(read_file(set, "train.txt", true, err));
    t->learnt_lines = t->line_count;
    const char *held_out = data_has(&set->source, "valid.txt")  ? "valid.txt"
                           : data_has(&set->source, "test.txt") ? "test.txt"
                                                                : NULL;
    t->line_bytes[DATA_HELD_OUT] = t->line_bytes[DATA_LEARNT];
    if (held_out)
        TRY(read_file(set, held_out, false, err));
    TRY(number_words(set, err));
    TRY(part_lines(set, !held_out, err));
    measure_padding(set);
    return STATUS_OK;
}

/* ---- samples ---- */

/* Both are cut until they fit, the longer one first. */
static void cut_to_fit(int64_t room, int64_t *first, int64_t *second)
{
    while (*first + *second > room)
        --*(*first > *second ? first : second);
}

static void put_sentence(struct bert_text *b, const int32_t *ids, int64_t count, int segment)
{
    for (int64_t k = 0; k <= count; k++) {
        b->id[b->length] = k < count ? ids[k] : BERT_SEP;
        b->segment[b->length++] = segment;
    }
}

/* Returns whether the second line is any. */
static bool put_lines(const struct text *t, const int64_t *starts, int64_t count, int64_t line,
                      struct bert_text *b)
{
    bool random = draw_uniform(b->draw) < 0.5;
    int64_t other = starts[draw_index(b->draw, count)];
    const struct line_of *first = &t->lines[line], *second = &t->lines[random ? other : line + 1];
    int64_t lengths[2] = {first->count, second->count};
    cut_to_fit(b->tokens - MARKS, &lengths[0], &lengths[1]);
    b->id[0] = BERT_CLS;
    b->segment[0] = 0;
    b->length = 1;
    put_sentence(b, t->ids + first->first, lengths[0], 0);
    put_sentence(b, t->ids + second->first, lengths[1], 1);
    for (int64_t k = 0; k < b->tokens; k++) {
        b->real[k] = k < b->length;
        if (k >= b->length) {
            b->id[k] = BERT_PAD;
            b->segment[k] = 0;
        }
    }
    return random;
}

static enum status text_read(const struct data_set *set, struct data_rows *rows, struct error *err)
{
    const struct text *t = set->state;
    const struct batch *batch = rows->batch;
    int32_t *id = batch_input(batch, "input_ids"), *segment = batch_input(batch, "segment_ids");
    int32_t *real = batch_input(batch, "input_mask");
    int32_t *at = batch_input(batch, "masked_positions");
    int32_t *word = batch_input(batch, "masked_words");
    int32_t *random = batch_input(batch, "next_is_random");
    const int64_t *starts = t->starts[batch->held_out];
    (void)err;
    for (int64_t k = 0; k < rows->count; k++) {
        int64_t row = rows->first + k;
        struct draw draw = draw_begin(batch, row);
        struct bert_text b = {.id = id + row * t->tokens,
                              .segment = segment + row * t->tokens,
                              .real = real + row * t->tokens,
                              .tokens = t->tokens,
                              .vocabulary = t->vocabulary,
                              .draw = &draw};
        random[row] =
            put_lines(t, starts, set->count[batch->held_out], starts[rows->record[k]], &b);
        bert_hide_words(&b, t->asked, at + row * t->asked, word + row * t->asked);
        rows->bytes += 2 * t->line_bytes[batch->held_out];
    }
    return STATUS_OK;
}

REGISTER(data_format, text) = {
    .name = "text",
    .summary =
        "plain text: train.txt and valid.txt or test.txt, a sentence per line, an empty line "
        "after each document; vocab.txt: word pieces",
    .marks = {"train.txt"},
    .open = text_open,
    .read = text_read,
};
