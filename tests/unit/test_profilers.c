/* SPDX-License-Identifier: Apache-2.0
 * Every registered profiler on this machine; energy counters, formulas and counter groups on
 * invented ones. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/embedded.h"
#include "base/system/clock.h"
#include "base/system/pool.h"
#include "profilers/lib/counting.h"
#include "profilers/lib/formula.h"
#include "profilers/lib/powercap.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"

/* ---- the registry ---- */

static void burn(void *context, int64_t tile, int thread)
{
    const double seconds = *(const double *)context;
    uint64_t until = clock_now_ns() + (uint64_t)(seconds * 1e9);
    volatile float sink = 1;
    (void)tile;
    (void)thread;
    while (clock_now_ns() < until)
        sink = sink * 0.5f + 1;
}

static const struct profiler_metric *metric_of(const struct profiler_metric *metrics, int count,
                                               const char *name)
{
    for (int k = 0; k < count; k++)
        if (strcmp(metrics[k].name, name) == 0)
            return &metrics[k];
    return NULL;
}

/* A number, or no number and a reason; each name once. */
static void check_metrics(const struct profiler *p, const struct profiler_metric *metrics,
                          int count)
{
    assert_true(count <= PROFILER_METRICS_MAX);
    for (int k = 0; k < count; k++) {
        const struct profiler_metric *m = &metrics[k];
        assert_true(m->name[0] && m->unit[0] && m->formula && m->reason);
        if (isnan(m->value) != (m->reason[0] != '\0'))
            fail_msg("%s: %s is %g for the reason \"%s\"", p->name, m->name, m->value, m->reason);
        assert_ptr_equal(metric_of(metrics, count, m->name), m);
    }
}

static int count_burning(const struct profiler *p, struct pool *pool, double seconds,
                         void **session, struct profiler_metric *metrics)
{
    const struct profiler_model model = {5,      2, 1,    10, 20,   "f32", false,
                                         "cuda", 0, NULL, 1,  NULL, NULL,  NULL};
    struct error err;
    if (p->open(&model, 2, session, &err) != STATUS_OK)
        fail_msg("%s: %s", p->name, err.message);
    for (int pass = 0; pass < p->passes(*session); pass++) {
        MUST(p->begin, *session, pass);
        for (int k = 0; k < 3; k++)
            pool_run(pool, 2, burn, &seconds);
        MUST(p->end, *session, pass, 3);
    }
    return p->read(*session, metrics);
}

TEST(every_profiler_counts_or_says_why)
{
    struct pool *pool;
    struct error err;
    MUST(pool_new, 2, &pool);
    assert_true(profiler_count() >= 5);
    for (int k = 0; k < profiler_count(); k++) {
        const struct profiler *p = profiler_at(k);
        struct profiler_metric metrics[PROFILER_METRICS_MAX];
        char reason[400] = "?";
        void *session;
        assert_ptr_equal(profiler_find(p->name), p);
        assert_true(p->summary[0] && p->open && p->passes && p->begin && p->end && p->read);
        if (!p->available(reason, sizeof(reason))) {
            print_message("%s: %s\n", p->name, reason);
            assert_true(strlen(reason) > 20);
            assert_int_equal(p->open(NULL, 1, &session, &err), STATUS_UNSUPPORTED);
            continue;
        }
        assert_string_equal(reason, "");
        check_metrics(p, metrics, count_burning(p, pool, 0.002, &session, metrics));
        p->close(session);
    }
    assert_null(profiler_find("no_such_profiler"));
    pool_free(pool);
}

TEST(model_repeats_the_model)
{
    struct profiler_metric metrics[PROFILER_METRICS_MAX];
    void *session;
    const struct profiler *p = profiler_find("model");
    int count = count_burning(p, NULL, 0, &session, metrics);
    assert_true(metric_of(metrics, count, "flops")->value == 5);
    assert_true(metric_of(metrics, count, "bytes_streamed")->value == 20);
    p->close(session);
}

/* CPU time of all threads, whoever counts it: two threads that are busy for 20 ms. Others may take
 * the CPUs for most of the time; the threads' waiting adds a little, and much where one of them has
 * to wait for a CPU. */
