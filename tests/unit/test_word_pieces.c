/* SPDX-License-Identifier: Apache-2.0
 * Word pieces: what is cut how was taken from google-research/bert, tokenization_test.py. */
#include <string.h>

#include "tests/lib/data_case.h"
#include "tests/lib/unit.h"
#include "workloads/data/characters.h"
#include "workloads/data/word_pieces.h"
#include "workloads/lib/bert.h"

/* Ids: [UNK] 4, want 5, ##want 6, ##ed 7, wa 8, un 9, runn 10, ##ing 11, "," 12. */
static const char theirs[] = "[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\n"
                             "want\n##want\n##ed\nwa\nun\nrunn\n##ing\n,\n";
enum { UNK = BERT_WORDS, WANT, WANT_IN, ED_IN, WA, UN, RUNN, ING_IN, COMMA };

struct cut {
    struct arena arena;
    struct word_pieces pieces;
    int32_t ids[600];
    int32_t count;
    int64_t unknown;
};

static enum status read_pieces(struct cut *c, const char *text, enum letter_case letters,
                               int64_t room, struct error *err)
{
    const struct data_text file = {"vocab.txt", text, strlen(text)};
    *c = (struct cut){.count = 0};
    return word_pieces_read(&c->pieces, &c->arena, &file, letters, room, err);
}

static void cut(struct cut *c, const char *vocabulary, enum letter_case letters, const char *text)
{
    struct error err;
    struct field line = {text, (int)strlen(text)};
    assert_true(line.length <= ARRAY_COUNT(c->ids));
    assert_int_equal(read_pieces(c, vocabulary, letters, 100, &err), STATUS_OK);
    c->count = word_pieces_take(&c->pieces, &line, c->ids, &c->unknown);
    arena_release(&c->arena);
}

static void check_ids(const struct cut *c, const int32_t *expected, int count)
{
    assert_int_equal(c->count, count);
    assert_memory_equal(c->ids, expected, (size_t)count * sizeof(*expected));
}
#define IDS(c, ...)                                                                                \
    check_ids(c, (const int32_t[]){__VA_ARGS__}, ARRAY_COUNT(((int[]){__VA_ARGS__})))

TEST(pieces_are_those_of_google)
{
    struct cut c;
    cut(&c, theirs, LETTERS_AS_VOCABULARY,
        "UNwant\xc3\xa9"
        "d,running");
    IDS(&c, UN, WANT_IN, ED_IN, COMMA, RUNN, ING_IN);
    cut(&c, theirs, LETTERS_AS_VOCABULARY, "");
    assert_int_equal(c.count, 0);
    cut(&c, theirs, LETTERS_AS_VOCABULARY, "unwanted running");
    IDS(&c, UN, WANT_IN, ED_IN, RUNN, ING_IN);
    assert_int_equal(c.unknown, 0);
    cut(&c, theirs, LETTERS_AS_VOCABULARY, "unwantedX running");
    IDS(&c, UNK, RUNN, ING_IN);
    assert_int_equal(c.unknown, 1);
}

