/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "base/registry.h"
#include "base/text/options.h"
#include "tests/lib/unit.h"

struct values {
    bool fast;
    int64_t batch;
    double seconds, rate;
    struct option_amount budget;
    const char *file;
    struct option_list items;
};

static const struct option table[] = {
    {"fast", 'f', OPTION_FLAG, offsetof(struct values, fast), NULL, "be quick"},
    {"batch", 'b', OPTION_INT, offsetof(struct values, batch), "N", "rows"},
    {"seconds", 0, OPTION_FLOAT, offsetof(struct values, seconds), "X", "time"},
    {"budget", 0, OPTION_AMOUNT, offsetof(struct values, budget), "S", "0 and nothing differ"},
    {"rate", 0, OPTION_POSITIVE, offsetof(struct values, rate), "X", "a number above 0"},
    {"file", 0, OPTION_TEXT, offsetof(struct values, file), "FILE", "where"},
    {"item", 'i', OPTION_LIST, offsetof(struct values, items), "NAME", "what"},
    {.name = NULL},
};

enum { WORDS_MAX = 80 };

/* Parses words separated by blanks; they stay in *argv. */
static enum status parse(const char *text, struct values *values, int *argc, char **argv,
                         struct error *err)
{
    static char buffer[1024];
    char *rest = NULL;
    assert_true(strlen(text) < sizeof(buffer));
    memcpy(buffer, text, strlen(text) + 1);
    *argc = 0;
    for (char *w = strtok_r(buffer, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
        argv[(*argc)++] = w;
    memset(values, 0, sizeof(*values));
    return options_parse(table, argc, argv, values, err);
}

TEST(every_kind_is_stored)
{
    struct values v;
    char *argv[WORDS_MAX];
    int argc;
    MUST(parse, "one --batch=-3 -f two --seconds 1.5e-3 --file=a=b -i x --item y", &v, &argc, argv);
    assert_int_equal(argc, 2);
    assert_string_equal(argv[0], "one");
    assert_string_equal(argv[1], "two");
    assert_true(v.fast);
    assert_int_equal(v.batch, -3);
    assert_true(v.seconds == 1.5e-3);
    assert_string_equal(v.file, "a=b");
    assert_int_equal(v.items.count, 2);
    assert_string_equal(v.items.items[1], "y");
}

TEST(zero_is_no_positive_number)
{
    struct values v;
    struct error err;
    char *argv[WORDS_MAX];
    int argc;
    MUST(parse, "", &v, &argc, argv);
    assert_false(v.budget.given);
    MUST(parse, "--budget 0", &v, &argc, argv);
    assert_true(v.budget.given && v.budget.value == 0);
    assert_int_equal(parse("--budget=-1", &v, &argc, argv, &err), STATUS_FAILED);
    assert_string_equal(err.message, "--budget needs a number that is not below 0, got \"-1\"");
    MUST(parse, "--rate 1e-300", &v, &argc, argv);
    assert_true(v.rate == 1e-300);
    assert_int_equal(parse("--rate 0", &v, &argc, argv, &err), STATUS_FAILED);
    assert_string_equal(err.message, "--rate needs a number above 0, got \"0\"");
    assert_int_equal(parse("--rate=-1", &v, &argc, argv, &err), STATUS_FAILED);
}

TEST(dashes_that_are_no_options)
{
    struct values v;
    char *argv[WORDS_MAX];
    int argc;
    assert_int_equal(parse("-1 - -.5 -- --batch -f", &v, &argc, argv, NULL), STATUS_OK);
    assert_int_equal(argc, 5);
    assert_string_equal(argv[3], "--batch");
    assert_false(v.fast);
}

TEST(a_value_may_begin_with_a_dash)
{
    struct values v;
    char *argv[WORDS_MAX];
    int argc;
    assert_int_equal(parse("--file -f", &v, &argc, argv, NULL), STATUS_OK);
    assert_string_equal(v.file, "-f");
    assert_false(v.fast);
}

TEST(mistakes_are_named)
{
    static const char *const rows[][2] = {
        {"--bacth 3", "did you mean --batch?"},
        {"--zzzzzzzz", "-h lists all"},
        {"-z", "unknown option -z"},
        {"-fb", "unknown option -fb"},
        {"--batch", "needs a value"},
        {"--batch 3x", "\"3x\""},
        {"--batch 99999999999999999999", "needs an integer"},
        {"--batch=", "needs an integer"},
        {"--seconds nan", "needs a number"},
        {"--seconds 1e999", "needs a number"},
        {"--fast=1", "takes no value"},
        {"--batc 3", "unknown option --batc"},
    };
    for (int k = 0; k < ARRAY_COUNT(rows); k++) {
        struct values v;
        struct error err = {.message = ""};
        char *argv[WORDS_MAX];
        int argc;
        assert_int_equal(parse(rows[k][0], &v, &argc, argv, &err), STATUS_FAILED);
        if (!strstr(err.message, rows[k][1]))
            fail_msg("%s: \"%s\" lacks \"%s\"", rows[k][0], err.message, rows[k][1]);
    }
}

TEST(lists_have_an_end)
{
    struct values v;
    struct error err;
    char text[8 * OPTION_LIST_MAX] = "", *argv[WORDS_MAX];
    int argc;
    for (int k = 0; k < OPTION_LIST_MAX; k++)
        strncat(text, "-i x ", sizeof(text) - strlen(text) - 1);
    MUST(parse, text, &v, &argc, argv);
    assert_int_equal(v.items.count, OPTION_LIST_MAX);
    strncat(text, "-i x ", sizeof(text) - strlen(text) - 1);
    assert_int_equal(parse(text, &v, &argc, argv, &err), STATUS_FAILED);
}

TEST(usage_shows_every_option)
{
    char text[1024], small[20];
    options_usage(table, text, sizeof(text));
    assert_non_null(strstr(text, "-b, --batch N"));
    assert_non_null(strstr(text, "may be given again"));
    options_usage(table, small, sizeof(small)); /* cut off, but ended */
    assert_int_equal(strlen(small), sizeof(small) - 1);
}

TEST(the_nearest_word_is_found)
{
    static const char *const words[] = {"resnet50", "bert_large", "bert_base", "ncf", "run"};
    static const char *const rows[][2] = {
        {"resnt50", "resnet50"}, {"resent50", "resnet50"}, {"bert_larg", "bert_large"},
        {"nfc", "ncf"},          {"rum", "run"},           {"bert", "bert_large"},
    };
    for (int k = 0; k < ARRAY_COUNT(rows); k++)
        assert_string_equal(nearest_word(rows[k][0], words, ARRAY_COUNT(words)), rows[k][1]);
    assert_null(nearest_word("transformer", words, ARRAY_COUNT(words)));
    assert_null(nearest_word("x", words, ARRAY_COUNT(words)));
    assert_null(nearest_word("", words, ARRAY_COUNT(words)));
    assert_null(nearest_word("run", words, 0));
}
