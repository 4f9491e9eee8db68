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

/* --tiny puts its parameters in front of those that were typed: both stood in the name of a point,
 * or of a default the one that does not count. */
TEST(the_last_of_a_parameter_counts)
{
    has("ncf:users=40,items=30,users=50", "items=30,users=50");
    has("ncf:embedding=gather,users=40,embedding=onehot", "users=40");
}

/* Of a network of which a part runs unless all of it is asked for. */
TEST(what_is_stated_is_there_though_it_is_the_default)
{
    has("mixtral", "depth=1");
    has("mixtral:phase=prefill", "depth=1,phase=prefill");
    has("mixtral:depth=1", "depth=1");
    has("mixtral:depth=3,phase=decode", "depth=3");
    assert_true(point_same_model("mixtral", "mixtral:depth=1"));
    assert_false(point_same_model("mixtral", "mixtral:depth=2"));
}

TEST(the_same_model_in_another_order_is_the_same)
{
    assert_true(point_same_model("ncf:users=40,items=30", "ncf:items=30,users=40"));
    assert_true(point_same_model("ncf", "ncf:embedding=onehot"));
    assert_true(point_same_model("models/a.onnx", "models/a.onnx"));
    assert_false(point_same_model("ncf:users=40", "ncf:items=40"));
    assert_false(point_same_model("ncf", "wide_deep"));
    assert_false(point_same_model("a.onnx", "b.onnx"));
    assert_false(point_same_model("ncf", "a.onnx"));
}

TEST(lists_of_words_are_sorted_and_name_each_once)
{
    struct arena arena = {.head = NULL};
    assert_string_equal(point_words(&arena, "onednn, native,onednn"), "native,onednn");
    assert_string_equal(point_words(&arena, ""), "");
    arena_release(&arena);
}
