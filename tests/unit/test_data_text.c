/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "tests/lib/data_case.h"
#include "tests/lib/unit.h"
#include "workloads/data/vocabulary.h"
#include "workloads/lib/bert.h"

static const char book[] = "The cat sat.\nThe cat ran!\nA dog sat.\n\nOne two\nthree four\n";
static const char spec[] = "bert_base:tokens=12,depth=1,width=8,heads=1,vocabulary=16";

static enum status open_text(struct data_case *c, const char *learnt, const char *held_out,
                             struct error *err)
{
    const struct data_text texts[] = {{"train.txt", learnt, strlen(learnt)},
                                      {"valid.txt", held_out, strlen(held_out)}};
    return data_case_open(c, "text", texts, 2, data_case_graph(spec, 4), err);
}

TEST(words_are_letters_or_single_characters)
{
    static const char *const words[] = {"It", "'", "s", "a", "4x4", "caf\xc3\xa9", "!"};
    struct field line = {" It's a 4x4 caf\xc3\xa9!\r", 18}, word;
    for (int k = 0; k < ARRAY_COUNT(words); k++)
        assert_true(word_take(&line, &word) && field_is(&word, words[k]));
    assert_false(word_take(&line, &word));
}

TEST(frequent_words_have_small_ids)
{
    struct arena arena = {0};
    struct vocabulary v = {.exact = false};
    const struct field words[] = {{"b", 1}, {"A", 1}, {"c", 1}, {"a", 1}, {"c", 1}, {"a", 1}};
    const int32_t places[] = {0, 1, 2, 1, 2, 1};
    int32_t place;
    for (int k = 0; k < ARRAY_COUNT(words); k++) {
        MUST(vocabulary_count, &v, &arena, &words[k], &place);
        assert_int_equal(place, places[k]);
    }
    assert_int_equal(v.count, 3);
    MUST(vocabulary_rank, &v, &arena, 4, 5, 7);
    assert_int_equal(v.words[vocabulary_find(&v, &(struct field){"a", 1})].id, 5);
    assert_int_equal(v.words[vocabulary_find(&v, &(struct field){"C", 1})].id, 6);
    assert_int_equal(v.words[vocabulary_find(&v, &(struct field){"b", 1})].id, 4); /* no room */
    assert_int_equal(vocabulary_find(&v, &(struct field){"d", 1}), NONE);
    arena_release(&arena);
}

TEST(many_words_are_found_again)
{
    enum { MANY = 5000 };
    struct arena arena = {0};
    struct vocabulary v = {.exact = true};
    char *text = arena_alloc(&arena, MANY * 8);
    int32_t place;
    for (int round = 0; round < 2; round++)
        for (int k = 0; k < MANY; k++) {
            struct field word = {text + k * 8, snprintf(text + k * 8, 8, "w%d", k)};
            MUST(vocabulary_count, &v, &arena, &word, &place);
            assert_int_equal(place, k);
        }
    assert_int_equal(v.count, MANY);
    assert_int_equal(v.words[MANY - 1].count, 2);
    assert_int_equal(vocabulary_find(&v, &(struct field){"W7", 2}), NONE);
    arena_release(&arena);
}

/* One sequence: how it is built, and that what is hidden was there. */
static void check_sequence(const struct data_case *c, int row)
{
    enum { TOKENS = 12, ASKED = 2 };
    const int32_t *id = (const int32_t *)batch_input(&c->batch, "input_ids") + row * TOKENS;
    const int32_t *segment = (const int32_t *)batch_input(&c->batch, "segment_ids") + row * TOKENS;
    const int32_t *real = (const int32_t *)batch_input(&c->batch, "input_mask") + row * TOKENS;
    const int32_t *at = (const int32_t *)batch_input(&c->batch, "masked_positions") + row * ASKED;
    const int32_t *word = (const int32_t *)batch_input(&c->batch, "masked_words") + row * ASKED;
    int separators = 0, length = 0;
    assert_int_equal(id[0], BERT_CLS);
    for (int k = 0; k < TOKENS; k++) {
        assert_true(real[k] ? id[k] != BERT_PAD : id[k] == BERT_PAD);
        assert_true(id[k] >= 0 && id[k] < 16);
        assert_int_equal(segment[k], real[k] && separators == 1);
        separators += id[k] == BERT_SEP;
        length += real[k];
    }
    assert_int_equal(separators, 2);
    assert_int_equal(id[length - 1], BERT_SEP);
    for (int k = 0; k < ASKED; k++)
        assert_true(word[k] >= BERT_WORDS && word[k] < 16 && at[k] > 0 && at[k] < length - 1);
}

TEST(a_sample_is_two_lines_with_hidden_words)
{
    struct data_case c;
    int randoms = 0;
    MUST(open_text, &c, book, "The dog\nsat unknown\n");
    assert_int_equal(c.set.count[DATA_LEARNT], 3); /* the last line of a document has no next one */
    assert_int_equal(c.set.count[DATA_HELD_OUT], 1);
    assert_true(c.set.padding == 7. / 36); /* 4 + 4 words twice, 2 + 2, and 3 marks, of 12 each */
    for (int64_t first = 0; first < 200; first += 4) {
        MUST(data_case_read, &c, first % 8 == 0, first);
        const int32_t *random = batch_input(&c.batch, "next_is_random");
        for (int row = 0; row < 4; row++) {
            check_sequence(&c, row);
            randoms += random[row];
        }
    }
    assert_true(randoms > 70 && randoms < 130);
    data_case_close(&c);
}

/* Of which --read-limit counts the bytes. */
TEST(lines_have_the_bytes_of_their_own_file)
{
    static const char *const held_out[] = {"The dog sat\nand ran over to the other side\n",
                                           "a\nb\nc\nd\ne\nf\ng\nh\n"};
    const int64_t of_each[] = {21, 2}, learnt = (sizeof(book) - 1) / 5; /* five lines */
    for (int k = 0; k < 2; k++) {
        struct data_case c;
        int64_t bytes[DATA_PARTS] = {0};
        MUST(open_text, &c, book, held_out[k]);
        for (int part = 0; part < DATA_PARTS; part++) {
            c.batch.held_out = part == DATA_HELD_OUT;
            MUST(data_fill, &c.set, &c.batch, 0, 4, &bytes[part]);
        }
        assert_int_equal(bytes[DATA_LEARNT], 4 * 2 * learnt);
        assert_int_equal(bytes[DATA_HELD_OUT], 4 * 2 * of_each[k]);
        data_case_close(&c);
    }
}

TEST(text_without_neighbours_is_refused)
{
    struct data_case c;
    FAILS(STATUS_FAILED, "hardly a line is followed by another", open_text, &c,
          "one\n\ntwo\n\nthree\n", "");
    data_case_close(&c);
    FAILS(STATUS_FAILED, "no samples to be held out", open_text, &c, book, "alone\n");
    data_case_close(&c);
}
