/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/registry.h"
#include "harness/campaign/plan_time.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"

static char path[64]; /* of the suite being tested */

/* A plan of a suite's text on a machine of four CPUs. */
static void plan_text(const char *text, struct plan_overrides o, struct plan *plan)
{
    char *const words[] = {path};
    o.cpus = 4;
    write_file(path, text);
    MUST(plan_from_words, words, 1, &o, plan);
}

static void fails(const char *text, struct plan_overrides o, const char *message)
{
    char *const words[] = {path};
    struct error err = {.message = ""};
    struct plan plan;
    o.cpus = 4;
    write_file(path, text);
    assert_int_equal(plan_from_words(words, 1, &o, &plan, &err), STATUS_FAILED);
    if (!strstr(err.message, message))
        fail_msg("\"%s\" lacks \"%s\"", err.message, message);
}

static void batches_and_threads_are(const struct plan *plan, const char *expected)
{
    char text[512] = "";
    size_t used = 0;
    for (int k = 0; k < plan->count && used < sizeof(text); k++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %lldx%d", k ? ", " : "",
                                 plan->points[k].spec, (long long)plan->points[k].batch,
                                 plan->points[k].threads);
    assert_string_equal(text, expected);
}

#define NCF    "[[workload]]\nname = \"ncf\"\n"
#define RESNET "[[workload]]\nname = \"resnet50\"\n"
#define NO_OVERRIDES                                                                               \
    (struct plan_overrides)                                                                        \
    {                                                                                              \
        .batch = NULL                                                                              \
    }

/* If this fails, every history of every user has lost its thread: do not change the expectation. */
TEST(ids_are_the_same_forever)
{
    struct plan plan;
    plan_text(RESNET "version = \"1.5\"\nbatch = 32\nthreads = 2\n", NO_OVERRIDES, &plan);
    assert_int_equal(plan.count, 1);
    assert_string_equal(plan.points[0].canonical,
                        "workload=resnet50 params=version=1.5 mode=inference device=cpu "
                        "precision=f32 batch=32 threads=2 scenario=single_stream cache=warm "
                        "providers=");
    assert_string_equal(plan.points[0].id, "3bf1605f066fe06e");
    assert_string_equal(plan.hash, "bd6f5e6962e3ece6");
    plan_release(&plan);
    plan_text(NCF "threads = 1\nscenario = \"server\"\nserver = { latency_bound_s = 0.1 }\n",
              NO_OVERRIDES, &plan);
    assert_non_null(strstr(plan.points[0].canonical,
                           " scenario=server cache=warm providers= bound=0.1 quantile=0.99"));
    plan_release(&plan);
}

/* Other kernels may win a quick tuning: its times are no history of fully tuned ones. */
TEST(quick_tuning_is_part_of_the_id)
{
    struct plan full, quick, asked;
    const struct plan_overrides overrides = {.tuning = "quick", .cpus = 4};
    plan_text(NCF "threads = 1\ntuning = \"full\"\n", NO_OVERRIDES, &full);
    plan_text(NCF "threads = 1\ntuning = \"quick\"\n", NO_OVERRIDES, &quick);
    plan_text(NCF "threads = 1\n", overrides, &asked);
    assert_null(strstr(full.points[0].canonical, "tuning"));
    assert_non_null(strstr(quick.points[0].canonical, " cache=warm providers= tuning=quick"));
    assert_string_not_equal(quick.points[0].id, full.points[0].id);
    assert_string_equal(quick.points[0].id, asked.points[0].id);
    plan_release(&full);
    plan_release(&quick);
    plan_release(&asked);
}

/* The same question asked in other words, with other stopping rules, has the same id. */
TEST(ids_depend_on_the_question_only)
{
    static const char *const texts[] = {
        NCF "threads = 4\nbatch = 256\nproviders = \"onednn,native\"\n",
        NCF "embedding = \"onehot\"\nproviders = \"native,onednn,native\"\n",
        "[defaults]\nthreads = \"all\"\nproviders = \"native,onednn\"\nverify = false\n"
        "[defaults.stop]\nsamples_min = 40\n" NCF "profilers = \"null\"\n",
    };
    char id[17] = "";
    for (int k = 0; k < ARRAY_COUNT(texts); k++) {
        struct plan plan;
        plan_text(texts[k], NO_OVERRIDES, &plan);
        assert_int_equal(plan.count, 1);
        if (k)
            assert_string_equal(plan.points[0].id, id);
        memcpy(id, plan.points[0].id, sizeof(id));
        plan_release(&plan);
    }
}

