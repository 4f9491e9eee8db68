/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/data_case.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"
#include "workloads/lib/sentences.h"

enum { S = 4, T = 5, N = 4 };
enum { START = SENTENCES_START, END = SENTENCES_END, FIRST = SENTENCES_FIRST };
static const char spec[] = "nmt:source=4,target=5,vocabulary=8,width=8,dropout=none";

struct piece {
    const char *name, *text;
};

static enum status open_files(struct data_case *c, const struct piece *files, int count,
                              struct error *err)
{
    struct data_text texts[8];
    for (int k = 0; k < count; k++)
        texts[k] = (struct data_text){files[k].name, files[k].text, strlen(files[k].text)};
    return data_case_open(c, "pairs", texts, count, data_case_graph(spec, N), err);
}
#define OPEN(c, err, ...)                                                                          \
    open_files(c, (const struct piece[]){__VA_ARGS__},                                             \
               ARRAY_COUNT(((const struct piece[]){__VA_ARGS__})), err)

/* A row of each input. */
static void check_row(const struct data_case *c, int row, const int32_t source[S], int32_t length,
                      const int32_t given[T], const int32_t target[T])
{
    const struct batch *b = &c->batch;
    assert_memory_equal((int32_t *)batch_input(b, "source") + row * S, source, S * 4);
    assert_int_equal(((int32_t *)batch_input(b, "source_length"))[row], length);
    assert_memory_equal((int32_t *)batch_input(b, "target_given") + row * T, given, T * 4);
    assert_memory_equal((int32_t *)batch_input(b, "target") + row * T, target, T * 4);
}

/* Ids by frequency: "a" 3, "b" 4, "c" 5; "x" 3, "y" 4, "z" 5. */
TEST(a_pair_is_a_sentence_and_its_translation)
{
    static const char de[] = "A b\na c\nb a b a a\n", en[] = "x y\nx z\nx\n";
    struct data_case c;
    struct error err;
    assert_int_equal(OPEN(&c, &err, {"train.de", de}, {"train.en", en}, {"valid.de", "c q a\n"},
                          {"valid.en", "z q\n"}),
                     STATUS_OK);
    assert_int_equal(c.set.count[DATA_LEARNT], 2);
    assert_int_equal(c.set.count[DATA_HELD_OUT], 1);
    assert_int_equal(c.set.dropped, 1); /* five words, and there is room for four */
    assert_int_equal(c.set.words, 4 + 4 + 3 + 2);
    assert_int_equal(c.set.unknown, 2);    /* q */
    assert_true(c.set.padding == 8. / 18); /* two words, two words and an end, of S + T */
    assert_int_equal(data_case_read(&c, true, 0, &err), STATUS_OK);
    for (int row = 0; row < N; row++)
        check_row(&c, row, (const int32_t[]){5, 0, 3, END}, 3,
                  (const int32_t[]){START, 5, 0, END, END},
                  (const int32_t[]){5, 0, END, SENTENCES_NOTHING, SENTENCES_NOTHING});
    assert_int_equal(data_case_read(&c, false, 0, &err), STATUS_OK);
    const int32_t *source = batch_input(&c.batch, "source"),
                  *target = batch_input(&c.batch, "target");
    for (int row = 0; row < N; row++) { /* two epochs, each with both */
        assert_int_equal(source[row * S], 3);
        assert_int_equal(source[row * S + 1], target[row * T + 1]); /* b y, c z */
        assert_int_equal(target[row * T], 3);
    }
    assert_int_not_equal(source[1], source[S + 1]);
    data_case_close(&c);
}

#define MARK "\xef\xbb\xbf"

TEST(the_mark_of_byte_order_is_no_part_of_a_word)
{
    struct data_case c;
    struct error err;
    assert_int_equal(OPEN(&c, &err, {"train.de", MARK "a b\nb\n"}, {"train.en", MARK "x\ny\n"},
                          {"valid.de", MARK "a\n"}, {"valid.en", MARK "x\n"},
                          {"vocab.de", MARK "<unk>\n<s>\n</s>\na\nb\n"},
                          {"vocab.en", MARK "<unk>\n<s>\n</s>\nx\ny\n"}),
                     STATUS_OK);
    assert_int_equal(c.set.words, 7);
    assert_int_equal(c.set.unknown, 0);
    data_case_close(&c);
}

/* Columns after the second are remarks; every tenth pair is held out. */
TEST(a_file_may_have_both)
{
    char text[2000];
    size_t used = 0;
    struct data_case c;
    struct error err;
    for (int k = 0; k < 60; k++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "Go!\tVa %d !\tby me\n", k % 3);
    snprintf(text + used, sizeof(text) - used, "\tnothing\n");
    assert_int_equal(OPEN(&c, &err, {"train.tsv", text}), STATUS_OK);
    assert_int_equal(c.set.count[DATA_LEARNT] + c.set.count[DATA_HELD_OUT], 60);
    assert_true(c.set.count[DATA_HELD_OUT] > 0 && c.set.count[DATA_HELD_OUT] < 20);
    assert_int_equal(c.set.dropped, 1);
    assert_int_equal(data_case_read(&c, false, 0, &err), STATUS_OK);
    const int32_t *length = batch_input(&c.batch, "source_length");
    assert_int_equal(length[0], 2); /* "go" and "!" */
    data_case_close(&c);
}

