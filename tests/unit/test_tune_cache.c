/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tuner remembers is of the kernels that it tried: a changed one is tried anew. This
 * program has a kernel_code() of its own, as one that was built from other kernels has. */
#define _GNU_SOURCE

#include <stdio.h>
#include <string.h>

#include "base/system/file.h"
#include "base/system/plugin_files.h"
#include "engine/compile/compile.h"
#include "engine/compile/stages.h"
#include "engine/compile/trial.h"
#include "engine/run/provider.h"
#include "tests/lib/noise.h"
#include "tests/lib/sample_plugin.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"
#include "tests/lib/unit/graphs.h"

enum { POISON_NS = 123456789, BUILDS = 40 };

static const char *code = "1111111111111111";
const char *kernel_code(void)
{
    return code;
}

/* Compiles one Relu; the time of its winner, measured or remembered. */
static double winner_ns(bool quick, int64_t size)
{
    struct exe *exe = NULL;
    struct graph *g = graph_new("relu");
    double ns = 0;
    int x = noise_input(g, "x", shape_of(size));
    graph_output(g, graph_node(g, "Relu", NULL, INPUTS(x), NO_ATTRS));
    struct exe_options options = {.threads = 1,
                                  .isa = isa_detect(),
                                  .only_variant = NONE,
                                  .quick_tune = quick,
                                  .providers = "native",
                                  .cache = test_file};
    MUST(exe_new, g, &options, &exe);
    struct exe_step step = exe_step_at(exe, 0);
    for (int k = 0; k < step.candidate_count; k++)
        ns = step.candidates[k].chosen ? step.candidates[k].time_ns : ns;
    exe_graph_free(exe, g);
    return ns;
}

/* What is remembered now carries a time that nobody would measure. */
static void poison(void)
{
    struct tune_cache cache;
    tune_cache_load(&cache, test_file);
    assert_true(cache.count > 0);
    for (int k = 0; k < cache.count; k++)
        cache.entries[k].time_ns = POISON_NS;
    cache.dirty = true;
    tune_cache_save(&cache, test_file);
    tune_cache_release(&cache);
}

static bool was_remembered(bool quick)
{
    double ns = winner_ns(quick, 1 << 12);
    return ns > POISON_NS - 1 && ns < POISON_NS + 1;
}

TEST(a_changed_kernel_is_tried_anew)
{
    static const char *const codes[2][2] = {{"1111111111111111", "2222222222222222"},
                                            {"3333333333333333", "4444444444444444"}};
    for (int quick = 0; quick <= 1; quick++) {
        code = codes[quick][0];
        winner_ns(quick, 1 << 12);
        poison();
        assert_true(was_remembered(quick));
        code = codes[quick][1];
        assert_false(was_remembered(quick));
    }
}

TEST(programs_that_take_turns_do_not_fight)
{
    code = "1111111111111111";
    winner_ns(false, 1 << 12);
    code = "2222222222222222";
    winner_ns(false, 1 << 12);
    poison();
    for (int turn = 0; turn < 3; turn++) {
        code = "1111111111111111";
        assert_true(was_remembered(false));
        code = "2222222222222222";
        assert_true(was_remembered(false));
    }
}

static long file_size(void)
{
    FILE *file = fopen(test_file, "r");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    fclose(file);
    return size;
}

/* A program that is built again and again leaves winners behind, but not for ever. */
TEST(old_builds_are_forgotten)
{
    long full = 0;
    for (uint64_t build = 1; build <= BUILDS; build++) {
        struct tune_cache cache;
        tune_cache_load(&cache, test_file);
        cache.build = build;
        for (uint64_t k = 0; k < 100; k++) {
            struct tune_entry entry = {
                .key = build << 32 | k, .kernel = "some_kernel", .variant = 1};
            tune_cache_put(&cache, &entry);
        }
        tune_cache_save(&cache, test_file);
        tune_cache_release(&cache);
        full = build == TUNE_BUILDS_MAX ? file_size() : full;
    }
    assert_true(file_size() < full + full / 10);
    struct tune_cache cache;
    tune_cache_load(&cache, test_file);
    assert_int_equal(cache.count, TUNE_BUILDS_MAX * 100);
    assert_non_null(tune_cache_find(&cache, (uint64_t)BUILDS << 32 | 99));
    assert_null(tune_cache_find(&cache, (uint64_t)1 << 32));
    tune_cache_release(&cache);
}