static double burnt(const struct profiler *p, struct pool *pool, const char *name)
{
    struct profiler_metric metrics[PROFILER_METRICS_MAX];
    void *session;
    int count = count_burning(p, pool, 0.02, &session, metrics);
    const struct profiler_metric *m = metric_of(metrics, count, name);
    assert_non_null(m);
    double value = m->value;
    p->close(session);
    return value;
}

TEST(cpu_time_of_all_threads)
{
    enum { TRIES = 20 };
    static const struct {
        const char *profiler, *metric;
    } both[] = {{"clock", "cpu_time_s"}, {"papi", "task_clock_s"}};
    struct pool *pool;
    char reason[400];
    MUST(pool_new, 2, &pool);
    for (int k = 0; k < ARRAY_COUNT(both); k++) {
        const struct profiler *p = profiler_find(both[k].profiler);
        if (!p->available(reason, sizeof(reason)))
            continue;
        double value = burnt(p, pool, both[k].metric);
        for (int n = 1; n < TRIES && (value < 0.004 || value > 0.06); n++)
            value = burnt(p, pool, both[k].metric);
        if (value < 0.004 || value > 0.06)
            fail_msg("%s: %s is %g, not 0.04", p->name, both[k].metric, value);
    }
    pool_free(pool);
}

/* ---- energy ---- */

static void put_zone(const char *root, const char *zone, const char *name, const char *energy)
{
    char path[256];
    snprintf(path, sizeof(path), "/sys/class/powercap/%s/name", zone);
    put_file(root, path, name);
    snprintf(path, sizeof(path), "/sys/class/powercap/%s/max_energy_range_uj", zone);
    put_file(root, path, "10000000\n");
    snprintf(path, sizeof(path), "/sys/class/powercap/%s/energy_uj", zone);
    put_file(root, path, energy);
}

static void remove_tree(const char *root)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", root);
    assert_int_equal(system(command), 0); /* a path of mkdtemp */
}

TEST(energy_wraps_and_adds_up)
{
    char root[] = "/tmp/ridge-power-XXXXXX";
    struct powercap p;
    assert_non_null(mkdtemp(root));
    put_zone(root, "intel-rapl:0", "package-0\n", "9500000\n");
    put_zone(root, "intel-rapl:0:0", "dram\n", "100\n");
    put_zone(root, "intel-rapl:1", "package-1\n", "1000000\n");
    put_zone(root, "intel-rapl:2", "psys\n", "5\n");
    MUST(powercap_open, &p, root);
    assert_int_equal(p.count, 4);
    put_zone(root, "intel-rapl:0", "package-0\n", "500000\n"); /* went round: 1 J */
    put_zone(root, "intel-rapl:1", "package-1\n", "3000000\n");
    put_zone(root, "intel-rapl:2", "psys\n", "9000000\n");
    MUST(powercap_add, &p);
    put_zone(root, "intel-rapl:0", "package-0\n", "750000\n");
    MUST(powercap_add, &p);
    assert_true(fabs(powercap_joules(&p, "package") - 3.25) < 1e-9); /* psys is not added */
    assert_true(powercap_joules(&p, "dram") == 0);
    assert_true(isnan(powercap_joules(&p, "core")));
    remove_tree(root);
}

/* Counters of energy move once a millisecond, or ten times a second: a pass of short executions
 * must not end before they did. */
TEST(energy_of_short_executions_is_counted_for_a_second)
{
    static const char *const names[] = {"powercap", "nvml"};
    const double execution_s = 1e-7;
    for (int k = 0; k < ARRAY_COUNT(names); k++) {
        const struct profiler *profiler = profiler_find(names[k]);
        assert_non_null(profiler);
        assert_true((double)profiler->executions_max * execution_s >= 1);
    }
}

