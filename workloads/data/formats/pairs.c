/* SPDX-License-Identifier: Apache-2.0
 *
 * Sentences and their translations, for NMT: a file with both in each line, a tab between them, or
 * two files whose lines belong together. A vocabulary for each language is given, as TensorFlow's
 * NMT tutorial has it, or made of the most frequent words of what is learnt. Pairs that the network
 * has no room for are left out and counted. */
#include <stdio.h>
#include <string.h>

#include "base/system/hash.h"
#include "workloads/data/vocabulary.h"
#include "workloads/lib/sentences.h"

enum { SOURCE, TARGET, SIDES, UNKNOWN = 0 };

struct side {
    bool given;
    struct vocabulary words;
    int32_t *ids; /* of all sentences; of words that are counted until they are ranked: places */
    int64_t count;
    size_t room;
    int64_t longest;    /* words of a sentence at most */
    int64_t vocabulary; /* ids of the network */
};

struct pair {
    int64_t first[SIDES]; /* of its words */
    int32_t count[SIDES];
};

struct pairs {
    struct side side[SIDES];
    struct pair *pairs;
    int64_t count, learnt; /* those to learn from come first */
    size_t room;
    int64_t source, target; /* S, T */
    int64_t bytes;          /* of the files */
    bool in_one_file;
    char names[SIDES][128]; /* of what is learnt from; the first alone is in one file */
    struct data_split split;
};

/* ---- which files ---- */

static const char *ending_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot : "";
}

static enum status choose_files(const struct data_set *set, struct pairs *p, struct error *err)
{
    static const char *const usual[] = {"train.de", "train.en"};
    const struct data_source *source = &set->source;
    bool named = source->file[0];
    p->in_one_file = named ? !source->file[1] : data_has(source, "train.tsv");
    for (int k = 0; k < SIDES; k++) {
        const char *name = p->in_one_file ? named ? source->file[0] : "train.tsv"
                           : named        ? source->file[k]
                                          : usual[k];
        snprintf(p->names[k], sizeof(p->names[k]), "%s", name);
    }
    const char *ending = ending_of(p->names[SOURCE]);
    if (p->in_one_file && strcmp(ending, ".tsv") != 0)
        return FAIL(err, STATUS_FAILED,
                    "%s: name a file that ends in .tsv, or two: train%s,train.en", p->names[SOURCE],
                    *ending ? ending : ".de");
    if (!p->in_one_file && strcmp(ending, ending_of(p->names[TARGET])) == 0)
        return FAIL(err, STATUS_FAILED,
                    "%s and %s: the endings must tell the languages: train.de,train.en",
                    p->names[SOURCE], p->names[TARGET]);
    return STATUS_OK;
}

/* "vocab.de" beside train.de, "vocab.source" beside a file of pairs. */
static void name_beside(const struct pairs *p, int side, const char *stem, char name[160])
{
    static const char *const sides[] = {".source", ".target"};
    snprintf(name, 160, "%s%s", stem, p->in_one_file ? sides[side] : ending_of(p->names[side]));
}

/* What is held out lies in valid.de and valid.en, or valid.tsv; also dev and test. */
static bool find_held_out(const struct data_set *set, const struct pairs *p, char names[SIDES][160])
{
    static const char *const stems[] = {"valid", "dev", "test"};
    for (int s = 0; s < ARRAY_COUNT(stems); s++) {
        for (int k = 0; k < SIDES; k++) {
            if (p->in_one_file)
                snprintf(names[k], 160, "%s.tsv", stems[s]);
            else
                name_beside(p, k, stems[s], names[k]);
        }
        if (strcmp(names[SOURCE], p->names[SOURCE]) != 0 && data_has(&set->source, names[SOURCE]))
            return true;
    }
    return false;
}

/* ---- words ---- */