TEST(the_longest_piece_is_taken)
{
    struct cut c;
    static const char more[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n##bc\n##c\nab\n";
    cut(&c, more, LETTERS_AS_VOCABULARY, "abc ac abbc abd");
    enum { A = BERT_WORDS + 1, B_IN, BC_IN, C_IN, AB };
    IDS(&c, AB, C_IN, A, C_IN, AB, BC_IN, UNK);
}

/* Capitals count where the vocabulary has any, unless the user says otherwise. */
TEST(capitals_count_as_the_vocabulary_or_the_user_says)
{
    struct cut c;
    static const char cased[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nThe\nthe\n";
    cut(&c, cased, LETTERS_AS_VOCABULARY, "The the THE");
    IDS(&c, BERT_WORDS + 1, BERT_WORDS + 2, UNK);
    cut(&c, cased, LETTERS_LOWERED, "The the THE");
    IDS(&c, BERT_WORDS + 2, BERT_WORDS + 2, BERT_WORDS + 2);
    cut(&c, theirs, LETTERS_KEPT, "want Want");
    IDS(&c, WANT, UNK);
}

TEST(words_of_more_than_200_characters_are_unknown)
{
    struct cut c;
    char text[512] = "want ";
    static const char one[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##a\n";
    memset(text, 'a', 201);
    text[201] = '\0';
    cut(&c, one, LETTERS_AS_VOCABULARY, text);
    IDS(&c, UNK);
    text[200] = '\0';
    cut(&c, one, LETTERS_AS_VOCABULARY, text);
    assert_int_equal(c.count, 200);
    assert_int_equal(c.unknown, 0);
}

/* Blanks and Chinese characters cut, too; what cannot be decoded or seen is left out. */
TEST(other_characters_than_ascii)
{
    struct cut c;
    static const char chinese[] =
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nah\n\xe5\x8d\x9a\n\xe6\x8e\xa8\nzz\n";
    cut(&c, chinese, LETTERS_AS_VOCABULARY,
        "ah\xe5\x8d\x9a\xe6\x8e\xa8zz\xe3\x80\x80"
        "a\xc2\xadh \xff\xfe"
        "ah");
    enum { AH = BERT_WORDS + 1, FIRST, SECOND, ZZ };
    IDS(&c, AH, FIRST, SECOND, ZZ, AH, AH);
}

/* Python's split() cuts at them, too. */
TEST(separators_of_lines_and_paragraphs_cut)
{
    struct cut c;
    cut(&c, theirs, LETTERS_AS_VOCABULARY, "want\xe2\x80\xa8wa\xe2\x80\xa9un");
    IDS(&c, WANT, WA, UN);
    assert_int_equal(c.unknown, 0);
}

TEST(small_letters_have_no_accents)
{
    static const uint32_t letters[][2] = {
        {'A', 'a'},     {'z', 'z'},     {0xc4, 'a'},    {0xc6, 0xe6},   {0xd7, 0xd7},
        {0xdf, 0xdf},   {0xff, 'y'},    {0x10c, 'c'},   {0x110, 0x111}, {0x130, 'i'},
        {0x131, 0x131}, {0x141, 0x142}, {0x142, 0x142}, {0x152, 0x153}, {0x178, 'y'},
        {0x17e, 'z'},   {0x17f, 0x17f}, {0x301, 0},     {0x386, 0x3b1}, {0x391, 0x3b1},
        {0x3ce, 0x3c9}, {0x401, 0x435}, {0x410, 0x430}, {0x419, 0x438}, {0x44f, 0x44f}};
    for (int k = 0; k < ARRAY_COUNT(letters); k++)
        assert_int_equal(character_small(letters[k][0]), letters[k][1]);
}

TEST(characters_are_written_as_they_were_read)
{
    char text[4];
    int bytes;
    for (uint32_t c = 1; c < 0x110000; c += c < 0x3000 ? 1 : 97) {
        if (c >= 0xd800 && c <= 0xdfff)
            continue;
        int length = character_put(c, text);
        assert_int_equal(character_take(text, length, &bytes), c);
        assert_int_equal(bytes, length);
        if (length > 1) { /* cut off */
            assert_int_equal(character_take(text, length - 1, &bytes), 0);
            assert_int_equal(bytes, 1);
        }
    }
    assert_int_equal(character_take("\xc0\x80", 2, &bytes), 0); /* longer than need be */
    assert_int_equal(character_take("\xed\xa0\x80", 3, &bytes), 0);
    assert_int_equal(character_take("\xf5\x80\x80\x80", 4, &bytes), 0);
}

TEST(broken_vocabularies_are_refused)
{
    static const char *const broken[][2] = {
        {"[PAD]\n[UNK]\n[CLS]\n[SEP]\nwant\n", "vocab.txt: there is no line [MASK]"},
        {"[PAD]\n\n[UNK]\n", "vocab.txt:2: \"\"; a line of a vocabulary is one word"},
        {"[PAD]\ntwo words\n", "vocab.txt:2: \"two words\""},
        {"want\n[PAD]\nwant\n", "vocab.txt:3: \"want\" was there before, in line 1"},
        {"", "there is no line [PAD]"},
    };
    struct cut c;
    struct error err;
    for (int k = 0; k < ARRAY_COUNT(broken); k++) {
        assert_int_equal(read_pieces(&c, broken[k][0], LETTERS_AS_VOCABULARY, 100, &err),
                         STATUS_FAILED);
        assert_non_null(strstr(err.message, broken[k][1]));
        arena_release(&c.arena);
    }
    assert_int_equal(read_pieces(&c, theirs, LETTERS_AS_VOCABULARY, 12, &err), STATUS_FAILED);
    assert_non_null(strstr(err.message, "vocab.txt: 13 words, and the network has room for 12: "
                                        "vocabulary=13"));
    arena_release(&c.arena);
}

/* The text format takes them where vocab.txt lies beside the text. */
TEST(text_is_read_in_pieces)
{
    static const char book[] = "want wanted\nunwanted\nrunning, running\n";
    const struct data_text texts[] = {{"train.txt", book, strlen(book)},
                                      {"vocab.txt", theirs, strlen(theirs)},
                                      {"valid.txt", book, strlen(book)}};
    struct data_case c;
    struct error err;
    assert_int_equal(
        data_case_open(
            &c, "text", texts, 3,
            data_case_graph("bert_base:tokens=12,depth=1,width=8,heads=1,vocabulary=13", 4), &err),
        STATUS_OK);
    assert_int_equal(c.set.words, 2 * (3 + 3 + 5));
    assert_int_equal(c.set.unknown, 0);
    assert_true(c.set.vocabulary != 0);
    assert_int_equal(data_case_read(&c, false, 0, &err), STATUS_OK);
    const int32_t *id = batch_input(&c.batch, "input_ids");
    for (int k = 0; k < 4 * 12; k++)
        assert_true(id[k] >= 0 && id[k] <= COMMA);
    data_case_close(&c);
}