TEST(energy_that_cannot_be_read)
{
    char root[] = "/tmp/ridge-power-XXXXXX", path[256];
    struct powercap p;
    FAILS(STATUS_UNSUPPORTED, "modprobe", powercap_open, &p, "/nonexistent");
    assert_non_null(mkdtemp(root));
    put_zone(root, "intel-rapl:0", "package-0\n", "no number\n");
    FAILS(STATUS_UNSUPPORTED, "no number", powercap_open, &p, root);
    snprintf(path, sizeof(path), "%s/sys/class/powercap/intel-rapl:0/energy_uj", root);
    chmod(path, 0);
    if (geteuid() != 0) { /* root may read everything */
        FAILS(STATUS_UNSUPPORTED, "chmod", powercap_open, &p, root);
    }
    unlink(path);
    FAILS(STATUS_UNSUPPORTED, "energy_uj", powercap_open, &p, root);
    remove_tree(root);
}

/* ---- formulas ---- */

TEST(formulas)
{
    static const struct formula_value values[] = {{"a", 3}, {"ab", 5}, {"nan_event", NAN}};
    static const struct {
        const char *text;
        double result;
    } good[] = {{"1 + 2 * 3", 7}, {"(1 + 2) * 3", 9},   {"10 - 4 - 3", 3},    {"24 / 4 / 2", 3},
                {"-a + ab", 2},   {"--a", 3},           {" ab*a/ 1e1 ", 1.5}, {"2 * -a", -6},
                {"((((a))))", 3}, {"0.5 * (a + ab)", 4}};
    static const char *const bad[] = {"",  "1 +", "(1",   "1)", "c",  "a b", "1 2",
                                      "*", "a @", "0x10", ".",  "()", "aab", "1..2"};
    double result;
    struct error err;
    for (int k = 0; k < ARRAY_COUNT(good); k++) {
        MUST(formula_evaluate, good[k].text, values, 3, &result);
        if (fabs(result - good[k].result) > 1e-12)
            fail_msg("%s is %g", good[k].text, result);
    }
    for (int k = 0; k < ARRAY_COUNT(bad); k++)
        if (formula_evaluate(bad[k], values, 3, &result, &err) != STATUS_FAILED ||
            !strstr(err.message, "column"))
            fail_msg("\"%s\" is accepted", bad[k]);
    MUST(formula_evaluate, "1 / (a - 3)", values, 3, &result);
    assert_true(isnan(result));
    MUST(formula_evaluate, "a + nan_event", values, 3, &result);
    assert_true(isnan(result));
    char deep[3000];
    memset(deep, '(', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';
    assert_int_equal(formula_evaluate(deep, values, 3, &result, &err), STATUS_FAILED);
    memset(deep, '-', sizeof(deep) - 1);
    assert_int_equal(formula_evaluate(deep, values, 3, &result, &err), STATUS_FAILED);
}

/* ---- groups ---- */

TEST(every_group_file_is_good)
{
    struct arena arena = {0};
    struct group group;
    int count = 0;
    for (const struct embedded *file = NULL; (file = embedded_next("profilers/groups/", file));
         count++)
        MUST(group_read, file->path, file->text, file->size, &arena, &group);
    assert_true(count >= 8);
    arena_release(&arena);
}

static enum status read_text(struct arena *arena, const char *text, struct group *group,
                             struct error *err)
{
    return group_read("g.toml", text, strlen(text), arena, group, err);
}

#define EVENT  "[[event]]\nid = \"a\"\nname = \"x::A\"\n"
#define CHIP   "summary = \"s\"\nchips = [\"GH100\"]\n"
#define RANGES "method = \"ranges\"\n"
#define METRIC "[[metric]]\nname = \"m\"\nunit = \"1\"\nformula = \"a * 2\"\n"

TEST(bad_groups_are_refused)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {EVENT METRIC, "summary"},
        {"summary = \"s\"\n" EVENT, "metric"},
        {"summary = \"s\"\n" METRIC, "no event has this id"},
        {"summary = \"s\"\nvendor = \"v\"\n" EVENT METRIC, "family"},
        {"summary = \"s\"\nfamily = 6\n" EVENT METRIC, "vendor"},
        {"summary = \"s\"\nvendor = \"v\"\nfamily = 6\nmodels = [1]\n" EVENT METRIC, "models"},
        {"summary = \"s\"\n" EVENT EVENT METRIC, "taken"},
        {"summary = \"s\"\nsummry = \"s\"\n" EVENT METRIC, "summry"},
        {"summary = \"s\"\nsystem_wide = 1\n" EVENT METRIC, "true or false"},
        {"summary = \"s\"\n" EVENT METRIC "missing = \"why\"\n", "needs a formula"},
        {"summary = \"s\"\nevent = 3\n" METRIC, "[[...]]"},
        {"summary = \"s\"\npasses = 1\n" EVENT METRIC, "needs chips"},
        {CHIP EVENT METRIC, "method"},
        {CHIP "method = \"all\"\n" EVENT METRIC, "\"ranges\" or \"samples\""},
        {CHIP RANGES EVENT METRIC, "passes"},
        {CHIP RANGES "passes = 0\n" EVENT METRIC, "0 without events"},
        {CHIP RANGES "passes = 65\n" EVENT METRIC, "from 0 to 64"},
        {CHIP RANGES "passes = 1\nvendor = \"v\"\nfamily = 1\nmodels = [1, 2]\n" EVENT METRIC,
         "not for both"},
        {CHIP RANGES "passes = 1\nsteps = 1\n" EVENT METRIC, "true or false"},
        {CHIP RANGES "passes = 1\nzero_when = \"a\"\n" EVENT METRIC, "zero_when: "},
        {CHIP RANGES "passes = 1\n[[event]]\nid = \"halves\"\nname = \"x\"\n" METRIC, "taken"},
        {CHIP RANGES "passes = 1\nuses = [1]\n" EVENT METRIC, "names in quotes"},
        {CHIP RANGES "passes = 1\nuses = []\n" EVENT METRIC, "list of names"},
    };
    struct arena arena = {0};
    struct error err;
    struct group group;
    for (int k = 0; k < ARRAY_COUNT(bad); k++) {
        if (read_text(&arena, bad[k].text, &group, &err) == STATUS_OK)
            fail_msg("accepted: %s", bad[k].text);
        if (!strstr(err.message, bad[k].message) || strncmp(err.message, "g.toml:", 7) != 0)
            fail_msg("\"%s\" does not say %s", err.message, bad[k].message);
    }
    arena_release(&arena);
}

