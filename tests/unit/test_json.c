/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/json.h"
#include "tests/lib/unit.h"

/* A stream in memory and the writer on it. */
struct page {
    char *text;
    size_t size;
    struct json json;
};

static int page_open(void **state)
{
    struct page *page = calloc(1, sizeof(*page));
    if (!page)
        return -1;
    json_begin(&page->json, open_memstream(&page->text, &page->size));
    *state = page;
    return page->json.stream ? 0 : -1;
}

static int page_close(void **state)
{
    struct page *page = *state;
    fclose(page->json.stream);
    free(page->text);
    free(page);
    return 0;
}

static const char *text_of(struct page *page)
{
    fflush(page->json.stream);
    return page->text;
}

TEST(nesting_gets_commas_and_lines)
{
    struct page *page = *state;
    struct json *j = &page->json;
    const int64_t shape[] = {2, -3};
    json_open(j, NULL, '{');
    json_int(j, "a", INT64_MIN);
    json_ints(j, "shape", shape, 2);
    json_open(j, "list", '[');
    json_bool(j, NULL, true);
    json_null(j, NULL);
    json_close(j);
    json_open(j, "empty", '{');
    json_close(j);
    json_close(j);
    assert_string_equal(text_of(page), "{\n  \"a\": -9223372036854775808,\n  \"shape\": [2, -3],\n"
                                       "  \"list\": [\n    true,\n    null\n  ],\n"
                                       "  \"empty\": {}\n}\n");
}

TEST(compact_stays_on_one_line)
{
    struct page *page = *state;
    struct json *j = &page->json;
    j->compact = true;
    json_open(j, NULL, '[');
    json_int(j, NULL, 1);
    json_text(j, NULL, NULL);
    json_close(j);
    assert_string_equal(text_of(page), "[1, null]\n");
}

TEST(text_is_escaped)
{
    struct page *page = *state;
    json_text(&page->json, "k\"", "a\\b\"c\n\t\x01\x7f \xc3\xa9");
    assert_string_equal(text_of(page), "\"k\\\"\": \"a\\\\b\\\"c\\n\\t\\u0001\\u007f \xc3\xa9\"");
}

TEST(broken_utf8_is_replaced)
{
    struct page *page = *state;
    /* a lone continuation, a cut-off sequence, an overlong slash, a surrogate, 0x110000 */
    json_text(&page->json, NULL, "\x80|\xc3|\xc0\xaf|\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82");
    const char *text = text_of(page);
    for (const char *s = text; *s; s++)
        assert_true((unsigned char)*s < 0x80);
    assert_int_equal(strncmp(text, "\"\\ufffd|\\ufffd|\\ufffd\\ufffd|", 27), 0);
}

TEST(numbers_come_back)
{
    struct page *page = *state;
    const double rows[] = {0, -0.0, 1, 0.1, 1e300, 5e-324, 1.0 / 3, 123456789.123, 1e15, -2.5};
    for (int k = 0; k < ARRAY_COUNT(rows); k++) {
        size_t before = strlen(text_of(page));
        json_number(&page->json, NULL, rows[k]);
        double back = strtod(text_of(page) + before, NULL);
        assert_memory_equal(&back, &rows[k], sizeof(back));
    }
}

TEST(what_is_no_number_is_null)
{
    struct page *page = *state;
    json_number(&page->json, NULL, NAN);
    json_number(&page->json, NULL, -INFINITY);
    assert_string_equal(text_of(page), "nullnull");
}

TEST(short_numbers_stay_short)
{
    struct page *page = *state;
    json_number(&page->json, NULL, 0.1);
    assert_string_equal(text_of(page), "0.1");
}

const struct unit_fixture unit_fixture = {.before_each = page_open, .after_each = page_close};