TEST(what_is_written_first_varies_slowest)
{
    struct plan plan;
    plan_text("[defaults]\nthreads = [1, 2]\n" RESNET "batch = [1, 8]\nimage = [160, 224]\n",
              NO_OVERRIDES, &plan);
    batches_and_threads_are(&plan, "resnet50:image=160 1x1, resnet50:image=160 1x2, resnet50 1x1, "
                                   "resnet50 1x2, resnet50:image=160 8x1, resnet50:image=160 8x2, "
                                   "resnet50 8x1, resnet50 8x2");
    plan_release(&plan);
    plan_text(RESNET "image = [160, 224]\nbatch = [1, 8]\nthreads = 3\nversion = \"1.5\"\n",
              NO_OVERRIDES, &plan);
    batches_and_threads_are(
        &plan, "resnet50:image=160,version=1.5 1x3, resnet50:image=160,version=1.5 8x3, "
               "resnet50:version=1.5 1x3, resnet50:version=1.5 8x3");
    plan_release(&plan);
}

TEST(a_workload_overrides_defaults_and_a_command_line_both)
{
    static const char text[] = "[defaults]\nbatch = 3\nthreads = 1\n" NCF "batch = [4, 5]\n" RESNET;
    struct plan plan;
    plan_text(text, NO_OVERRIDES, &plan);
    batches_and_threads_are(&plan, "ncf 4x1, ncf 5x1, resnet50 3x1");
    plan_release(&plan);
    plan_text(text, (struct plan_overrides){.batch = "7", .threads = "1,all"}, &plan);
    batches_and_threads_are(&plan, "ncf 7x1, ncf 7x4, resnet50 7x1, resnet50 7x4");
    plan_release(&plan);
}

TEST(good_defaults)
{
    struct plan plan;
    plan_text(NCF, NO_OVERRIDES, &plan);
    const struct point *p = &plan.points[0];
    assert_int_equal(p->batch, 256);
    assert_int_equal(p->threads, 4);
    assert_int_equal(p->protocol.samples_min, 15);
    assert_int_equal(p->protocol.samples_max, 20000);
    assert_true(p->protocol.seconds_min == 1 && p->protocol.seconds_max == 15);
    assert_true(p->protocol.interval == 0.01 && p->protocol.interval_is_default);
    assert_true(p->protocol.verify && p->protocol.layers && !p->protocol.cold);
    assert_true(p->protocol.warmup_s == 0.2 && p->protocol.warmup_runs == 3);
    assert_string_equal(p->domain, "recommendation");
    assert_string_equal(p->params, "");
    assert_true(isnan(p->estimate_s));
    assert_null(p->skip);
    assert_true(plan.ceilings && plan.budget_s == 0);
    assert_string_equal(plan.db, "out/ridge.db");
    assert_string_equal(plan.report, "out/report");
    plan_release(&plan);
}

TEST(a_command_line_changes_the_protocol)
{
    struct plan plan;
    plan_text("[output]\ndb = \"a.db\"\n[ceilings]\nmeasure = true\n" NCF,
              (struct plan_overrides){.samples = 30000,
                                      .seconds = {20, true},
                                      .interval = "0",
                                      .cold = true,
                                      .no_verify = true,
                                      .no_layers = true,
                                      .no_ceilings = true,
                                      .no_report = true,
                                      .profilers = "null",
                                      .db = "b.db",
                                      .budget_s = {60, true}},
              &plan);
    const struct protocol *p = &plan.points[0].protocol;
    assert_int_equal(p->samples_min, 30000);
    assert_int_equal(p->samples_max, 30000); /* the default gives way */
    assert_true(p->seconds_min == 20 && p->seconds_max == 20);
    assert_true(p->interval == 0 && !p->interval_is_default);
    assert_true(p->cold && !p->verify && !p->layers && !plan.ceilings);
    assert_string_equal(plan.points[0].profilers, "null");
    assert_string_equal(plan.db, "b.db");
    assert_string_equal(plan.report, "");
    assert_true(plan.budget_s == 60);
    plan_release(&plan);
    /* It was taken for what nobody had asked for. */
    plan_text("budget_s = 60\n" NCF,
              (struct plan_overrides){.seconds = {0, true}, .budget_s = {0, true}}, &plan);
    assert_true(plan.points[0].protocol.seconds_min == 0 && plan.budget_s == 0);
    plan_release(&plan);
}

