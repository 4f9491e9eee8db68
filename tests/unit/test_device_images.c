/* SPDX-License-Identifier: Apache-2.0
 * Where images lie on a device (engine/compile/images.c), on the host's runtime, whose clock moves
 * by as much for every command: the executable with fewer steps is the faster. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "engine/compile/compile.h"
#include "tests/lib/host_gpu.h"
#include "tests/lib/noise.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/files.h"
#include "tests/lib/unit/graphs.h"
#include "workloads/lib/layers.h"

enum { COMMAND_NS = 1000000 };

static int begin(void **state)
{
    host_gpu()->clock(COMMAND_NS);
    return test_file_open(state);
}

static int end(void **state)
{
    host_gpu()->clock(0);
    return test_file_remove(state);
}

static const struct window2d window = {.kernel = 2, .stride = 1};

/* Plain: two poolings. Channels-last there is a Reorder before them, and one after. */
static struct graph *pools(void)
{
    struct graph *g = graph_new("pools");
    int x = noise_input(g, "x", shape_of(2, 8, 6, 5));
    graph_output(g, average_pool(g, max_pool(g, x, window), window));
    return g;
}

/* Channels-last a pooling, which reads the few channels of an input as they are, and whose result
 * is the transposed one already. Plain: both. */
static struct graph *pool_transposed(void)
{
    static const int64_t to_last[] = {0, 2, 3, 1};
    struct graph *g = graph_new("pool_transposed");
    int x = noise_input(g, "x", shape_of(2, 3, 6, 5));
    graph_output(g, transpose(g, max_pool(g, x, window), 4, to_last));
    return g;
}

static struct exe_options tuned(void)
{
    struct exe_options options = gpu_options("cuda");
    options.no_tune = false;
    options.providers = "cuda";
    return options;
}

/* Compiles, and frees: how images lie. */
static enum images images_of(struct graph *g, const struct exe_options *options)
{
    struct exe *exe = compiled_owned(g, options);
    enum images images = exe_options(exe)->images;
    exe_free(exe);
    return images;
}

TEST(exact_images_lie_where_the_network_is_faster)
{
    struct exe_options options = tuned();
    struct exe *exe = compiled_owned(pools(), &options);
    assert_int_equal(exe_options(exe)->images, IMAGES_PLAIN);
    assert_int_equal(exe_step_count(exe), 2);
    exe_free(exe);
    exe = compiled_owned(pool_transposed(), &options);
    assert_int_equal(exe_options(exe)->images, IMAGES_LAST);
    assert_int_equal(exe_step_count(exe), 1);
    exe_free(exe);
    options.quick_tune = true;
    assert_int_equal(images_of(pools(), &options), IMAGES_PLAIN);
}

TEST(both_ways_give_the_same_result)
{
    struct exe_options options = gpu_options("cuda");
    const float *results[2];
    struct exe *both[2];
    for (int k = 0; k < 2; k++) {
        options.images = k ? IMAGES_PLAIN : IMAGES_LAST;
        both[k] = compiled_owned(pools(), &options);
        assert_int_equal(exe_step_count(both[k]), k ? 2 : 4);
        exe_run(both[k]);
        results[k] = exe_output(both[k], 0);
        assert_int_equal(exe_status(both[k], NULL), STATUS_OK);
    }
    for (int e = 0; e < 2 * 8 * 4 * 3; e++)
        assert_true(results[0][e] == results[1][e] && results[0][e] != 0);
    exe_free(both[0]);
    exe_free(both[1]);
}

TEST(rounded_images_are_channels_last)
{
    static const enum precision precisions[] = {PRECISION_TF32, PRECISION_BF16, PRECISION_F16};
    struct exe_options options = tuned();
    for (int k = 0; k < ARRAY_COUNT(precisions); k++) {
        options.precision = precisions[k];
        assert_int_equal(images_of(pools(), &options), IMAGES_LAST);
    }
    options = (struct exe_options){.threads = 1, .isa = isa_detect(), .only_variant = NONE};
    assert_int_equal(images_of(pools(), &options), IMAGES_LAST); /* on the CPU */
}

/* The provider "actors" has a kernel of MaxPool, as a library has. */
TEST(untimed_images_are_plain_where_a_library_computes)
{
    struct exe_options options = gpu_options("cuda");
    options.providers = "cuda";
    assert_int_equal(images_of(pools(), &options), IMAGES_LAST);
    options.providers = "cuda,actors";
    assert_int_equal(images_of(pools(), &options), IMAGES_PLAIN);
    options.precision = PRECISION_TF32;
    assert_int_equal(images_of(pools(), &options), IMAGES_LAST);
    options.precision = PRECISION_F32;
    options.only = "cuda_pool"; /* tests look at kernels in the layout that they ask for */
    assert_int_equal(images_of(pools(), &options), IMAGES_LAST);
}

/* ---- what is remembered ---- */

static void put_instead(const char *word, const char *other)
{
    struct file text;
    struct error err = {0};
    assert_int_equal(file_map(test_file, &text, &err), STATUS_OK);
    char *copy = calloc(1, text.size + 1);
    assert_non_null(copy);
    memcpy(copy, text.data, text.size);
    file_unmap(&text);
    char *at = strstr(copy, word);
    if (!at)
        fail_msg("no %s in the cache:\n%s", word, copy);
    FILE *file = fopen(test_file, "w");
    assert_non_null(file);
    fprintf(file, "%.*s%s%s", (int)(at - copy), copy, other, at + strlen(word));
    fclose(file);
    free(copy);
}

TEST(what_was_faster_is_remembered)
{
    struct exe_options options = tuned();
    options.cache = test_file;
    assert_int_equal(images_of(pools(), &options), IMAGES_PLAIN);
    put_instead(" images_plain ", " images_last ");
    assert_int_equal(images_of(pools(), &options), IMAGES_LAST);
    assert_int_equal(images_of(pool_transposed(), &options), IMAGES_LAST); /* is not that one */
    put_instead(" images_last ", " images_plain ");
    options.retune = true;
    assert_int_equal(images_of(pools(), &options), IMAGES_PLAIN);
    put_instead(" images_plain ", " images_last ");
    options.retune = false;
    assert_int_equal(images_of(pools(), &options), IMAGES_LAST);
}

/* ---- failures ---- */

/* The second executable cannot be had: at every allocation from the first of its own on. */
TEST(where_the_other_has_no_room_the_first_is_kept)
{
    enum { NO_MEMORY = 2 };
    struct exe_options options = tuned();
    struct graph *g = pools();
    long before = gpu_live();
    int calls = 0, kept = 0, ended = 0;
    for (int at = 0; at <= calls; at++) { /* 0: there is room */
        struct error err = {0};
        struct exe *exe = NULL;
        host_gpu()->script("malloc", at, NO_MEMORY);
        enum status status = exe_new(g, &options, &exe, &err);
        calls = at == 0 ? host_gpu()->calls() : calls;
        host_gpu()->script("", 0, 0);
        ended += status != STATUS_OK;
        kept += status == STATUS_OK && exe_options(exe)->images == IMAGES_LAST;
        if (status == STATUS_OK)
            exe_run(exe);
        exe_free(exe);
        assert_int_equal(gpu_live(), before);
    }
    graph_free(g);
    assert_true(kept > 0 && ended > 0);
}

static int start(int argc, char **argv)
{
    plugins_of_build(argv[0], "gpu/actors", "actors");
    return host_gpu_start(argc, argv);
}

const struct unit_fixture unit_fixture = {.start = start, .before_each = begin, .after_each = end};
