/* SPDX-License-Identifier: Apache-2.0
 *
 * Trials in a forked child, on the sample plug-in's kernels that misbehave, and on providers with
 * threads of their own after these have run in the parent. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/system/clock.h"
#include "base/system/last_words.h"
#include "engine/graph/op.h"
#include "engine/run/plugin.h"
#include "engine/run/probe.h"
#include "tests/lib/sample_plugin.h"
#include "tests/lib/unit.h"

/* ThreadSanitizer does not bear a new thread in the child of a program with threads. */
#if defined(__SANITIZE_THREAD__)
enum { FORK_WITH_THREADS = 0 };
#else
enum { FORK_WITH_THREADS = 1 };
#endif

enum { COUNT = 100000, DEADLINE_MS = 20000, SIDE = 192 };

/* A Relu on a vector. */
struct subject {
    struct graph *g;
    struct desc in, out;
    struct kernel_query q;
    float x[COUNT];
    double want[COUNT];
    const void *ins[1];
    const double *wants[1];
    struct probe_data data;
};

static const struct kernel *kernel(const char *name)
{
    for (int k = 0; k < plugin_kernel_count(); k++)
        if (strcmp(plugin_kernel_at(k)->name, name) == 0)
            return plugin_kernel_at(k);
    return NULL;
}

static struct subject *subject_new(int threads)
{
    struct subject *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    s->g = graph_new("relu");
    int x = graph_input(s->g, "x", DTYPE_F32, shape_of(COUNT), (struct fill){0});
    graph_output(s->g, graph_node(s->g, "Relu", NULL, INPUTS(x), NO_ATTRS));
    assert_int_equal(graph_check(s->g, NULL), STATUS_OK);
    s->in = s->out = desc_dense(DTYPE_F32, &s->g->values[x].shape, LAYOUT_PLAIN);
    s->q = (struct kernel_query){.node = &s->g->nodes[0],
                                 .in_count = 1,
                                 .out_count = 1,
                                 .in = &s->in,
                                 .out = &s->out,
                                 .threads = threads};
    for (int k = 0; k < COUNT; k++) {
        s->x[k] = (float)(k % 201 - 100);
        s->want[k] = s->x[k] < 0 ? 0 : (double)s->x[k];
    }
    s->x[7] = NAN;
    s->want[7] = (double)NAN;
    s->ins[0] = s->x;
    s->wants[0] = s->want;
    s->data = (struct probe_data){.in = s->ins, .expected = s->wants, .tolerance = 1e-5};
    return s;
}

static void subject_free(struct subject *s)
{
    graph_free(s->g);
    free(s);
}

/* The sample's kernel `name` comes back UNSUPPORTED with `reason` in the message. */
static void expect_refusal(const char *name, int deadline_ms, const char *reason)
{
    struct subject *s = subject_new(2);
    struct error why = {0};
    assert_non_null(kernel(name));
    enum status status = probe_kernel(kernel(name), &s->q, 0, &s->data, deadline_ms, &why);
    assert_int_equal(status, STATUS_UNSUPPORTED);
    if (!strstr(why.message, reason))
        fail_msg("\"%s\" does not say \"%s\"", why.message, reason);
    subject_free(s);
}

TEST(a_right_kernel_passes)
{
    for (int threads = 1; threads <= 3; threads++) {
        struct subject *s = subject_new(threads);
        struct error why = {0};
        if (probe_kernel(kernel("sample_relu"), &s->q, 0, &s->data, DEADLINE_MS, &why))
            fail_msg("%s", why.message);
        subject_free(s);
    }
}

static void nothing(void *context, int64_t tile, int thread)
{
    (void)context;
    (void)tile;
    (void)thread;
}

/* Idle, as probe_kernel wants it: a thread that is still starting may hold locks of the C library
 * or of a sanitizer. */
static struct pool *idle_pool(void)
{
    struct pool *pool;
    assert_int_equal(pool_new(2, &pool, NULL), STATUS_OK);
    pool_run(pool, 64, nothing, NULL);
    pool_park(pool);
    return pool;
}

/* The caller's pool pins it; the child must not wait for its workers. */
TEST(it_passes_beside_a_pool)
{
    if (!FORK_WITH_THREADS)
        skip();
    struct pool *pool = idle_pool();
    a_right_kernel_passes(state);
    pool_free(pool);
}

TEST(a_crash_is_named)
{
    expect_refusal("sample_crash", DEADLINE_MS, "sample_crash died with SIGSEGV in launch");
}

TEST(a_hang_ends_at_the_deadline)
{
    uint64_t start = clock_now_ns();
    expect_refusal("sample_hang", 300, "sample_hang did not end within 300 ms");
    double seconds = (double)(clock_now_ns() - start) * 1e-9;
    assert_true(seconds >= 0.3 && seconds < 10);
}

TEST(wrong_numbers_are_found)
{
    expect_refusal("sample_wrong", DEADLINE_MS, "wrong: relative error 3.1e-02 > 1.0e-05");
}

TEST(a_write_past_the_end_is_found)
{
    expect_refusal("sample_bounds", DEADLINE_MS, "wrote outside output 0");
}

/* What would be kept of a process that has written this. */
static void expect_last_words(const char *written, const char *kept)
{
    char text[64];
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_true(fputs(written, file) >= 0 && fflush(file) == 0);
    last_words(fileno(file), text, sizeof(text));
    fclose(file);
    assert_string_equal(text, kept);
}

TEST(last_words_are_kept)
{
    expect_last_words("starting\nno space left\n", "no space left");
    expect_last_words("no space left \r\n\n-------------\n * * *\n", "no space left");
    expect_last_words("kein Platz: \xc3\xbc\n---", "kein Platz: \xc3\xbc");
    expect_last_words("-----\n\n", "");
    expect_last_words("", "");
    expect_refusal("sample_exit", DEADLINE_MS,
                   "sample_exit ended the process with code 3 in launch: licence expired");
}