TEST(groups_match_their_cpus)
{
    struct cpu_identity genoa, arm;
    cpu_identity_parse("processor : 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\n"
                       "model\t\t: 17\nmodel name\t: AMD EPYC 9\n",
                       &genoa);
    assert_string_equal(genoa.vendor, "AuthenticAMD");
    assert_true(genoa.family == 25 && genoa.model == 17);
    cpu_identity_parse("processor\t: 0\nCPU part\t: 0xd40\n", &arm);
    assert_true(arm.vendor[0] == '\0' && arm.family == -1);
    struct group zen4 = {
        .vendor = "AuthenticAMD", .family = 25, .models = {16, 31, 96, 127}, .model_count = 4};
    struct group any = {.vendor = NULL};
    assert_true(group_matches(&zen4, &genoa) && group_matches(&any, &arm));
    genoa.model = 97;
    assert_true(group_matches(&zen4, &genoa));
    genoa.model = 40;
    assert_false(group_matches(&zen4, &genoa));
    assert_false(group_matches(&zen4, &arm));
}

/* ---- counting, with a library that does what the test wants ---- */

struct counters_set {
    int count;
    bool system_wide;
};

static struct counters_set *fake_open(const char *const *events, int count, bool system_wide,
                                      char (*reasons)[COUNTERS_REASON])
{
    struct counters_set *set = calloc(1, sizeof(*set));
    assert_non_null(set);
    set->count = count;
    set->system_wide = system_wide;
    for (int k = 0; k < count; k++)
        snprintf(reasons[k], COUNTERS_REASON, "%s",
                 strstr(events[k], "BROKEN") ? "x::BROKEN: no such counter" : "");
    return set;
}

