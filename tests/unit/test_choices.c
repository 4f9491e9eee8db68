/* SPDX-License-Identifier: Apache-2.0
 * Networks of experts: near ties that are decided otherwise are no error, and a choice that is none
 * of the largest is one. */

#include <string.h>

#include "engine/compile/compile.h"
#include "engine/reference/reference.h"
#include "harness/model/choices.h"
#include "harness/model/decisions.h"
#include "harness/model/verify.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "workloads/lib/layers.h"

enum { TOKENS = 200, WIDTH = 48, EXPERTS = 16, CHOSEN = 4 };

/* Each token takes the CHOSEN experts of the largest numbers, or of the smallest. */
static struct graph *experts(const char *router, bool largest)
{
    struct graph *g = graph_new("experts");
    int x = noise_input(g, "x", shape_of(TOKENS, WIDTH)), top[2], sorted[2];
    x = graph_node(g, "MatMul", NULL, INPUTS(x, noise_param(g, "w", shape_of(WIDTH, WIDTH))),
                   NO_ATTRS);
    int by = noise_param(g, router, shape_of(WIDTH, EXPERTS));
    int scores = graph_node(g, "MatMul", "scores", INPUTS(x, by), NO_ATTRS);
    graph_node_many(g, "TopK", "choice", INPUTS(scores, graph_const_i64(g, 1, (int64_t[]){CHOSEN})),
                    ATTRS(attr_int("largest", largest)), 2, top);
    graph_node_many(g, "ExpertSort", NULL, INPUTS(top[1]), ATTRS(attr_int("experts", EXPERTS)), 2,
                    sorted);
    int w = noise_param(g, "all", shape_of(EXPERTS, WIDTH, WIDTH));
    x = graph_node(g, "GroupedMatMul", NULL, INPUTS(x, w, sorted[1], sorted[0]),
                   ATTRS(attr_int("chosen", CHOSEN)));
    graph_output(g, graph_node(g, "ExpertCombine", "y", INPUTS(x, sorted[0], top[0]), NO_ATTRS));
    MUST(graph_check, g);
    return g;
}

static struct exe *compiled(const struct graph *g, enum precision precision)
{
    struct exe *exe;
    struct exe_options options = {.threads = 1,
                                  .isa = isa_detect(),
                                  .no_tune = true,
                                  .only_variant = NONE,
                                  .precision = precision};
    MUST(exe_new, g, &options, &exe);
    return exe;
}

/* On trial a step has rows for many experts, not lists of zeros, which the reference refuses. */
TEST(tuning_finds_a_kernel_for_each_step)
{
    struct graph *g = experts("router", true);
    struct exe *exe;
    struct exe_options options = {.threads = 1, .isa = isa_detect(), .only_variant = NONE};
    MUST(exe_new, g, &options, &exe);
    for (int s = 0; s < exe_step_count(exe); s++)
        assert_string_not_equal(exe_step_at(exe, s).kernel->provider, "reference");
    exe_free(exe);
    graph_free(g);
}

static struct verification verified(const struct graph *graph, const struct graph *as,
                                    enum precision precision)
{
    struct verification v;
    struct exe *exe = compiled(as, precision);
    MUST(verify_exe, graph, exe, &v);
    exe_free(exe);
    return v;
}

/* In bf16 some of 200 tokens are near a tie, and all that follows is compared nevertheless. */
TEST(near_ties_are_followed)
{
    struct graph *g = experts("router", true);
    struct verification v = verified(g, g, PRECISION_BF16);
    assert_non_null(strstr(v.note, " of 200 choices of experts are others than the reference's"));
    assert_string_equal(v.odd, "");
    assert_true(v.error > 1e-4 && v.error <= v.bound);
    v = verified(g, g, PRECISION_F32);
    assert_string_equal(v.note, "");
    assert_true(v.error <= v.bound);
    graph_free(g);
}

TEST(choices_of_experts_are_no_decisions)
{
    struct graph *g = experts("router", true), *before;
    MUST(graph_before_decisions, g, &before);
    assert_null(before);
    graph_free(g);
}

/* Another network that shows the same values by the same names. */
static struct roundings followed(const struct graph *g, const struct graph *other)
{
    struct roundings r = {.bound = 1e-5};
    struct ref_tensor output;
    struct graph *with, *shown;
    MUST(graph_with_roundings, g, &with);
    shown = graph_copy(other);
    assert_non_null(shown);
    for (int k = 1; k < with->output_count; k++)
        graph_output(shown, with->outputs[k]);
    r.with = with;
    r.made = compiled(shown, PRECISION_F32);
    exe_run(r.made);
    MUST(roundings_follow, &r, g, &output);
    ref_release(&output);
    exe_free(r.made);
    graph_free(shown);
    graph_free(with);
    return r;
}

TEST(a_choice_of_the_smallest_is_found)
{
    struct graph *g = experts("router", true), *other = experts("router", false);
    struct roundings r = followed(g, g);
    assert_true(r.choices == TOKENS && r.other_choices == 0 && r.wrong == 0);
    assert_true(r.chosen_by < 1e-5);
    r = followed(g, other);
    assert_int_equal(r.wrong, TOKENS);
    assert_string_equal(r.odd, "line 0 is no choice of the largest");
    struct verification v = verified(g, other, PRECISION_F32);
    assert_true(v.error > v.bound);
    graph_free(other);
    graph_free(g);
}

/* It chooses the largest, but of other numbers. */
TEST(a_choice_by_other_numbers_is_found)
{
    struct graph *g = experts("router", true), *other = experts("another", true);
    struct roundings r = followed(g, other);
    assert_true(r.wrong == 0 && r.other_choices > TOKENS / 2);
    assert_true(r.chosen_by > 0.1);
    graph_free(other);
    graph_free(g);
}
