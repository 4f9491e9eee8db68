/* SPDX-License-Identifier: Apache-2.0
 * The protocol of samples on request, with shell scripts as the programs under test. */

#include <math.h>
#include <string.h>

#include "harness/turns/interleave.h"
#include "tests/lib/unit.h"

/* Times in ms scatter by half a percent around $MS. */
static const char *const script[] = {
    "sh", "-c",
    "echo ready; i=0; while read -r line; do i=$((i + 7)); echo \"$MS$((i % 10))\"; done", NULL};
static const char *const ten[] = {"MS=10.0", NULL};
static const char *const eleven[] = {"MS=11.0", NULL};

static struct interleave_options options(const char *const *a, const char *const *b)
{
    return (struct interleave_options){
        .a = {script, a}, .b = {script, b}, .pairs = 4, .samples = 12, .seconds = 0.001};
}

static bool count_pairs(void *context, int done, int pairs)
{
    int *seen = context;
    assert_int_equal(pairs, 4);
    assert_int_equal(done, *seen + 1);
    *seen = done;
    return true;
}

TEST(turns_are_taken_and_judged)
{
    struct interleave_options o = options(ten, eleven);
    struct interleave_result result;
    struct comparison c;
    int seen = 0;
    o.progress = count_pairs;
    o.progress_context = &seen;
    MUST(interleave_run, &o, &result);
    assert_int_equal(result.pairs, 4);
    assert_int_equal(seen, 4);
    for (int k = 0; k < 4; k++) {
        assert_true(result.side[0][k].count >= 12);
        assert_int_equal(result.side[0][k].count, result.side[1][k].count);
        /* Three warm-up samples are gone: the fourth is 28 mod 10. */
        assert_float_equal(result.side[0][k].times[0], 10.08, 1e-9);
        assert_float_equal(result.side[1][k].times[0], 11.08, 1e-9);
    }
    MUST(interleave_judge, &result, &(struct compare_rules){0}, &c);
    assert_int_equal(c.verdict, VERDICT_REGRESSED);
    assert_true(fabs(c.ratio - 1.1) < 0.01);
    assert_int_equal(c.base_runs, 4);
    interleave_release(&result);
}

TEST(equal_programs_are_unchanged)
{
    struct interleave_options o = options(ten, ten);
    struct interleave_result result;
    struct comparison c;
    MUST(interleave_run, &o, &result);
    MUST(interleave_judge, &result, NULL, &c);
    assert_int_equal(c.verdict, VERDICT_UNCHANGED);
    interleave_release(&result);
}

/* What each bad program must be blamed for. */
TEST(bad_programs_are_named)
{
    static const struct {
        const char *script, *message;
    } cases[] = {
        {"exit 3", "ended while"},
        {"echo hello", "\"hello\" instead of \"ready\""},
        {"echo ready; read -r line; echo fast", "\"fast\" instead of a time"},
        {"echo ready; read -r line; echo -1", "instead of a time"},
        {"echo ready; read -r line; echo 5; exit 1", "ended while"},
        {"sleep 2", "did not answer within 0.2 s"},
        {"echo ready; while read -r line; do echo 1; done; exit 7", "exit code 7"},
        {"echo ready; while read -r line; do echo 1; done; kill -9 $$", "signal 9"},
    };
    for (int k = 0; k < (int)(sizeof(cases) / sizeof(*cases)); k++) {
        const char *const bad[] = {"sh", "-c", cases[k].script, NULL};
        struct interleave_options o = options(ten, NULL);
        struct interleave_result result;
        struct error err = {0};
        o.b = (struct interleave_side){bad, NULL};
        o.start_limit_s = o.sample_limit_s = 0.2;
        assert_int_equal(interleave_run(&o, &result, &err), STATUS_FAILED);
        if (!strstr(err.message, cases[k].message))
            fail_msg("case %d: \"%s\" lacks \"%s\"", k, err.message, cases[k].message);
        assert_int_equal(result.pairs, 0);
    }
    static const char *const absent[] = {"/no/such/program", NULL};
    struct interleave_options o = options(ten, NULL);
    struct interleave_result result;
    o.b.command = absent;
    FAILS(STATUS_FAILED, "/no/such/program", interleave_run, &o, &result);
}