TEST(a_slow_kernel_is_right)
{
    struct subject *s = subject_new(1);
    assert_int_equal(probe_kernel(kernel("sample_slow"), &s->q, 0, &s->data, DEADLINE_MS, NULL),
                     STATUS_OK);
    subject_free(s);
}

TEST(other_devices_are_not_tried)
{
    struct subject *s = subject_new(1);
    struct kernel on_device = *kernel("sample_relu");
    struct error why = {0};
    on_device.device = "cuda";
    assert_int_equal(probe_kernel(&on_device, &s->q, 0, &s->data, DEADLINE_MS, &why),
                     STATUS_FAILED);
    assert_non_null(strstr(why.message, "cuda"));
    subject_free(s);
}

TEST(no_child_is_left)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* ---- providers with threads of their own ---- */

struct product {
    struct graph *g;
    struct desc in[2], out;
    struct kernel_query q;
    float a[SIDE * SIDE], b[SIDE * SIDE], c[SIDE * SIDE];
    double want[SIDE * SIDE];
};

static struct product *product_new(void)
{
    struct product *p = calloc(1, sizeof(*p));
    assert_non_null(p);
    p->g = graph_new("matmul");
    int a = graph_input(p->g, "a", DTYPE_F32, shape_of(SIDE, SIDE), (struct fill){0});
    int b = graph_input(p->g, "b", DTYPE_F32, shape_of(SIDE, SIDE), (struct fill){0});
    graph_output(p->g, graph_node(p->g, "MatMul", NULL, INPUTS(a, b), NO_ATTRS));
    assert_int_equal(graph_check(p->g, NULL), STATUS_OK);
    p->in[0] = p->in[1] = p->out = desc_dense(DTYPE_F32, &p->g->values[a].shape, LAYOUT_PLAIN);
    p->q = (struct kernel_query){.node = &p->g->nodes[0],
                                 .in_count = 2,
                                 .out_count = 1,
                                 .in = p->in,
                                 .out = &p->out,
                                 .threads = 2};
    for (int k = 0; k < SIDE * SIDE; k++) {
        p->a[k] = (float)(k % 17 - 8);
        p->b[k] = (float)(k % 13 - 6);
    }
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++)
            for (int k = 0; k < SIDE; k++)
                p->want[i * SIDE + j] += (double)p->a[i * SIDE + k] * (double)p->b[k * SIDE + j];
    return p;
}

static enum status probe_product(const struct kernel *kernel, struct product *p, struct error *why)
{
    const void *ins[] = {p->a, p->b};
    const double *wants[] = {p->want};
    struct probe_data data = {.in = ins, .expected = wants, .tolerance = 1e-5};
    return probe_kernel(kernel, &p->q, 0, &data, DEADLINE_MS, why);
}

static double run_product(const struct kernel *kernel, struct product *p)
{
    struct kernel_state *kernel_state;
    size_t bytes;
    assert_int_equal(kernel_plan(kernel, &p->q, 0, &kernel_state, NULL), STATUS_OK);
    size_t scratch = kernel_workspace(kernel, kernel_state);
    void *workspace = aligned_alloc(ALIGN_TENSOR, (scratch / ALIGN_TENSOR + 1) * ALIGN_TENSOR);
    const void *ins[] = {p->a, p->b};
    void *outs[] = {p->c};
    struct kernel_args args = {.in = ins, .out = outs, .workspace = workspace};
    double worst = 0;
    assert_int_equal(kernel_prepare(kernel, &p->q, kernel_state, &bytes, NULL), STATUS_OK);
    kernel->launch(kernel_state, &args);
    kernel_release(kernel, kernel_state);
    free(workspace);
    for (int k = 0; k < SIDE * SIDE; k++) {
        double error = fabs((double)p->c[k] - p->want[k]);
        worst = error > worst ? error : worst; /* fmax crashes gcc 12.2 for aarch64 */
    }
    return worst;
}

/* The parent's OpenMP or pthread workers do not exist in the child: it must start its own, and the
 * parent must still have (or restart) its own afterwards. */
static void try_provider(const char *name)
{
    if (!kernel(name) || !FORK_WITH_THREADS)
        skip();
    struct product *p = product_new();
    struct error why = {0};
    struct pool *pool = idle_pool();
    for (int round = 0; round < 3; round++) {
        if (probe_product(kernel(name), p, &why))
            fail_msg("round %d: %s", round, why.message);
        assert_true(run_product(kernel(name), p) < 0.5); /* sums of integers below 10^4 */
    }
    pool_free(pool);
    graph_free(p->g);
    free(p);
}

TEST(onednn_survives_forks)
{
    try_provider("onednn_matmul");
}

TEST(openblas_survives_forks)
{
    try_provider("openblas_matmul");
}

static int load(void **state)
{
    (void)state;
    char folder[256], path[4096];
    const char *others = getenv("RIDGE_PLUGIN_PATH");
    folder_with_sample("sample.so", folder, sizeof(folder));
    snprintf(path, sizeof(path), "%s:%s", folder, others ? others : "");
    setenv("RIDGE_PLUGIN_PATH", path, 1);
    setenv("RIDGE_SAMPLE", "crash,hang,wrong,bounds,exit,slow", 1);
    setenv("RIDGE_SAMPLE_DELAY_US", "5000", 1);
    plugins_load(NULL);
    folder_remove(folder);
    return kernel("sample_relu") ? 0 : -1;
}

const struct unit_fixture unit_fixture = {.before_all = load};