TEST(what_cannot_run_here_is_skipped_with_a_reason)
{
    struct plan plan;
    plan_text(NCF "threads = [4, 5]\n" RESNET "device = \"cuda:7\"\n" RESNET "precision = \"f16\"\n"
                  "[[workload]]\nname = \"gemm\"\nmode = \"training\"\n",
              NO_OVERRIDES, &plan);
    static const char *const reasons[] = {
        NULL, "may use 4 CPUs", "cuda", "resnet50 cannot run in it on the CPU", "gemm has no loss"};
    assert_int_equal(plan.count, 5);
    for (int k = 0; k < plan.count; k++)
        if (!reasons[k] ? plan.points[k].skip != NULL
                        : !plan.points[k].skip || !strstr(plan.points[k].skip, reasons[k]))
            fail_msg("point %d: %s", k, plan.points[k].skip ? plan.points[k].skip : "runs");
    plan_release(&plan);
}

/* "cuda:0" was a device of its own, with other ids and without the history of "cuda". */
TEST(cuda_0_is_cuda)
{
    struct plan plan;
    plan_text(NCF "device = [\"cuda\", \"cuda:0\", \"cuda:1\"]\n", NO_OVERRIDES, &plan);
    assert_int_equal(plan.count, 2);
    assert_string_equal(plan.points[0].device, "cuda");
    assert_string_equal(plan.points[1].device, "cuda:1");
    char id[17];
    memcpy(id, plan.points[0].id, sizeof(id));
    plan_release(&plan);
    plan_text(NCF, (struct plan_overrides){.device = "cuda:0"}, &plan);
    assert_int_equal(plan.count, 1);
    assert_string_equal(plan.points[0].id, id);
    assert_non_null(strstr(plan.points[0].canonical, " device=cuda "));
    plan_release(&plan);
    fails(NCF "device = \"cuda\"\n" NCF "device = \"cuda:0\"\n", NO_OVERRIDES,
          ":4: ncf, batch 256, 4 threads is there twice, first at ");
}

TEST(mistakes_are_named)
{
    fails(NCF NCF, NO_OVERRIDES, ":3: ncf, batch 256, 4 threads is there twice, first at ");
    fails(NCF "stop = { samples_min = 9, samples_max = 8 }\n", NO_OVERRIDES,
          "samples_min = 9 is above samples_max = 8 of ");
    fails(NCF "stop = { seconds_min = 9, seconds_max = 8 }\n", NO_OVERRIDES,
          "seconds_min = 9 is above seconds_max = 8 of ");
    fails(NCF "scenario = \"server\"\n", NO_OVERRIDES, "latency_bound_s");
    /* It was a point to be skipped, and the run had nothing against it. */
    fails(NCF "scaling = { ranks = 2, backend = \"smh\" }\n", NO_OVERRIDES,
          ".toml:3: workload.scaling.backend: \"smh\" is not known, did you mean \"shm\"?");
    fails(NCF "scaling = { ranks = 2, backend = \"telegraph\" }\n", NO_OVERRIDES,
          "\"telegraph\" is not known; `ridge bench -h` names all");
    fails("[output]\ndb = \"\"\n" NCF, NO_OVERRIDES, "the database has no name");
    /* These were ignored without a word. */
    fails(NCF "scaling = { steps = 5 }\n", NO_OVERRIDES,
          ".toml:3: ncf: scaling.steps has no effect: there are no scaling.ranks");
    fails(NCF "scaling = { strong = true }\n", NO_OVERRIDES, "scaling.strong has no effect");
    fails(NCF "mode = \"training\"\nsegments = 4\n", NO_OVERRIDES,
          ".toml:4: ncf: segments has no effect: nothing here has recompute = true");
    fails(NCF "server = { latency_bound_s = 0.1 }\n", NO_OVERRIDES,
          "server.latency_bound_s has no effect: nothing here has scenario = \"server\"");
    fails(NCF, (struct plan_overrides){.only = "ncd"}, "--only: \"ncd\" is not in the suite, did");
    fails(NCF, (struct plan_overrides){.only = "ncf,"}, "--only: \"\" is not in the suite; `ri");
    fails(NCF, (struct plan_overrides){.batch = "1,x"}, "--batch: needs an integer, got the st");
    fails(NCF, (struct plan_overrides){.batch = "0"}, "--batch: 0 is not in 1 to 1000000000");
    fails(NCF, (struct plan_overrides){.batch = ""}, "--batch: needs an integer, got the st");
    fails(NCF, (struct plan_overrides){.batch = "99999999999999999999"}, "--batch: 9223372036");
    fails(NCF, (struct plan_overrides){.samples = -1}, "--samples: -1 is not in 1 to");
    fails(NCF, (struct plan_overrides){.interval = "x"}, "--interval: needs a number");
    fails(NCF, (struct plan_overrides){.scenario = "servr"}, "did you mean \"server\"?");
    fails(NCF "batch = { from = 1, to = 1000, plus = 1 }\n",
          (struct plan_overrides){.threads = "1,2,3,4,5,6"}, "more than 5000 points");
}