TEST(files_of_earlier_versions_are_read)
{
    write_file(test_file, "00000000000000ab old_kernel 3 1500\nnonsense\n# half\n00ff\n");
    struct tune_cache cache;
    tune_cache_load(&cache, test_file);
    const struct tune_entry *entry = tune_cache_find(&cache, 0xab);
    assert_int_equal(cache.count, 1);
    assert_true(entry && entry->variant == 3 && strcmp(entry->kernel, "old_kernel") == 0);
    tune_cache_release(&cache);
}

/* One trial between a native kernel and a distrusted one, which takes `ns`. */
static void hold_trial(const struct kernel *kernel, double ns)
{
    static const struct kernel native = {.name = "native", .provider = "native"};
    struct candidate list[] = {{.kernel = &native, .time_ns = 100},
                               {.kernel = kernel, .time_ns = ns}};
    struct step step = {.candidates = list, .candidate_count = 2};
    struct tune_cache cache;
    tune_cache_load(&cache, test_file);
    struct trial trial = {.step = &step, .cache = &cache, .operator_key = 7};
    record_outcome(&trial, &list[ns < 100]);
    tune_cache_save(&cache, test_file);
    tune_cache_release(&cache);
}

static bool is_hopeless(const struct kernel *kernel, uint64_t operator_key)
{
    struct tune_cache cache;
    tune_cache_load(&cache, test_file);
    struct trial trial = {.cache = &cache, .operator_key = operator_key};
    bool hopeless = record_is_hopeless(&trial, kernel);
    tune_cache_release(&cache);
    return hopeless;
}

TEST(three_clear_losses_in_a_row_are_enough)
{
    static const struct kernel kernel = {
        .name = "child_first", .provider = "native", .distrusted = true};
    for (int k = 0; k < 2; k++)
        hold_trial(&kernel, 200);
    hold_trial(&kernel, 120); /* lost, but not clearly */
    for (int k = 0; k < 3; k++) {
        assert_false(is_hopeless(&kernel, 7));
        hold_trial(&kernel, 200);
    }
    assert_true(is_hopeless(&kernel, 7));
    assert_false(is_hopeless(&kernel, 8));
    hold_trial(&kernel, 50);
    assert_false(is_hopeless(&kernel, 7));
}

/* ---- plug-ins ---- */

static uint64_t code_of(const struct file *file, size_t size, size_t changed, const char *copy)
{
    FILE *out = fopen(copy, "wb");
    assert_non_null(out);
    for (size_t k = 0; k < size; k++)
        fputc(k >= file->size ? 'x'
              : k == changed  ? ((const char *)file->data)[k] ^ 1
                              : ((const char *)file->data)[k],
              out);
    assert_int_equal(fclose(out), 0);
    return plugin_code(copy);
}

TEST(a_plugins_code_counts_and_what_is_behind_it_does_not)
{
    struct file file;
    char copy[80];
    snprintf(copy, sizeof(copy), "%s.so", test_file);
    MUST(file_map, sample_plugin_path(), &file);
    const char *name = memmem(file.data, file.size, "sample_relu", strlen("sample_relu"));
    assert_non_null(name);
    uint64_t same = plugin_code(sample_plugin_path());
    assert_true(same != 0);
    assert_true(code_of(&file, file.size, SIZE_MAX, copy) == same);
    assert_true(code_of(&file, file.size + 5000, SIZE_MAX, copy) == same);
    assert_true(code_of(&file, file.size, (size_t)(name - (const char *)file.data), copy) != same);
    code_of(&file, 100, SIZE_MAX, copy); /* cut off */
    file_unmap(&file);
    remove(copy);
    assert_true(plugin_code(copy) == 0);
}

TEST(identities_differ)
{
    code = "1111111111111111";
    uint64_t one = provider_identity("native"), all = providers_identity();
    code = "2222222222222222";
    assert_true(provider_identity("native") != one);
    assert_true(providers_identity() != all);
    assert_true(provider_identity("reference") == provider_identity("reference"));
}

const struct unit_fixture unit_fixture = {.before_each = test_file_open,
                                          .after_each = test_file_remove};
