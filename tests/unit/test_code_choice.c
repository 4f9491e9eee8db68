/* SPDX-License-Identifier: Apache-2.0
 *
 * Options that make other code: part of a point's id where they are given, and only there. */
#include <string.h>

#include "engine/graph/kernel.h"
#include "harness/model/model_options.h"
#include "harness/suite/plan.h"
#include "tests/lib/unit.h"

/* The only point of a command line with these options, without the 16 digits and what is common. */
static void canonical_ends(const struct model_options *m, struct plan_overrides o, const char *end)
{
    char word[] = "ncf", *words[] = {word};
    struct plan plan, usual;
    struct plan_overrides none = o;
    o.cpus = none.cpus = 4;
    MUST(model_code_choice, m, &o.code);
    MUST(plan_from_words, words, 1, &o, &plan);
    MUST(plan_from_words, words, 1, &none, &usual);
    size_t common = strlen(usual.points[0].canonical);
    assert_memory_equal(plan.points[0].canonical, usual.points[0].canonical, common);
    assert_string_equal(plan.points[0].canonical + common, end);
    assert_true((*end == 0) == (strcmp(plan.points[0].id, usual.points[0].id) == 0));
    plan_release(&plan);
    plan_release(&usual);
}

TEST(options_that_make_other_code_are_part_of_the_id)
{
    struct plan_overrides cpu = {.batch = NULL};
    struct plan_overrides server = {.scenario = "server", .latency_bound = "0.1"};
    (void)state;
    canonical_ends(&(struct model_options){.no_winograd = true}, cpu, " max_error=1e-05");
    canonical_ends(&(struct model_options){.max_error = 1e-5}, cpu, " max_error=1e-05");
    canonical_ends(&(struct model_options){.no_tune = true}, server, " tuning=none");
    canonical_ends(&(struct model_options){.no_fuse = true, .no_tune = true}, cpu,
                   " tuning=none fusing=none");
    if (isa_detect() != ISA_SCALAR)
        canonical_ends(&(struct model_options){.isa = "scalar"}, cpu, " isa=scalar");
}

/* What changes nothing here leaves all ids as they were. */
TEST(options_without_effect_on_the_code_leave_the_id)
{
    struct plan_overrides cpu = {.batch = NULL}, cuda = {.device = "cuda"};
    (void)state;
    canonical_ends(&(struct model_options){.isa = isa_name(isa_detect())}, cpu, "");
    canonical_ends(&(struct model_options){.retune = true, .no_memory_check = true}, cpu, "");
    canonical_ends(&(struct model_options){.no_capture = true}, cpu, "");
    canonical_ends(&(struct model_options){.no_capture = true}, cuda, " capture=none");
}

/* One word for one question. */
TEST(no_tuning_takes_the_place_of_a_quick_one)
{
    char word[] = "ncf", *words[] = {word};
    struct plan_overrides o = {.tuning = "quick", .cpus = 4, .code = {.no_tune = true}};
    struct plan plan;
    (void)state;
    MUST(plan_from_words, words, 1, &o, &plan);
    assert_null(strstr(plan.points[0].canonical, "tuning=quick"));
    assert_non_null(strstr(plan.points[0].canonical, " tuning=none"));
    plan_release(&plan);
}