static enum status read_words(struct data_set *set, const struct data_text *file, struct side *side,
                              struct error *err)
{
    struct arena *arena = &set->source.arena;
    side->words.exact = set->source.letters != LETTERS_LOWERED;
    TRY(vocabulary_read(&side->words, arena, file, side->vocabulary, err));
    if (set->source.letters == LETTERS_AS_VOCABULARY && !vocabulary_has_capitals(&side->words)) {
        side->words = (struct vocabulary){.exact = false};
        TRY(vocabulary_read(&side->words, arena, file, side->vocabulary, err));
    }
    set->vocabulary = hash64_more(set->vocabulary + side->words.exact, file->data, file->size);
    return STATUS_OK;
}

static enum status read_vocabulary(struct data_set *set, int k, struct error *err)
{
    static const char *const first[] = {"<unk>", "<s>", "</s>"};
    struct pairs *p = set->state;
    struct side *side = &p->side[k];
    struct data_text file;
    char name[160];
    name_beside(p, k, "vocab", name);
    side->given = data_has(&set->source, name);
    if (!side->given)
        return STATUS_OK;
    TRY(data_map(&set->source, name, &file, err));
    TRY(read_words(set, &file, side, err));
    for (int w = 0; w < ARRAY_COUNT(first); w++)
        if (w >= side->words.count || !field_is(&side->words.words[w].text, first[w]))
            return FAIL(err, STATUS_FAILED,
                        "%s:%d: the first three lines must be <unk>, <s> and </s>", file.name,
                        w + 1);
    return STATUS_OK;
}

/* Words of a given vocabulary stand between blanks; others are cut at punctuation, too. */
static bool next_word(const struct side *side, struct field *line, struct field *word)
{
    return side->given ? token_take(line, word) : word_take(line, word);
}

/* Up to one more than the network has room for. */
static int32_t count_words(const struct side *side, struct field line)
{
    struct field word;
    int32_t count = 0;
    while (count <= side->longest && next_word(side, &line, &word))
        count++;
    return count;
}

/* Held-out words that are not among the learnt ones are unknown. */
static enum status keep_words(struct data_set *set, struct side *side, struct field line,
                              int32_t count, bool learnt, struct error *err)
{
    struct arena *arena = &set->source.arena;
    struct field word;
    side->ids = arena_grow(arena, side->ids, &side->room, (size_t)(side->count + count),
                           sizeof(*side->ids));
    if (!side->ids)
        return FAIL_NO_MEMORY(err);
    while (next_word(side, &line, &word)) {
        int32_t *id = &side->ids[side->count++];
        if (learnt && !side->given)
            TRY(vocabulary_count(&side->words, arena, &word, id, err));
        else
            *id = vocabulary_find(&side->words, &word);
    }
    return STATUS_OK;
}

static enum status number_words(struct data_set *set, struct side *side, struct error *err)
{
    if (!side->given)
        TRY(vocabulary_rank(&side->words, &set->source.arena, UNKNOWN, SENTENCES_FIRST,
                            (int32_t)side->vocabulary, err));
    set->words += side->count;
    for (int64_t k = 0; k < side->count; k++) {
        side->ids[k] = side->ids[k] == NONE ? UNKNOWN : side->words.words[side->ids[k]].id;
        set->unknown += side->ids[k] == UNKNOWN;
    }
    return STATUS_OK;
}

/* ---- pairs ---- */

static enum status add_pair(struct data_set *set, const struct field line[SIDES], bool learnt,
                            struct error *err)
{
    struct pairs *p = set->state;
    struct pair pair;
    for (int k = 0; k < SIDES; k++) {
        pair.first[k] = p->side[k].count;
        pair.count[k] = count_words(&p->side[k], line[k]);
        if (pair.count[k] == 0 || pair.count[k] > p->side[k].longest) {
            set->dropped++;
            return STATUS_OK;
        }
    }
    for (int k = 0; k < SIDES; k++)
        TRY(keep_words(set, &p->side[k], line[k], pair.count[k], learnt, err));
    p->pairs =
        arena_grow(&set->source.arena, p->pairs, &p->room, (size_t)p->count + 1, sizeof(*p->pairs));
    if (!p->pairs)
        return FAIL_NO_MEMORY(err);
    p->pairs[p->count++] = pair;
    return STATUS_OK;
}

