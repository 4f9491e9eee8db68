/* SPDX-License-Identifier: Apache-2.0
 *
 * The same parameters are the same text, whatever was typed. */
#include "harness/suite/point_params.h"
#include "tests/lib/unit.h"

static void has(const char *spec, const char *params)
{
    struct arena arena = {.head = NULL};
    assert_string_equal(point_params(&arena, spec), params);
    arena_release(&arena);
}

TEST(order_and_defaults_do_not_count)
{
    has("ncf", "");
    has("ncf:items=30,users=40", "items=30,users=40");
    has("ncf:users=40,items=30", "items=30,users=40");
    has("ncf:embedding=onehot", "");
    has("ncf:users=40,embedding=onehot,items=30", "items=30,users=40");
    has("ncf:embedding=gather", "embedding=gather");
}

TEST(only_the_default_of_the_same_parameter_is_left_out)
{
    has("ncf:users=3706", "users=3706"); /* the default of items */
    has("model.onnx", "");
}

TEST(lists_of_words_are_sorted_and_name_each_once)
{
    struct arena arena = {.head = NULL};
    assert_string_equal(point_words(&arena, "onednn, native,onednn"), "native,onednn");
    assert_string_equal(point_words(&arena, ""), "");
    arena_release(&arena);
}
