/* SPDX-License-Identifier: Apache-2.0
 * One visit of two programs in turns, with shell scripts as the programs. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/turns/child_words.h"
#include "harness/turns/turns_visit.h"
#include "tests/lib/unit.h"

/* Notes its name and every request in $LOG, and answers $MS. */
static const char *const program[] = {
    "sh", "-c",
    "echo ready; while read -r line; do echo \"$NAME$line\" >>\"$LOG\"; echo \"$MS\"; done", NULL};

struct pair {
    char log[64], variables[2][3][96];
    const char *environment[2][4];
    struct turns_side side[2];
    struct turns_rules rules;
};

static void open_pair(struct pair *p, const char *a_ms, const char *b_ms)
{
    const char *const ms[] = {a_ms, b_ms};
    *p = (struct pair){.rules = {.pairs_min = 4,
                                 .pairs_max = 16,
                                 .seconds_max = 60,
                                 .start_s = 20,
                                 .sample_s = 20,
                                 .cpus = 1}};
    snprintf(p->log, sizeof(p->log), "/tmp/ridge_turns_XXXXXX");
    int fd = mkstemp(p->log);
    assert_true(fd >= 0);
    close(fd);
    for (int k = 0; k < 2; k++) {
        snprintf(p->variables[k][0], 96, "NAME=%c", 'A' + k);
        snprintf(p->variables[k][1], 96, "MS=%s", ms[k]);
        snprintf(p->variables[k][2], 96, "LOG=%s", p->log);
        for (int i = 0; i < 3; i++)
            p->environment[k][i] = p->variables[k][i];
        p->side[k] = (struct turns_side){"a program", program, p->environment[k]};
    }
}

/* The log in one line. */
static void read_log(const struct pair *p, char *text, size_t size)
{
    FILE *file = fopen(p->log, "r");
    assert_non_null(file);
    size_t got = fread(text, 1, size - 1, file);
    text[got] = '\0';
    for (char *at = text; *at; at++)
        *at = *at == '\n' ? ' ' : *at;
    fclose(file);
    unlink(p->log);
}

/* A visit of both, and their log in one line, which is the test's until the next visit. */
static const char *visit_pair(struct pair *p, struct turns_visit *visit)
{
    static char log[2048];
    MUST(turns_visit_take, p->side, &p->rules, visit);
    read_log(p, log, sizeof(log));
    return log;
}

TEST(turns_go_a_b_b_a)
{
    struct pair p;
    struct turns_visit visit;
    open_pair(&p, "25.0", "30.0");
    const char *log = visit_pair(&p, &visit);
    assert_int_equal(visit.count, 4);
    assert_int_equal(visit.block, 1);
    assert_int_equal(visit.failed, -1);
    for (int k = 0; k < 4; k++) {
        assert_float_equal(visit.ms[0][k], 25, 1e-9);
        assert_float_equal(visit.ms[1][k], 30, 1e-9);
    }
    /* Three turns of warming up, four that count; executions of 25 ms need no settling. */
    assert_string_equal(log, "A B B A A B A B B A A B B A ");
    /* Whether the kernel tells or not: shares are shares. */
    assert_true(isnan(visit.seen.steal_share) ||
                (visit.seen.steal_share >= 0 && visit.seen.steal_share <= 1));
    assert_true(isnan(visit.seen.wait_share) ||
                (visit.seen.wait_share >= 0 && visit.seen.wait_share <= 1));
    assert_int_equal(visit.seen.before.value[0] > 0, 0);
    turns_visit_release(&visit);
}

TEST(the_other_one_may_be_first)
{
    struct pair p;
    struct turns_visit visit;
    open_pair(&p, "25.0", "25.0");
    p.rules.first = 1;
    p.rules.pairs_min = 2;
    assert_string_equal(visit_pair(&p, &visit), "B A A B B A B A A B ");
    turns_visit_release(&visit);
}

/* Executions of 0.25 ms: 8 make a sample of 2 ms, 4 that do not count stand before it; both
 * programs are asked for as many, by the faster one's time. */