static enum status read_one(struct data_set *set, const char *name, bool learnt, struct error *err)
{
    struct pairs *p = set->state;
    struct data_text file;
    struct field line, half[SIDES];
    TRY(data_map(&set->source, name, &file, err));
    struct lines lines = lines_of(&file);
    while (lines_next(&lines, &line)) {
        struct field rest = line;
        field_take(&rest, "\t", &half[SOURCE]);
        half[TARGET] = (struct field){.length = 0};
        if (line.length && !field_take(&rest, "\t", &half[TARGET]))
            return FAIL(err, STATUS_FAILED,
                        "%s:%lld: \"%.*s\" has no tab; a line is a sentence, a tab and its "
                        "translation",
                        file.name, (long long)lines.number, field_shown(&line), line.text);
        TRY(add_pair(set, half, learnt, err));
    }
    p->bytes += (int64_t)file.size;
    return STATUS_OK;
}

static enum status read_two(struct data_set *set, const char *const names[SIDES], bool learnt,
                            struct error *err)
{
    struct pairs *p = set->state;
    struct data_text file[SIDES];
    struct lines lines[SIDES];
    struct field line[SIDES];
    bool more[SIDES];
    for (int k = 0; k < SIDES; k++) {
        TRY(data_map(&set->source, names[k], &file[k], err));
        lines[k] = lines_of(&file[k]);
        p->bytes += (int64_t)file[k].size;
    }
    for (;;) {
        for (int k = 0; k < SIDES; k++)
            more[k] = lines_next(&lines[k], &line[k]);
        if (more[SOURCE] != more[TARGET]) {
            int ended = more[SOURCE] ? TARGET : SOURCE;
            return FAIL(err, STATUS_FAILED,
                        "%s: ends after line %lld, and %s goes on: line k of one is the "
                        "translation of line k of the other",
                        file[ended].name, (long long)lines[ended].number, file[!ended].name);
        }
        if (!more[SOURCE])
            return STATUS_OK;
        TRY(add_pair(set, line, learnt, err));
    }
}

static enum status read_all(struct data_set *set, struct error *err)
{
    struct pairs *p = set->state;
    char held_out[SIDES][160];
    bool apart = find_held_out(set, p, held_out);
    const char *learnt[] = {p->names[SOURCE], p->names[TARGET]};
    const char *other[] = {held_out[SOURCE], held_out[TARGET]};
    TRY(p->in_one_file ? read_one(set, learnt[0], true, err) : read_two(set, learnt, true, err));
    p->learnt = p->count;
    if (apart)
        TRY(p->in_one_file ? read_one(set, other[0], false, err)
                           : read_two(set, other, false, err));
    for (int k = 0; k < SIDES; k++)
        TRY(number_words(set, &p->side[k], err));
    if (p->count == 0)
        return FAIL(err, STATUS_FAILED,
                    "%s: none of %lld pairs has room in the network: give it source=N and "
                    "target=N, words of a sentence, and of a translation and its end",
                    p->names[SOURCE], (long long)set->dropped);
    set->count[DATA_LEARNT] = p->learnt;
    set->count[DATA_HELD_OUT] = p->count - p->learnt;
    if (apart)
        return STATUS_OK;
    TRY(data_split(&set->source.arena, p->count, &p->split, err));
    for (int part = 0; part < DATA_PARTS; part++)
        set->count[part] = p->split.count[part];
    return STATUS_OK;
}

static const struct pair *pair_of(const struct pairs *p, int part, int64_t record)
{
    if (p->split.index[part])
        return &p->pairs[p->split.index[part][record]];
    return &p->pairs[part == DATA_LEARNT ? record : p->learnt + record];
}

