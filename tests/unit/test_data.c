/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/data_case.h"
#include "tests/lib/unit.h"
#include "workloads/data/lines.h"

/* Every epoch is a permutation, and not the one before. */
static void check_epochs(int64_t count)
{
    int64_t *seen = calloc((size_t)count, sizeof(*seen)), same = 0;
    assert_non_null(seen);
    for (int64_t k = 0; k < 3 * count; k++) {
        int64_t record = data_order(7, count, k);
        assert_true(record >= 0 && record < count);
        assert_int_equal(seen[record]++, k / count);
        same += k >= count && record == data_order(7, count, k - count);
    }
    assert_true(count < 20 || same < count / 2);
    free(seen);
}

TEST(an_epoch_has_every_sample_once)
{
    static const int64_t counts[] = {1, 2, 3, 4, 5, 16, 17, 100, 1000, 4097};
    for (int k = 0; k < ARRAY_COUNT(counts); k++)
        check_epochs(counts[k]);
}

TEST(another_seed_is_another_order)
{
    int same = 0;
    for (int64_t k = 0; k < 1000; k++)
        same += data_order(1, 1000, k) == data_order(2, 1000, k);
    assert_true(same < 20);
}

TEST(a_tenth_is_held_out)
{
    struct arena arena = {0};
    struct data_split split;
    int64_t learnt = 0, held_out = 0;
    MUST(data_split, &arena, 10000, &split);
    assert_true(split.count[DATA_HELD_OUT] > 900 && split.count[DATA_HELD_OUT] < 1100);
    for (int64_t k = 0; k < 10000; k++) /* in one part each */
        if (learnt < split.count[DATA_LEARNT] && split.index[DATA_LEARNT][learnt] == k)
            learnt++;
        else
            assert_int_equal(split.index[DATA_HELD_OUT][held_out++], k);
    assert_int_equal(learnt + held_out, 10000);
    arena_release(&arena);
}

TEST(lines_and_fields)
{
    const char *text = " a , b\r\n\n,1e3,-7\nlast::one::";
    struct data_text file = {"x.csv", text, strlen(text)};
    struct lines lines = lines_of(&file);
    struct field line, field;
    double number;
    int64_t whole;
    assert_true(lines_next(&lines, &line));
    assert_true(field_take(&line, ",", &field) && field_is(&field, "a"));
    assert_true(field_take(&line, ",", &field) && field_is(&field, "b"));
    assert_false(field_take(&line, ",", &field));
    assert_true(lines_next(&lines, &line) && line.length == 0);
    assert_true(lines_next(&lines, &line) && lines.number == 3 && !lines.unended);
    assert_true(field_take(&line, ",", &field) && field.length == 0);
    assert_false(field_int(&field, &whole));
    assert_true(field_take(&line, ",", &field) && field_number(&field, &number) && number == 1000);
    assert_false(field_int(&field, &whole));
    assert_true(field_take(&line, ",", &field) && field_int(&field, &whole) && whole == -7);
    assert_true(lines_next(&lines, &line) && lines.unended);
    assert_true(field_take(&line, "::", &field) && field_is(&field, "last"));
    assert_true(field_take(&line, "::", &field) && field_is(&field, "one"));
    assert_true(field_take(&line, "::", &field) && field.length == 0);
    assert_false(field_take(&line, "::", &field));
    assert_false(lines_next(&lines, &line));
}

static void refuses(const char *name, const char *says)
{
    struct data_place place;
    FAILS(STATUS_FAILED, says, data_find, name, &place);
}

TEST(what_is_not_there_is_refused)
{
    refuses("/nowhere/at/all", "no such file");
    refuses("mnits:/", "did you mean \"mnist\"");
    refuses("/proc", "no format that is known");
}

TEST(a_graph_without_the_inputs_is_refused)
{
    static const struct data_text texts[] = {{"adult.data", "", 0}};
    struct data_case c;
    struct error err;
    FAILS(STATUS_UNSUPPORTED, "has no input \"age\"", data_case_open, &c, "census", texts, 1,
          data_case_images(2, 4, 2));
    data_case_close(&c);
    assert_int_equal(data_case_open(&c, "cora", texts, 1, data_case_images(2, 4, 2), &err),
                     STATUS_UNSUPPORTED);
    data_case_close(&c);
}
