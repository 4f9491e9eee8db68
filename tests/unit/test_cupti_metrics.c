/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of GPU metrics against CUPTI itself, whose host side needs no GPU: every metric of
 * every group exists on every chip that the group names, and takes as many passes as it says. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profilers/lib/group.h"
#include "tests/lib/cupti_fake.h"
#include "tests/lib/unit.h"

struct tables {
    const struct cupti_backend *backend;
    struct cupti *cupti;
    struct arena arena;
    const struct group *groups;
    int count;
};

static struct cupti_wanted wanted_of(const struct group *g, const char *chip, const char **names)
{
    for (int k = 0; k < g->event_count; k++)
        names[k] = g->events[k].name;
    return (struct cupti_wanted){.chip = chip,
                                 .use = g->samples ? CUPTI_SAMPLES : CUPTI_RANGES,
                                 .metrics = names,
                                 .count = g->event_count};
}

static int describe_all(const struct tables *t, const struct group *g, const char *chip)
{
    const char *names[GROUP_EVENTS_MAX];
    char text[256], reason[CUPTI_REASON];
    struct cupti_wanted wanted = wanted_of(g, chip, names);
    for (int e = 0; e < g->event_count; e++) {
        if (!t->backend->describe(t->cupti, &wanted, e, text, sizeof(text), reason))
            fail_msg("%s on %s: %s", g->file, chip, reason);
        assert_true(strlen(text) > 5);
    }
    return g->event_count;
}

TEST(every_metric_exists)
{
    const struct tables *t = *state;
    int metrics = 0, chips = 0;
    for (int k = 0; k < t->count; k++)
        for (int c = 0; c < t->groups[k].chip_count; c++, chips++)
            metrics += describe_all(t, &t->groups[k], t->groups[k].chips[c]);
    print_message("%d metrics of %d groups and chips\n", metrics, chips);
    assert_true(metrics > 500);
}

TEST(passes_are_as_the_tables_say)
{
    const struct tables *t = *state;
    for (int k = 0; k < t->count; k++)
        for (int c = 0; c < t->groups[k].chip_count; c++) {
            const char *names[GROUP_EVENTS_MAX];
            char reason[CUPTI_REASON];
            const struct group *g = &t->groups[k];
            struct cupti_wanted wanted = wanted_of(g, g->chips[c], names);
            if (g->event_count == 0)
                continue;
            struct cupti_config *config = t->backend->config_open(t->cupti, &wanted, reason);
            if (!config)
                fail_msg("%s on %s: %s", g->file, g->chips[c], reason);
            if (t->backend->config_passes(config) != g->passes)
                fail_msg("%s on %s: %d passes, and the file says %d", g->file, g->chips[c],
                         t->backend->config_passes(config), g->passes);
            t->backend->config_close(config);
        }
}

static bool has_group(const struct tables *t, const char *chip, bool samples, const char *metric)
{
    for (int k = 0; k < t->count; k++)
        for (int m = 0; m < t->groups[k].metric_count; m++)
            if (group_is_for_chip(&t->groups[k], chip) && t->groups[k].samples == samples &&
                strcmp(t->groups[k].metrics[m].name, metric) == 0 &&
                t->groups[k].metrics[m].formula)
                return true;
    return false;
}

/* Every discrete GPU that this CUPTI can count on, and no chip that it does not know. */
TEST(every_chip_has_its_groups)
{
    static const char *const without[] = {"GV100", "GV11B", "GA10B", "GB10B", "GB20B"};
    static const char *const metrics[] = {"flops", "dram_read_bytes", "dram_write_bytes",
                                          "l2_bytes", "cycles"};
    const struct tables *t = *state;
    char reason[CUPTI_REASON];
    int count = 0;
    const char *const *chips = t->backend->chips(t->cupti, &count, reason);
    assert_non_null(chips);
    for (int k = 0; k < count; k++) {
        bool left_out = false;
        for (int w = 0; w < ARRAY_COUNT(without); w++)
            left_out |= strcmp(chips[k], without[w]) == 0;
        for (int m = 0; m < ARRAY_COUNT(metrics) && !left_out; m++) {
            if (!has_group(t, chips[k], false, metrics[m]))
                fail_msg("%s: no group counts %s", chips[k], metrics[m]);
            if (m > 0 && !has_group(t, chips[k], true, metrics[m]))
                fail_msg("%s: no group samples %s", chips[k], metrics[m]);
        }
    }
}

TEST(what_cannot_be_is_refused)
{
    const struct tables *t = *state;
    static const struct {
        const char *chip, *metric;
        enum cupti_use use;
        const char *message;
    } bad[] = {
        {"GH100", "dram__bytes_raed.sum", CUPTI_RANGES, "dram__bytes_raed.sum"},
        {"GB202", "dram__bytes_read.sum", CUPTI_RANGES, "dram__bytes_read.sum"},
        {"XX999", "dram__bytes_read.sum", CUPTI_RANGES, "cuptiProfilerHostInitialize"},
        {"GH100", "sm__sass_thread_inst_executed_op_ffma_pred_on.sum", CUPTI_SAMPLES,
         "cuptiProfilerHost"},
    };
    for (int k = 0; k < ARRAY_COUNT(bad); k++) {
        char reason[CUPTI_REASON] = "";
        struct cupti_wanted wanted = {
            .chip = bad[k].chip, .use = bad[k].use, .metrics = &bad[k].metric, .count = 1};
        assert_null(t->backend->config_open(t->cupti, &wanted, reason));
        if (!strstr(reason, bad[k].message))
            fail_msg("\"%s\" does not say %s", reason, bad[k].message);
    }
}

/* More than one pass cannot be sampled. */
TEST(sampling_has_one_pass)
{
    const struct tables *t = *state;
    static const char *const metrics[] = {"dram__bytes_read.sum", "l1tex__t_bytes.sum",
                                          "sm__pipe_tensor_cycles_active.avg",
                                          "sm__inst_executed_pipe_tensor.sum"};
    char reason[CUPTI_REASON] = "";
    struct cupti_wanted wanted = {
        .chip = "GH100", .use = CUPTI_SAMPLES, .metrics = metrics, .count = 4};
    assert_null(t->backend->config_open(t->cupti, &wanted, reason));
    assert_non_null(strstr(reason, "passes are needed"));
}

static struct tables tables;

static int start(int argc, char **argv)
{
    (void)argc, (void)argv;
    char reason[CUPTI_REASON] = "vendors' libraries are switched off";
    const struct cupti_files files = {.cupti = getenv("RIDGE_CUPTI")};
    const char *vendors = getenv("RIDGE_TEST_VENDORS");
    /* Not under sanitizers: the library opens a part of itself in a way that they do not bear. */
    if (!vendors || strcmp(vendors, "0") != 0) {
        tables.backend = cupti_plugin(reason, sizeof(reason));
        tables.cupti = tables.backend ? tables.backend->open(&files, reason) : NULL;
    }
    if (tables.cupti)
        return UNIT_RUN;
    printf("skipped: %s\n", reason);
    return UNIT_SKIP;
}

static int read_tables(void **state)
{
    struct error err;
    *state = &tables;
    return group_read_all(&tables.arena, &tables.groups, &tables.count, &err) == STATUS_OK ? 0 : -1;
}

static int release_tables(void **state)
{
    struct tables *t = *state;
    t->backend->close(t->cupti);
    arena_release(&t->arena);
    return 0;
}

const struct unit_fixture unit_fixture = {
    .start = start, .before_all = read_tables, .after_all = release_tables};
