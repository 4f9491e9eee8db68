/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "tests/lib/data_case.h"
#include "tests/lib/unit.h"

/* Users 5, 7 and 9, films 10 to 40. User 7 has a single rating, user 5 rated film 10 twice. */
static const char three[] = "userId,movieId,rating,timestamp\n"
                            "7,40,3.5,100\r\n"
                            "5,10,4,300\n"
                            "5,20,1,200\n"
                            "5,10,4,100\n"
                            "9,30,5,1\n"
                            "9,40,5,2\n"
                            "9,20,5,3";

static enum status open_text(struct data_case *c, const char *name, const char *text,
                             const char *spec, struct error *err)
{
    const struct data_text file = {name, text, strlen(text)};
    return data_case_open(c, "movielens", &file, 1, data_case_graph(spec, 100), err);
}

static int64_t rated(int32_t user, int32_t item)
{
    static const bool by[3][4] = {
        {true, true, false, false}, {false, false, false, true}, {false, true, true, true}};
    return by[user][item];
}

TEST(four_films_are_drawn_for_each_that_was_seen)
{
    struct data_case c;
    int seen_count = 0;
    MUST(open_text, &c, "ratings.csv", three, "ncf:users=3,items=4");
    assert_int_equal(c.set.count[DATA_LEARNT], 4 * 5); /* 5: 20. 7: 40. 9: 30, 40 */
    assert_int_equal(c.set.count[DATA_HELD_OUT], 2 * 100);
    MUST(data_case_read, &c, false, 0);
    const int32_t *user = batch_input(&c.batch, "user"), *item = batch_input(&c.batch, "item");
    const float *seen = batch_input(&c.batch, "seen");
    for (int k = 0; k < 100; k++) {
        assert_true(user[k] >= 0 && user[k] < 3 && item[k] >= 0 && item[k] < 4);
        assert_int_equal(seen[k] > 0, rated(user[k], item[k]));
        assert_false(seen[k] > 0 && user[k] == 0 && item[k] == 0); /* held out */
        seen_count += seen[k] > 0;
    }
    assert_int_equal(seen_count, 20); /* five epochs */
    data_case_close(&c);
}

TEST(the_latest_is_held_out_among_99_others)
{
    struct data_case c;
    MUST(open_text, &c, "ratings.csv", three, "ncf:users=3,items=4");
    const int32_t *user = batch_input(&c.batch, "user"), *item = batch_input(&c.batch, "item");
    const float *seen = batch_input(&c.batch, "seen");
    static const int32_t users[] = {0, 2}, latest[] = {0, 1};
    for (int group = 0; group < 2; group++) {
        MUST(data_case_read, &c, true, 100 * group);
        for (int k = 0; k < 100; k++) {
            assert_int_equal(user[k], users[group]);
            assert_true(k == 0 ? item[k] == latest[group] : !rated(user[k], item[k]));
            assert_true(seen[k] == (k == 0));
        }
    }
    data_case_close(&c);
}

TEST(hits_and_gain_are_those_of_the_best_ten)
{
    float answers[300];
    struct data_case c;
    for (int k = 0; k < 300; k++)
        answers[k] = (float)(k % 100);
    answers[0] = 1000;    /* first */
    answers[100] = 98.5f; /* second */
    answers[200] = 90;    /* after 91 to 99, and beside 90: eleventh */
    struct judged judged = {.answers = answers, .answer_count = 300};
    MUST(open_text, &c, "ratings.csv", three, "ncf:users=3,items=4");
    assert_string_equal(c.set.quality->name, "HR@10");
    assert_true(fabs(c.set.quality->of(&judged) - 2.0 / 3) < 1e-12);
    assert_true(fabs(c.set.quality->also->of(&judged) - (1 + 1 / log2(3)) / 3) < 1e-12);
    for (int k = 0; k < 300; k++)
        answers[k] = 1; /* knows nothing */
    assert_true(c.set.quality->of(&judged) == 0);
    data_case_close(&c);
}

TEST(what_is_broken_is_named)
{
    static const struct {
        const char *file, *text, *spec, *says;
    } cases[] = {
        {"ratings.csv", three, "ncf:users=2,items=4", "ncf:users=3,items=4"},
        {"u.data", "1\t2\t3\t4\n1\t2\t3", "ncf",
         "u.data:2: 3 fields; a line has 4: user, film, "
         "rating, time. Is the file cut off?"},
        {"ratings.dat", "1::2::3::4::5\n", "ncf", "ratings.dat:1: more than 4 fields"},
        {"ratings.dat", "1::b::3::4\n", "ncf", "ratings.dat:1: the film is \"b\""},
        {"ratings.dat", "1::2::3::4\n1::3::3::4\n", "ncf", "a user has rated all 2 films"},
        {"u.data", "", "ncf", "u.data: no ratings"},
    };
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        struct data_case c;
        struct error err;
        assert_int_equal(open_text(&c, cases[k].file, cases[k].text, cases[k].spec, &err),
                         STATUS_FAILED);
        if (!strstr(err.message, cases[k].says))
            fail_msg("%s", err.message);
        data_case_close(&c);
    }
}
