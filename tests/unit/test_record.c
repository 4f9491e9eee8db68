/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that the store gets of a measured point, from made facts. */

#include <math.h>
#include <string.h>

#include "base/text/shell.h"
#include "harness/campaign/record.h"
#include "harness/campaign/reproduce.h"
#include "tests/lib/unit.h"

static const struct metric_record *row_of(const struct point *point, double roof_hz, double own_hz,
                                          struct arena *arena, struct record *record)
{
    const struct graph_cost cost = {.flops = 1e9, .batch = 1};
    const struct measurement m = {.timed = 20,
                                  .median_s = 2e-3,
                                  .p99_s = NAN,
                                  .p999_s = NAN,
                                  .steal_share = NAN,
                                  .wait_share = NAN,
                                  .clock_hz = own_hz,
                                  .valid = true};
    const struct point_facts facts = {.point = point,
                                      .started_utc = "",
                                      .cost = &cost,
                                      .measurement = &m,
                                      .peak_flop_rate = 1e12,
                                      .peak_reason = "",
                                      .peak_clock_hz = roof_hz,
                                      .peak_rss_bytes = NAN,
                                      .round_spread = NAN};
    MUST(record_make, &facts, arena, record);
    assert_true(fabs(record_value(record, "fraction_of_peak") - 0.5) < 1e-12);
    return record_metric(record, "roof_clock_hz");
}

TEST(a_roof_of_another_clock_is_noted)
{
    struct plan plan;
    struct plan_overrides none = {0};
    struct arena arena = {0};
    struct record record;
    char word[] = "gemm", *words[] = {word};
    (void)state;
    MUST(plan_from_words, words, 1, &none, &plan);
    const struct metric_record *row = row_of(plan.points, 1.98e9, 1.4e9, &arena, &record);
    assert_non_null(row);
    assert_true(row->value == 1.98e9);
    assert_string_equal(row->formula, RECORD_NOTE "its roof was measured at 1.98 GHz, and its "
                                                  "samples at 1.4 GHz");
    row = row_of(plan.points, 1.98e9, 1.95e9, &arena, &record);
    assert_non_null(row);
    assert_null(strstr(row->formula, RECORD_NOTE));
    assert_null(row_of(plan.points, 0, 1.95e9, &arena, &record));
    assert_null(row_of(plan.points, 1.98e9, NAN, &arena, &record));
    arena_release(&arena);
    plan_release(&plan);
}

/* spec: in the place of ncf. */
static void reproduces(const char *spec, struct plan_overrides o, const char *command)
{
    struct plan plan;
    struct arena arena = {0};
    char word[] = "ncf", *words[] = {word};
    o.cpus = 4;
    MUST(plan_from_words, words, 1, &o, &plan);
    plan.points[0].spec = spec;
    assert_string_equal(reproduce_command(&plan.points[0], &arena), command);
    arena_release(&arena);
    plan_release(&plan);
}

/* What measured a point is in the command that measures it again, for a shell to read. */
TEST(the_command_names_options_that_make_other_code)
{
    const struct plan_overrides o = {.batch = "8",
                                     .threads = "2",
                                     .code = {.isa = "scalar", .max_error = 1e-5, .no_tune = true}};
    (void)state;
    reproduces("ncf", o,
               "ridge run ncf --batch 8 --threads 2 --device cpu --scenario single_stream "
               "--isa scalar --max-error 1e-05 --no-tune");
}

/* Of ranks that failed, so that no result says it (harness/scale/scale_reproduce.h). */
TEST(the_command_of_ranks_names_backend_and_providers)
{
    const struct point p = {.spec = "ncf",
                            .ranks = 2,
                            .batch = 16,
                            .threads = 1,
                            .steps = 8,
                            .device = "cpu",
                            .backend = "nccl",
                            .providers = "native"};
    struct arena arena = {0};
    (void)state;
    assert_string_equal(reproduce_command(&p, &arena),
                        "ridge scale ncf --ranks 2 --batch 8 --threads 1 --steps 8 --backend nccl "
                        "--providers native");
    arena_release(&arena);
}

TEST(the_command_quotes_words_that_need_it)
{
    const struct plan_overrides o = {.batch = "8", .threads = "2"};
    struct arena arena = {0};
    (void)state;
    reproduces("<b>x&y's.onnx", o,
               "ridge run '<b>x&y'\\''s.onnx' --batch 8 --threads 2 --device cpu --scenario "
               "single_stream");
    reproduces("a b.onnx", o,
               "ridge run 'a b.onnx' --batch 8 --threads 2 --device cpu --scenario single_stream");
    assert_string_equal(shell_word(&arena, "gemm:m=64,n=64"), "gemm:m=64,n=64");
    assert_string_equal(shell_word(&arena, ""), "''");
    assert_string_equal(shell_word(&arena, "'"), "''\\'''");
    assert_string_equal(shell_word(&arena, "~/$HOME"), "'~/$HOME'");
    arena_release(&arena);
}