/* A step is compiled for one length, to which all sentences are padded. */
static void measure_padding(struct data_set *set)
{
    const struct pairs *p = set->state;
    int64_t places = (p->source + p->target) * set->count[DATA_LEARNT], words = 0;
    for (int64_t k = 0; k < set->count[DATA_LEARNT]; k++) {
        const struct pair *pair = pair_of(p, DATA_LEARNT, k);
        words += pair->count[SOURCE] + pair->count[TARGET] + 1;
    }
    set->padding = (double)(places - words) / (double)places;
}

static enum status check_graph(struct data_set *set, const struct graph *graph, struct error *err)
{
    struct pairs *p = set->state;
    const struct value *source, *target, *value;
    TRY(data_input(set, graph, "source", DTYPE_I32, 2, &source, err));
    TRY(data_input(set, graph, "source_length", DTYPE_I32, 1, &value, err));
    TRY(data_input(set, graph, "target_given", DTYPE_I32, 2, &value, err));
    TRY(data_input(set, graph, "target", DTYPE_I32, 2, &target, err));
    p->source = source->shape.dim[1];
    p->target = target->shape.dim[1];
    p->side[SOURCE].longest = p->source;
    p->side[TARGET].longest = p->target - 1; /* its end is one */
    p->side[SOURCE].vocabulary = data_ids(source);
    p->side[TARGET].vocabulary = data_ids(target);
    return STATUS_OK;
}

static enum status pairs_open(struct data_set *set, const struct graph *graph, struct error *err)
{
    struct pairs *p = arena_alloc(&set->source.arena, sizeof(*p));
    if (!p)
        return FAIL_NO_MEMORY(err);
    set->state = p;
    TRY(check_graph(set, graph, err));
    TRY(choose_files(set, p, err));
    for (int k = 0; k < SIDES; k++)
        TRY(read_vocabulary(set, k, err));
    TRY(read_all(set, err));
    measure_padding(set);
    return STATUS_OK;
}

/* ---- samples ---- */

static enum status pairs_read(const struct data_set *set, struct data_rows *rows, struct error *err)
{
    const struct pairs *p = set->state;
    const struct batch *batch = rows->batch;
    int part = batch->held_out ? DATA_HELD_OUT : DATA_LEARNT;
    int32_t *source = batch_input(batch, "source"), *lengths = batch_input(batch, "source_length");
    int32_t *given = batch_input(batch, "target_given"), *target = batch_input(batch, "target");
    (void)err;
    for (int64_t k = 0; k < rows->count; k++) {
        int64_t row = rows->first + k, record = rows->record[k];
        const struct pair *pair = pair_of(p, part, record);
        const int32_t *from = p->side[SOURCE].ids + pair->first[SOURCE];
        const int32_t *to = p->side[TARGET].ids + pair->first[TARGET];
        int32_t words = pair->count[TARGET];
        lengths[row] = pair->count[SOURCE];
        for (int64_t s = 0; s < p->source; s++)
            source[row * p->source + s] = s < pair->count[SOURCE] ? from[s] : SENTENCES_END;
        for (int64_t t = 0; t < p->target; t++) {
            int64_t at = row * p->target + t;
            given[at] = t == 0 ? SENTENCES_START : t <= words ? to[t - 1] : SENTENCES_END;
            target[at] = t < words ? to[t] : t == words ? SENTENCES_END : SENTENCES_NOTHING;
        }
        rows->bytes += p->bytes / (p->count + set->dropped);
    }
    return STATUS_OK;
}

REGISTER(data_format, pairs) = {
    .name = "pairs",
    .summary = "sentences and their translations: train.de and train.en, or train.tsv with a tab "
               "between them; vocab.de, vocab.en: their words",
    .marks = {"train.tsv", "train.de"},
    .ending = ".tsv",
    .pairs = true,
    .open = pairs_open,
    .read = pairs_read,
};