TEST(a_bound_that_a_scenario_does_not_know_makes_no_points)
{
    struct plan plan;
    plan_text(NCF "scenario = [\"offline\", \"server\"]\nserver = { latency_bound_s = [0.1, 1] }\n",
              NO_OVERRIDES, &plan);
    assert_int_equal(plan.count, 3);
    assert_int_equal(plan.points[0].protocol.scenario, SCENARIO_OFFLINE);
    assert_true(plan.points[2].protocol.latency_bound_s == 1);
    plan_release(&plan);
    /* Nor is it an error where the command line takes the scenario away. */
    plan_text(NCF "scenario = \"server\"\nserver = { latency_bound_s = 0.1 }\n",
              (struct plan_overrides){.scenario = "offline"}, &plan);
    assert_int_equal(plan.count, 1);
    plan_release(&plan);
}

TEST(only_keeps_what_it_names)
{
    char word[] = "table1";
    char *const words[] = {word};
    struct plan plan;
    MUST(plan_from_words, words, 1, &(struct plan_overrides){.only = "ncf,bert_large"}, &plan);
    assert_int_equal(plan.count, 2);
    assert_string_equal(plan.points[0].workload, "ncf");
    assert_string_equal(plan.points[1].workload, "bert_large");
    assert_string_equal(plan.suite, "suites/table1.toml");
    plan_release(&plan);
}

TEST(words_are_workloads_models_and_suites)
{
    char first[] = "resnet50:image=160,version=1.5", second[] = "quick";
    char *const words[] = {first, second};
    struct plan plan;
    MUST(plan_from_words, words, 2, NULL, &plan);
    assert_true(plan.count > 3);
    assert_string_equal(plan.points[0].spec, "resnet50:image=160,version=1.5");
    assert_string_equal(plan.points[0].origin, "command line");
    assert_int_equal(plan.points[0].batch, 1);
    assert_non_null(strstr(plan.points[1].origin, "suites/quick.toml:"));
    assert_string_equal(plan.suite, "suites/quick.toml");
    plan_release(&plan);
    MUST(plan_from_words, words, 1, NULL, &plan);
    assert_string_equal(plan.suite, "command line");
    assert_string_equal(plan.suite_text, "");
    plan_release(&plan);
}

TEST(wrong_words_are_named)
{
    static const char *const rows[][2] = {
        {"resnt50", "workload \"resnt50\" is not known, did you mean \"resnet50\"?"},
        {"quik", "did you mean \"quick\"?"},
        {"resnet50:vesion=1", "resnet50 has no parameter \"vesion\", did you mean \"version\"?"},
        {"resnet50:version", "resnet50:version: \"version\" should be PARAMETER=VALUE"},
        {"resnet50:version=2.5", "\"2.5\" is not known, did you mean \"1.5\"?"},
        {"resnet50:image=x", "resnet50:image=x: needs an integer, got the string \"x\""},
        {"ncf:zzzzzzzz=1", "ncf has no parameter \"zzzzzzzz\"; `ridge list` shows all"},
        {"none.toml", "there is no suite \"none.toml\""},
        {"none.onnx", "none.onnx: No such file"},
    };
    for (int k = 0; k < ARRAY_COUNT(rows); k++) {
        char word[64];
        char *const words[] = {word};
        struct plan plan;
        struct error err = {.message = ""};
        snprintf(word, sizeof(word), "%s", rows[k][0]);
        assert_int_equal(plan_from_words(words, 1, NULL, &plan, &err), STATUS_FAILED);
        if (!strstr(err.message, rows[k][1]))
            fail_msg("%s: \"%s\" lacks \"%s\"", word, err.message, rows[k][1]);
    }
}

static double history(void *context, const char *id)
{
    return strcmp(id, context) == 0 ? 12.5 : NAN;
}

TEST(time_comes_from_rules_and_history)
{
    struct plan plan;
    plan_text(NCF "batch = [1, 2]\nthreads = [2, 9]\n", NO_OVERRIDES, &plan);
    struct time_range range = plan_time_range(&plan.points[0]);
    assert_true(fabs(range.shortest_s - 1.3) < 1e-12 && fabs(range.longest_s - 15.3) < 1e-12);
    plan_estimate(&plan, history, plan.points[2].id);
    assert_true(isnan(plan.points[0].estimate_s));
    assert_true(plan.points[2].estimate_s == 12.5);
    plan_estimate(&plan, history, plan.points[1].id);
    assert_non_null(plan.points[1].skip);
    assert_true(isnan(plan.points[1].estimate_s)); /* it will not run */
    struct point server = plan.points[0];
    server.protocol.scenario = SCENARIO_SERVER;
    assert_true(isnan(plan_time_range(&server).longest_s));
    plan_release(&plan);
}