static bool fake_start(struct counters_set *set, char *reason)
{
    (void)set;
    (void)reason;
    return true;
}

static bool fake_stop(struct counters_set *set, double *values, char *reason)
{
    (void)reason;
    for (int k = 0; k < set->count; k++)
        values[k] = 600 * (k + 1);
    return true;
}

static void fake_close(struct counters_set *set)
{
    free(set);
}

static const struct counters_backend fake = {COUNTERS_ABI, fake_open, fake_start, fake_stop,
                                             fake_close};

TEST(counting_makes_metrics)
{
    struct group groups[] = {
        {.file = "broken",
         .events = {{"b", "x::BROKEN"}},
         .event_count = 1,
         .metrics = {{"flops", "1", "b", NULL}, {"other", "1", NULL, "cannot"}},
         .metric_count = 2},
        {.file = "half",
         .events = {{"a", "x::A"}, {"b", "x::BROKEN"}, {"c", "x::C"}},
         .event_count = 3,
         .metrics = {{"cycles", "1", "a + c", NULL},
                     {"instructions", "1", "a + b", NULL},
                     {"ratio", "1", "a / (a - a)", NULL}},
         .metric_count = 3},
        {.file = "elsewhere",
         .vendor = "Elbrus",
         .events = {{"a", "x::A"}},
         .event_count = 1,
         .metrics = {{"dram_read_bytes", "B", "a", NULL}},
         .metric_count = 1},
    };
    struct counting_setup setup = {&fake, groups, 3, {"GenuineIntel", 6, 143}, 0};
    struct profiler_metric metrics[PROFILER_METRICS_MAX];
    struct counting *c;
    MUST(counting_open, &setup, &c);
    assert_int_equal(counting_passes(c), 1); /* only "half" has something to count */
    int count = counting_read(c, metrics);
    assert_string_equal(metric_of(metrics, count, "cycles")->reason, "nothing was executed");
    for (int k = 0; k < 2; k++) {
        MUST(counting_begin, c, 0);
        MUST(counting_end, c, 0, 3);
    }
    count = counting_read(c, metrics);
    assert_true(metric_of(metrics, count, "cycles")->value == 2 * (600 + 1800) / 6.0);
    assert_string_equal(metric_of(metrics, count, "cycles")->formula,
                        "a + c; a = x::A; b = x::BROKEN; c = x::C");
    static const struct {
        const char *name, *reason;
    } without[] = {{"instructions", "no such counter"}, {"flops", "no such counter"},
                   {"ratio", "divides by zero"},        {"other", "cannot"},
                   {"dram_read_bytes", "family 6"},     {"dram_write_bytes", "family 6"}};
    for (int k = 0; k < ARRAY_COUNT(without); k++) {
        const struct profiler_metric *m = metric_of(metrics, count, without[k].name);
        if (!m || !isnan(m->value) || !strstr(m->reason, without[k].reason))
            fail_msg("%s: \"%s\"", without[k].name, m ? m->reason : "not there");
    }
    counting_close(c);
}

/* The machine's own traffic, seen while ridge slept, is subtracted by time. */
TEST(idle_is_subtracted)
{
    struct group group = {.file = "wide",
                          .system_wide = true,
                          .events = {{"a", "x::A"}},
                          .event_count = 1,
                          .metrics = {{"dram_read_bytes", "B", "a", NULL}},
                          .metric_count = 1};
    struct counting_setup setup = {&fake, &group, 1, {"", -1, -1}, 0.2};
    struct profiler_metric metrics[PROFILER_METRICS_MAX];
    struct counting *c;
    double seconds = 0.05; /* a quarter of the idle time: 600 - 150 remain, less with delays */
    MUST(counting_open, &setup, &c);
    MUST(counting_begin, c, 0);
    burn(&seconds, 0, 0);
    MUST(counting_end, c, 0, 1);
    int count = counting_read(c, metrics);
    const struct profiler_metric *m = metric_of(metrics, count, "dram_read_bytes");
    assert_true(m->value < 470);
    assert_non_null(strstr(m->formula, "idle rate subtracted"));
    counting_close(c);
}
