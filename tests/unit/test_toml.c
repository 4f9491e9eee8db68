/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "base/text/toml.h"
#include "tests/lib/unit.h"

static enum status parse(const char *text, struct arena *arena, const struct toml_value **root,
                         struct error *err)
{
    return toml_parse("x.toml", text, strlen(text), arena, root, err);
}

TEST(every_kind_is_read)
{
    struct arena arena = {0};
    const struct toml_value *root;
    assert_int_equal(parse("text = \"a\\u00e4\"\nint = -3\nreal = 1.5e3\nyes = true\n"
                           "day = 2024-01-02\nlist = [1, \"two\", [3]]\ninline = { a = 1 }\n",
                           &arena, &root, NULL),
                     STATUS_OK);
    assert_int_equal(root->kind, TOML_TABLE);
    assert_int_equal(root->count, 7);
    assert_null(root->key);
    assert_string_equal(toml_find(root, "text")->text, "a\xc3\xa4");
    assert_int_equal(toml_find(root, "int")->integer, -3);
    assert_true(toml_find(root, "int")->number == -3);
    assert_int_equal(toml_find(root, "real")->kind, TOML_FLOAT);
    assert_true(toml_find(root, "real")->number == 1500);
    assert_true(toml_find(root, "yes")->truth);
    assert_int_equal(toml_find(root, "day")->kind, TOML_OTHER);
    const struct toml_value *list = toml_find(root, "list");
    assert_int_equal(list->count, 3);
    assert_string_equal(list->first->next->text, "two");
    assert_null(list->first->key);
    assert_int_equal(list->first->next->next->first->integer, 3);
    assert_int_equal(toml_find(toml_find(root, "inline"), "a")->integer, 1);
    assert_null(toml_find(root, "absent"));
    assert_null(toml_find(NULL, "text"));
    arena_release(&arena);
}

TEST(order_and_places_are_those_of_the_file)
{
    static const char text[] = "zeta = 1\nalpha =\\\n  2\n";
    static const char good[] = "zeta = 1\nalpha = 2\n\n[[w]]\nb = 1\na = [\n 1,\n 2]\n"
                               "[[w]]\n c.d = 1\n";
    struct arena arena = {0};
    const struct toml_value *root;
    struct error err;
    assert_int_equal(parse(text, &arena, &root, &err), STATUS_FAILED);
    assert_int_equal(parse(good, &arena, &root, NULL), STATUS_OK);
    assert_string_equal(root->first->key, "zeta");
    assert_string_equal(root->first->next->key, "alpha");
    assert_int_equal(root->first->next->line, 2);
    assert_int_equal(root->first->next->column, 1);
    assert_string_equal(root->first->next->file, "x.toml");
    const struct toml_value *w = toml_find(root, "w");
    assert_int_equal(w->kind, TOML_ARRAY);
    assert_int_equal(w->count, 2);
    assert_int_equal(w->first->line, 4);
    assert_string_equal(w->first->first->key, "b");
    const struct toml_value *a = toml_find(w->first, "a");
    assert_int_equal(a->line, 6);
    assert_int_equal(a->first->next->line, 8);
    assert_int_equal(w->first->next->line, 9);
    assert_int_equal(toml_find(toml_find(w->first->next, "c"), "d")->line, 10);
    assert_int_equal(toml_find(toml_find(w->first->next, "c"), "d")->integer, 1);
    arena_release(&arena);
}

TEST(mistakes_name_line_and_column)
{
    static const char *const rows[][2] = {
        {"a = 1\nb = \n", "x.toml:2:"},
        {"a = 1\na = 2\n", "x.toml:2:"},
        {"[t\n", "x.toml:1:"},
        {"a = \"open", "x.toml:1:"},
        {"a = 99999999999999999999", "x.toml:1:"},
        {"a = \"\xff\"", "x.toml:1:"},
        {"a = \"x\\u0000y\"", "U+0000"},
        {"\xef\xbb\xbb'", "x.toml:1:"}, /* U+FEFB: toml++ took it for unreachable */
        {"[[[a]]]", "x.toml:"},
    };
    for (int k = 0; k < ARRAY_COUNT(rows); k++) {
        struct arena arena = {0};
        const struct toml_value *root;
        struct error err = {.message = ""};
        assert_int_equal(parse(rows[k][0], &arena, &root, &err), STATUS_FAILED);
        if (!strstr(err.message, rows[k][1]))
            fail_msg("%s: \"%s\" lacks \"%s\"", rows[k][0], err.message, rows[k][1]);
        assert_null(root);
        arena_release(&arena);
    }
}

/* `count` times `piece`, then `end`. */
static enum status parse_many(const char *piece, int count, const char *end, struct error *err)
{
    size_t length = strlen(piece);
    char *text = malloc(length * (size_t)count + strlen(end) + 1);
    struct arena arena = {0};
    const struct toml_value *root;
    assert_non_null(text);
    for (int k = 0; k < count; k++)
        memcpy(text + length * (size_t)k, piece, length);
    snprintf(text + length * (size_t)count, strlen(end) + 1, "%s", end);
    enum status status = parse(text, &arena, &root, err);
    arena_release(&arena);
    free(text);
    return status;
}

TEST(depth_and_size_are_limited)
{
    struct error err;
    MUST(parse_many, "a.", 20, "b = 1");
    FAILS(STATUS_FAILED, "32", parse_many, "a.", 60, "b = 1");
    FAILS(STATUS_FAILED, "dots", parse_many, "a.", 400000, "b = 1");
    assert_int_equal(parse_many("[", 100000, "", &err), STATUS_FAILED);
    FAILS(STATUS_FAILED, "1 MiB", parse_many, "# much\n", 200000, "");
    MUST(parse_many, "# much\n", 100000, "a = 1");
}

TEST(nothing_is_an_empty_table)
{
    struct arena arena = {0};
    const struct toml_value *root;
    assert_int_equal(toml_parse("x", NULL, 0, &arena, &root, NULL), STATUS_OK);
    assert_int_equal(root->count, 0);
    assert_string_equal(toml_kind_name(root->kind), "table");
    arena_release(&arena);
}