/* As TensorFlow's tutorial has them: ids are lines, words stand between blanks. */
TEST(vocabularies_may_be_given)
{
    static const char de[] = "<unk>\n<s>\n</s>\nHaus@@\nhalt\n",
                      en[] = "<unk>\n<s>\n</s>\nhome\n.\n";
    struct data_case c;
    struct error err;
    assert_int_equal(OPEN(&c, &err, {"vocab.de", de}, {"vocab.en", en},
                          {"train.de", "Haus@@ halt Halt\n"}, {"train.en", "Home home.\n"},
                          {"dev.de", "halt\n"}, {"dev.en", "home .\n"}),
                     STATUS_OK);
    assert_int_equal(c.set.unknown, 2); /* Halt; "home.", of which no capital counts */
    assert_int_equal(data_case_read(&c, false, 0, &err), STATUS_OK);
    check_row(&c, 0, (const int32_t[]){3, 4, 0, END}, 3, (const int32_t[]){START, 3, 0, END, END},
              (const int32_t[]){3, 0, END, SENTENCES_NOTHING, SENTENCES_NOTHING});
    assert_int_equal(data_case_read(&c, true, 0, &err), STATUS_OK);
    check_row(&c, 1, (const int32_t[]){4, END, END, END}, 1,
              (const int32_t[]){START, 3, 4, END, END},
              (const int32_t[]){3, 4, END, SENTENCES_NOTHING, SENTENCES_NOTHING});
    data_case_close(&c);
}

static void refuses(const char *message, const struct piece *files, int count)
{
    struct data_case c;
    struct error err;
    assert_int_equal(open_files(&c, files, count, &err), STATUS_FAILED);
    if (!strstr(err.message, message))
        fail_msg("\"%s\" is not in \"%s\"", message, err.message);
    data_case_close(&c);
}
#define REFUSES(message, ...)                                                                      \
    refuses(message, (const struct piece[]){__VA_ARGS__},                                          \
            ARRAY_COUNT(((const struct piece[]){__VA_ARGS__})))

TEST(broken_pairs_are_refused)
{
    REFUSES("train.en: ends after line 1, and train.de goes on", {"train.de", "a\nb\n"},
            {"train.en", "x\n"});
    REFUSES("train.tsv:2: \"b x\" has no tab", {"train.tsv", "a\tx\nb x\n"});
    REFUSES("train.en is missing", {"train.de", "a\n"});
    REFUSES("valid.en is missing", {"train.de", "a\n"}, {"train.en", "x\n"}, {"valid.de", "a\n"});
    REFUSES("train.de: none of 1 pairs has room", {"train.de", "a b c d e\n"}, {"train.en", "x\n"});
    REFUSES("no samples to be held out", {"train.de", "a\n"}, {"train.en", "x\n"});
    REFUSES("vocab.de:2: the first three lines must be <unk>, <s> and </s>", {"train.de", "a\n"},
            {"train.en", "x\n"}, {"vocab.de", "<unk>\na\n<s>\n"});
    REFUSES("vocab.en: 9 words, and the network has room for 8: vocabulary=9", {"train.de", "a\n"},
            {"train.en", "x\n"}, {"vocab.en", "<unk>\n<s>\n</s>\na\nb\nc\nd\ne\nf\n"});
}

/* ---- which files are meant ---- */

enum { TEXT = 400 };
#define text_of(...) print_text((char[TEXT]){""}, __VA_ARGS__)

__attribute__((format(printf, 2, 3))) static const char *print_text(char text[TEXT],
                                                                    const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(text, TEXT, format, args);
    va_end(args);
    return text;
}

static void find(const char *text, const char *folder, struct data_place *place)
{
    MUST(data_find, text, place);
    assert_string_equal(place->format->name, "pairs");
    assert_string_equal(place->folder, folder);
}

static void find_no(const char *text, const char *message)
{
    struct data_place place;
    FAILS(STATUS_FAILED, message, data_find, text, &place);
}

TEST(files_are_named_alone_or_in_pairs)
{
    char folder[] = "/tmp/ridge-pairs-XXXXXX";
    struct data_place place;
    struct data_case c;
    struct error err;
    assert_non_null(mkdtemp(folder));
    put_file(folder, "/corpus.vi", "a b\nc\n");
    put_file(folder, "/corpus.en", "x y\nz\n");
    put_file(folder, "/test.vi", "a\n");
    put_file(folder, "/test.en", "x\n");
    put_file(folder, "/all.tsv", "a\tx\n");
    find(text_of("%s/corpus.vi,corpus.en", folder), folder, &place);
    assert_string_equal(place.file[0], "corpus.vi");
    assert_string_equal(place.file[1], "corpus.en");
    find(text_of("%s/corpus.vi,%s/corpus.en", folder, folder), folder, &place);
    find(text_of("pairs:%s/corpus.vi,corpus.en", folder), folder, &place);
    find(text_of("%s/all.tsv", folder), folder, &place);
    assert_string_equal(place.file[0], "all.tsv");
    char other[] = "/tmp/ridge-pairs-XXXXXX";
    assert_non_null(mkdtemp(other));
    put_file(other, "/corpus.en", "x y\nz\n");
    find_no(text_of("%s/corpus.vi,%s/corpus.en", folder, other),
            "both files must lie in one folder");
    find_no(text_of("cora:%s/corpus.vi,corpus.en", folder),
            "data of format cora are not pairs of files");
    find_no(text_of("%s", folder), "of no format that is known");

    assert_int_equal(data_case_open(&c, text_of("%s/corpus.vi,corpus.en", folder), NULL, 0,
                                    data_case_graph(spec, N), &err),
                     STATUS_OK);
    assert_int_equal(c.set.count[DATA_LEARNT], 2);
    assert_int_equal(c.set.count[DATA_HELD_OUT], 1);
    data_case_close(&c);
    assert_int_equal(system(text_of("rm -r %s %s", folder, other)), 0);
}
