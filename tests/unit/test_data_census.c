/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/lib/data_case.h"
#include "tests/lib/unit.h"

#define FIRST                                                                                      \
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, "     \
    "Male, 2174, 0, 40, United-States, <=50K\n"
#define SECOND "52,?,209642,12th,9,Widowed,?,Other-relative,White,Male,0,0,45,?,>50K\n"
#define TITLE  "|1x3 Cross validator\n"

static enum status open_text(struct data_case *c, const char *learnt, const char *held_out,
                             struct error *err)
{
    const struct data_text texts[] = {{"adult.data", learnt, strlen(learnt)},
                                      {"adult.test", held_out, strlen(held_out)}};
    return data_case_open(c, "census", texts, 2, data_case_graph("wide_deep", 2), err);
}

static int32_t id(const struct data_case *c, const char *name, int row)
{
    return ((const int32_t *)batch_input(&c->batch, name))[row];
}

static float number(const struct data_case *c, const char *name, int row)
{
    return ((const float *)batch_input(&c->batch, name))[row];
}

TEST(reads_numbers_words_and_hashes)
{
    struct data_case c;
    MUST(open_text, &c, FIRST FIRST SECOND "\n", TITLE FIRST SECOND);
    assert_int_equal(c.set.count[DATA_LEARNT], 3);
    assert_int_equal(c.set.count[DATA_HELD_OUT], 2);
    MUST(data_case_read, &c, true, 0);
    assert_true(number(&c, "age", 0) == 39 && number(&c, "age", 1) == 52);
    assert_true(number(&c, "capital_gain", 0) == 2174 && number(&c, "hours_per_week", 1) == 45);
    assert_true(number(&c, "rich", 0) == 0 && number(&c, "rich", 1) == 1);
    assert_int_equal(id(&c, "education", 0), 0);
    assert_int_equal(id(&c, "education", 1), 15);
    assert_int_equal(id(&c, "workclass", 0), 2);
    assert_int_equal(id(&c, "workclass", 1), 5);
    assert_int_equal(id(&c, "marital_status", 1), 6);
    assert_int_equal(id(&c, "relationship", 1), 5);
    assert_true(id(&c, "occupation", 0) != id(&c, "occupation", 1));
    assert_true(id(&c, "age_x_education_x_occupation", 0) < 1000);
    data_case_close(&c);
}

TEST(broken_lines_are_named)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {FIRST "39, State-gov, 77516, Bach", "adult.data:2: 4 columns; a line has 15, from age to "
                                             "income. Is the file cut off?"},
        {"x" FIRST, "adult.data:1: age is \"x39\"; it must be a number"},
        {FIRST "1,Private,1,PhD,1,Widowed,a,Wife,b,c,0,0,1,d,<=50K\n",
         "adult.data:2: education is \"PhD\"; that is none of its words"},
        {"1,Private,1,12th,1,Widowed,a,Wife,b,c,0,0,1,d,50K\n", "the income is \"50K\""},
        {"1,Private,1,12th,1,Widowed,a,Wife,b,c,0,0,1,d,<=50K,e\n", "more than 15 columns"},
        {"", "no samples to learn from"},
    };
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct data_case c;
        struct error err;
        assert_int_equal(open_text(&c, cases[k].text, TITLE FIRST, &err), STATUS_FAILED);
        if (!strstr(err.message, cases[k].says))
            fail_msg("%s", err.message);
        data_case_close(&c);
    }
}