/* The ids are those of `ridge scale --db` (tests/cli/scale_suite.sh). */
TEST(ranks_make_a_point_of_each_number)
{
    struct plan plan;
    plan_text(NCF "batch = 12\nscaling = { ranks = [1, 2], strong = [false, true], steps = 7 }\n",
              NO_OVERRIDES, &plan);
    assert_int_equal(plan.count, 4);
    const struct point *p = plan.points;
    for (int k = 0; k < 4; k++) {
        assert_null(p[k].skip);
        assert_string_equal(p[k].mode, "training");
        assert_string_equal(p[k].spec, "ncf");
        assert_int_equal(p[k].threads, 2); /* "all" four among two ranks */
        assert_int_equal(p[k].ranks_most, 2);
        assert_int_equal(p[k].steps, 7);
        assert_int_equal(p[k].protocol.rounds, 1);
        assert_int_equal(p[k].ranks, k < 2 ? 1 : 2);
        assert_int_equal(p[k].batch, k == 2 ? 24 : 12);
        assert_true(isnan(plan_time_range(&p[k]).longest_s));
    }
    assert_string_equal(p[2].canonical,
                        "workload=ncf params=ranks=2 mode=training device=cpu precision=f32 "
                        "batch=24 threads=2 scenario=single_stream cache=warm providers= "
                        "scaling=weak backend=shm algorithm=");
    plan_release(&plan);
}

TEST(ranks_that_cannot_learn_here_are_skipped)
{
    static const char *const rows[][2] = {
        {"mode = \"inference\"\nscaling = { ranks = 2 }\n", "nothing is learnt"},
        {"scaling = { ranks = 16 }\n", "16 ranks of 1 thread"},
        {"threads = 4\nscaling = { ranks = 2 }\n", "2 ranks of 4 threads: this process may use 4"},
        {"batch = 7\nscaling = { ranks = 2, strong = true }\n", "cannot be shared by 2 ranks"},
        {"scaling = { ranks = 2, backend = \"loop\" }\n", "scaling.backend \"loop\""},
        {"scaling = { ranks = 2, backend = \"openmpi\" }\n", "ridge scale --backend openmpi"},
        {"cold = true\nscaling = { ranks = 2 }\n", "follow one another"},
    };
    for (int k = 0; k < ARRAY_COUNT(rows); k++) {
        struct plan plan;
        char text[256];
        snprintf(text, sizeof(text), "%s%s", NCF, rows[k][0]);
        plan_text(text, NO_OVERRIDES, &plan);
        if (plan.count != 1 || !plan.points[0].skip || !strstr(plan.points[0].skip, rows[k][1]))
            fail_msg("%s: \"%s\" lacks \"%s\"", rows[k][0], plan.points[0].skip, rows[k][1]);
        plan_release(&plan);
    }
}

/* A block of offline was flushed once, so its mean was that of warm caches; a server's queries
 * waited for flushes, which no latency of their own held. */
TEST(cold_caches_are_of_single_executions)
{
    static const struct {
        const char *scenario, *skip; /* NULL: it runs */
    } rows[] = {{"\"single_stream\"", NULL},
                {"\"offline\"", "only the first execution"},
                {"\"server\"\nserver = { latency_bound_s = 1 }", "would wait"}};
    for (int k = 0; k < ARRAY_COUNT(rows); k++) {
        struct plan plan;
        char text[256];
        snprintf(text, sizeof(text), "%scold = true\nscenario = %s\n", NCF, rows[k].scenario);
        plan_text(text, NO_OVERRIDES, &plan);
        assert_int_equal(plan.count, 1);
        const char *skip = plan.points[0].skip;
        bool as_said = rows[k].skip ? skip && strstr(skip, rows[k].skip) : !skip;
        if (!as_said)
            fail_msg("%s: \"%s\"", rows[k].scenario, skip ? skip : "it runs");
        plan_release(&plan);
    }
}

static int make_file(void **state)
{
    (void)state;
    snprintf(path, sizeof(path), "/tmp/ridge-plan-%ld.toml", (long)getpid());
    return 0;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

const struct unit_fixture unit_fixture = {.before_all = make_file, .after_all = remove_file};
