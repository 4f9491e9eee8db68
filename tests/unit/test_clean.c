/* SPDX-License-Identifier: Apache-2.0
 *
 * Names from files that would command a terminal, forge lines or break a reader's decoder. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/error.h"
#include "base/text/json.h"
#include "base/text/table.h"
#include "results/format.h"
#include "tests/lib/unit.h"

#define NO "\xef\xbf\xbd"

static const struct {
    const char *from, *to;
} cases[] = {
    {"", ""},
    {"conv_1/weights:0", "conv_1/weights:0"},
    {"gr\xc3\xb6\xc3\x9f"
     "e \xe6\xa8\xa1 \xf0\x9f\x98\x80",
     "gr\xc3\xb6\xc3\x9f"
     "e \xe6\xa8\xa1 \xf0\x9f\x98\x80"},
    {"\x1b[31mred\x1b]0;title\x07", NO "[31mred" NO "]0;title" NO},
    {"two\nlines\r\tand\x7f", "two" NO "lines" NO NO "and" NO},
    {"c1 \xc2\x9b"
     "31m",
     "c1 " NO "31m"},
    {"\xe2\x80\xae"
     "gpj.exe\xe2\x81\xa6",
     NO "gpj.exe" NO},
    {"no \xef\xbf\xbe\xef\xbf\xbf but \xef\xbf\xbc", "no " NO NO " but \xef\xbf\xbc"},
    {"cut \xe6\xa8", "cut " NO NO},
    {"\xff\xfe \xc0\x80 \xed\xa0\x80", NO NO " " NO NO " " NO NO NO},
};

TEST(hostile_text_is_made_printable)
{
    for (int k = 0; k < ARRAY_COUNT(cases); k++) {
        char to[128], *put = NULL;
        size_t size;
        assert_string_equal(clean_copy(to, sizeof(to), cases[k].from), cases[k].to);
        FILE *stream = open_memstream(&put, &size);
        clean_put(stream, cases[k].from);
        fclose(stream);
        assert_string_equal(put, cases[k].to);
        free(put);
    }
}

TEST(text_is_cut_between_characters)
{
    char to[6];
    assert_string_equal(clean_copy(to, sizeof(to), "ab\xe6\xa8\xa1 more"), "ab\xe6\xa8\xa1");
    assert_string_equal(clean_copy(to, sizeof(to), "abc\xe6\xa8\xa1"), "abc");
    char lines[] = "a\tb\nc\x1b[1m\xe2\x80\xae\xff";
    clean_lines(lines);
    assert_string_equal(lines, "a\tb\nc?[1m" NO "?");
}

TEST(what_a_buffer_cut_goes_whole)
{
    char whole[] = "ab\xe6\xa8\xa1", cut[] = "ab\xe6\xa8", begun[] = "\xf0\x9f\x98", none[] = "";
    assert_int_equal(clean_end(whole), 5);
    assert_int_equal(clean_end(cut), 2);
    assert_string_equal(cut, "ab");
    assert_int_equal(clean_end(begun), 0);
    assert_int_equal(clean_end(none), 0);
}

TEST(errors_are_clean)
{
    struct error err;
    FAIL(&err, STATUS_FAILED, "node \"%s\" is unknown", "\x1b[2J\nridge: all is well");
    assert_string_equal(err.message, "node \"" NO "[2J" NO "ridge: all is well\" is unknown");
    error_context(&err, "model \"%s\"", "\x9b");
    assert_null(strpbrk(err.message, "\x1b\x9b\n"));
}

TEST(tables_and_json_are_clean)
{
    char *text = NULL;
    size_t size;
    struct table table = {.column_count = 0};
    struct json json;
    table_column(&table, "name", TABLE_LEFT);
    table_cell(&table, "%s", "\x1b[31mx\n");
    FILE *stream = open_memstream(&text, &size);
    table_print(&table, stream);
    fclose(stream);
    table_release(&table);
    assert_string_equal(text, "name\n" NO "[31mx" NO "\n");
    free(text);
    stream = open_memstream(&text, &size);
    json_begin(&json, stream);
    json_text(&json, NULL, "\x1b\xc2\x9b\xe2\x80\xae\xff");
    fclose(stream);
    assert_string_equal(text, "\"\\u001b\\u009b\\u202e\\ufffd\"");
    free(text);
}

/* A cell of text is never a formula; a negative number stays one. */
TEST(csv_cells_are_no_formulas)
{
    static const struct {
        enum cell_kind kind;
        const char *text, *written;
    } cells[] = {
        {CELL_TEXT, "=HYPERLINK(\"http://x\")", "\"'=HYPERLINK(\"\"http://x\"\")\""},
        {CELL_TEXT, "+1", "\"'+1\""},
        {CELL_TEXT, "-1", "\"'-1\""},
        {CELL_TEXT, "@SUM(A1)", "\"'@SUM(A1)\""},
        {CELL_TEXT, "\t=1", "\"'\t=1\""},
        {CELL_TEXT, "resnet50=1", "resnet50=1"},
        {CELL_REAL, "-1.5", "-1.5"},
    };
    for (int k = 0; k < ARRAY_COUNT(cells); k++) {
        char *text = NULL, expected[128];
        size_t size;
        struct error err = {0};
        struct cell cell = {.kind = cells[k].kind, .text = cells[k].text};
        struct grid_column column = {.name = "a", .unit = ""};
        struct grid grid = {.columns = &column, .column_count = 1, .cells = &cell, .row_count = 1};
        FILE *stream = open_memstream(&text, &size);
        assert_int_equal(format_find("csv")->write(&grid, stream, &err), STATUS_OK);
        fclose(stream);
        snprintf(expected, sizeof(expected), "a\r\n%s\r\n", cells[k].written);
        assert_string_equal(text, expected);
        free(text);
    }
}