TEST(short_executions_come_in_blocks)
{
    struct pair p;
    struct turns_visit visit;
    open_pair(&p, "0.5", "0.25");
    p.rules.pairs_min = 2;
    const char *log = visit_pair(&p, &visit);
    assert_int_equal(visit.block, 8);
    assert_string_equal(log, "A B B A A B A4 A8 B4 B8 B4 B8 A4 A8 ");
    turns_visit_release(&visit);
}

TEST(long_ones_are_warm_after_one_and_are_two_at_least)
{
    struct pair p;
    struct turns_visit visit;
    open_pair(&p, "400.0", "500.0");
    p.rules.pairs_min = 8;
    p.rules.seconds_max = 0;
    const char *log = visit_pair(&p, &visit);
    assert_int_equal(visit.count, 2);
    assert_string_equal(log, "A B A B B A ");
    turns_visit_release(&visit);
}

/* Whose fault it is, and the last line that it said. */
TEST(a_side_that_fails_is_named)
{
    static const struct {
        const char *script, *message;
        int exit_code;
    } bad[] = {
        {"echo one >&2; echo 'no such kernel' >&2; exit 5", "no such kernel", 5},
        {"echo ready; read -r _; echo 5.0; echo 'out of luck' >&2; kill -9 $$", "out of luck", -1},
        {"echo ready; while read -r _; do echo nonsense; done", "printed \"nonsense\"", 0},
        {"echo hello", "instead of \"ready\"", 0},
    };
    for (size_t k = 0; k < sizeof(bad) / sizeof(*bad); k++)
        for (int side = 0; side < 2; side++) {
            const char *const command[] = {"sh", "-c", bad[k].script, NULL};
            struct pair p;
            struct turns_visit visit;
            struct error err = {0};
            open_pair(&p, "5.0", "5.0");
            p.side[side].command = command;
            assert_int_equal(turns_visit_take(p.side, &p.rules, &visit, &err), STATUS_FAILED);
            assert_int_equal(visit.failed, side);
            assert_non_null(strstr(err.message, bad[k].message));
            assert_non_null(strstr(err.message, "a program"));
            assert_int_equal(visit.exit_code, bad[k].exit_code);
            turns_visit_release(&visit);
            unlink(p.log);
        }
}

/* ---- what the children are asked ---- */

TEST(words_say_what_is_not_usual)
{
    struct arena arena = {0};
    const char *words[CHILD_WORDS_MAX];
    struct point point = {.spec = "ncf",
                          .batch = 8,
                          .threads = 2,
                          .device = "cpu",
                          .precision = "f32",
                          .mode = "inference",
                          .providers = ""};
    struct model_options model = {.no_tune = true, .max_error = 1e-3, .cache = "c.txt"};
    static const char *const usual[] = {
        "p", "run",     "ncf",   "--on-request", "--batch", "8",        "--threads",
        "2", "--cache", "c.txt", "--max-error",  "0.001",   "--no-tune"};
    MUST(child_words, "p", &point, &model, &arena, words);
    for (size_t k = 0; k < sizeof(usual) / sizeof(*usual); k++)
        assert_string_equal(words[k], usual[k]);
    assert_null(words[13]);
    point.device = "cuda";
    point.precision = "bf16";
    point.providers = "native";
    point.batch = 0;
    point.protocol.quick_tune = true;
    model = (struct model_options){.device = NULL};
    static const char *const other[] = {
        "p",    "run",         "ncf",  "--on-request", "--threads", "2",           "--device",
        "cuda", "--precision", "bf16", "--providers",  "native",    "--quick-tune"};
    MUST(child_words, "p", &point, &model, &arena, words);
    for (size_t k = 0; k < sizeof(other) / sizeof(*other); k++)
        assert_string_equal(words[k], other[k]);
    assert_null(words[13]);
    arena_release(&arena);
}

TEST(what_has_no_single_samples_is_refused)
{
    struct point point = {.spec = "ncf"};
    assert_null(child_refuses(&point));
    point.protocol.scenario = SCENARIO_SERVER;
    assert_non_null(strstr(child_refuses(&point), "server"));
    point.protocol.scenario = SCENARIO_OFFLINE;
    assert_non_null(strstr(child_refuses(&point), "offline"));
    point.protocol = (struct protocol){.cold = true};
    assert_non_null(strstr(child_refuses(&point), "caches"));
    point.skip = "no such device";
    assert_string_equal(child_refuses(&point), "no such device");
}
