/* SPDX-License-Identifier: Apache-2.0
 *
 * Every allocation of compiling, tuning and running fails once: the first, then the second, until
 * one pass needs fewer. Whatever fails, the executable is either right or refused as NO_MEMORY, and
 * nothing is left behind. The linker turns the program's calls of the allocator into those of
 * __wrap_malloc and its like (see the Makefile); what the C library allocates for itself does not
 * fail here. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/compile/compile.h"
#include "engine/graph/op.h"
#include "engine/reference/reference.h"
#include "engine/run/exe.h"
#include "engine/run/kernels.h"
#include "tests/lib/noise.h"
#include "tests/lib/subject.h"
#include "tests/lib/unit.h"
#include "workloads/lib/layers.h"
#include "workloads/workload.h"

/* ---- the allocator ---- */

enum { SLOT_BITS = 14, SLOTS = 1 << SLOT_BITS };

/* Calls since ledger_begin, and the blocks of theirs that are not freed yet (open addressing; a
 * freed one leaves a grave). */
static struct {
    pthread_mutex_t lock;
    bool on;
    long calls, fails_at;
    void *blocks[SLOTS];
    int live;
} ledger = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char grave;

static size_t slot_of(const void *block)
{
    return (size_t)((uintptr_t)block >> 4) * 0x9e3779b97f4a7c15u >> (64 - SLOT_BITS);
}

static void remember(void *block)
{
    size_t slot = slot_of(block);
    while (ledger.blocks[slot] && ledger.blocks[slot] != (void *)&grave)
        slot = (slot + 1) % SLOTS;
    ledger.blocks[slot] = block;
    ledger.live++;
}

static void forget(const void *block)
{
    for (size_t slot = slot_of(block); ledger.blocks[slot]; slot = (slot + 1) % SLOTS)
        if (ledger.blocks[slot] == block) {
            ledger.blocks[slot] = &grave;
            ledger.live--;
            return;
        }
}

/* Whether this call is the one that fails. */
static bool fails(void)
{
    pthread_mutex_lock(&ledger.lock);
    bool now = ledger.on && ++ledger.calls == ledger.fails_at;
    pthread_mutex_unlock(&ledger.lock);
    return now;
}

static void *took(void *block)
{
    pthread_mutex_lock(&ledger.lock);
    if (ledger.on && block)
        remember(block);
    pthread_mutex_unlock(&ledger.lock);
    return block;
}

static void *gave(void *block)
{
    pthread_mutex_lock(&ledger.lock);
    if (ledger.on && block)
        forget(block);
    pthread_mutex_unlock(&ledger.lock);
    return block;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
int __real_posix_memalign(void **block, size_t align, size_t size);
void __real_free(void *block);

void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : took(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : took(__real_calloc(count, size));
}

void *__wrap_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size)
{
    return fails() ? NULL : took(__real_realloc(gave(block), size));
}

void *__wrap_aligned_alloc(size_t align, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size)
{
    return fails() ? NULL : took(__real_aligned_alloc(align, size));
}

int __wrap_posix_memalign(void **block, size_t align, size_t size);
int __wrap_posix_memalign(void **block, size_t align, size_t size)
{
    int code = fails() ? ENOMEM : __real_posix_memalign(block, align, size);
    if (code == 0)
        took(*block);
    return code;
}

void __wrap_free(void *block);
void __wrap_free(void *block)
{
    __real_free(gave(block));
}

static void ledger_begin(long fails_at)
{
    memset(ledger.blocks, 0, sizeof(ledger.blocks));
    ledger.calls = ledger.live = 0;
    ledger.fails_at = fails_at;
    ledger.on = true;
}

/* How many blocks were left. */
static int ledger_end(void)
{
    ledger.on = false;
    return ledger.live;
}

/* ---- executables ---- */

struct work {
    const struct graph *g;
    struct exe_options options;
    const struct subject *subject; /* whose results are checked; NULL: those of `want` are due */
    struct ref_tensor want;        /* of output 0 */
};

static enum status check_network(const struct work *w, const struct exe *exe, struct error *err)
{
    const struct value *v = &w->g->values[w->g->outputs[0]];
    struct ref_tensor got;
    TRY(ref_from_data(&got, v->dtype, &v->shape, exe_output(exe, 0), err));
    double error = ref_rel_error(&got, &w->want);
    ref_release(&got);
    return error <= 1e-4 ? STATUS_OK : FAIL(err, STATUS_INVALID, "wrong by %g", error);
}

static enum status check(const struct work *w, const struct exe *exe, struct error *err)
{
    double part = 0;
    if (!w->subject)
        return check_network(w, exe, err);
    for (int k = 0; k < w->g->output_count; k++)
        TRY(subject_check_exe(w->subject, k, exe, &part, err));
    return STATUS_OK;
}

/* One life of an executable, in which allocation `fails_at` fails (0: none). Returns whether there
 * were so many. */
static bool live_once(const struct work *w, long fails_at)
{
    struct error err = {0};
    struct exe *exe;
    ledger_begin(fails_at);
    enum status status = exe_new(w->g, &w->options, &exe, &err);
    if (status == STATUS_OK) {
        exe_run(exe);
        status = exe_status(exe, &err);
    }
    long calls = ledger.calls;
    ledger.on = false; /* what the check itself allocates is not looked at */
    struct error wrong = {0};
    if (status == STATUS_OK && check(w, exe, &wrong) != STATUS_OK)
        fail_msg("%s, allocation %ld: %s", w->g->name, fails_at, wrong.message);
    ledger.on = true;
    exe_free(exe);
    int left = ledger_end();
    if (status != STATUS_OK && (status != STATUS_NO_MEMORY || !err.message[0]))
        fail_msg("%s, allocation %ld: status %d, \"%s\"", w->g->name, fails_at, status,
                 err.message);
    if (left)
        fail_msg("%s, allocation %ld: %d blocks are left; %s", w->g->name, fails_at, left,
                 status == STATUS_OK ? "it was borne" : err.message);
    return fails_at && calls >= fails_at;
}

/* Returns how many allocations there were. The first life makes what a process keeps for ever. */
static long live_through_all(const struct work *w)
{
    long n = 0;
    struct error err;
    struct exe *exe;
    if (exe_new(w->g, &w->options, &exe, &err) != STATUS_OK)
        fail_msg("%s: %s", w->g->name, err.message);
    exe_free(exe);
    live_once(w, 0);
    while (live_once(w, n + 1))
        n++;
    return n;
}

static struct exe_options options_of(bool tuned, struct pool *pool)
{
    return (struct exe_options){.threads = 2,
                                .isa = isa_detect(),
                                .providers = "native",
                                .no_tune = !tuned,
                                .only_variant = NONE,
                                .pool = pool};
}

static long try_network(struct graph *g, bool tuned)
{
    struct ref_tensor outputs[4];
    assert_true(g->output_count <= ARRAY_COUNT(outputs));
    MUST(reference_run, g, NULL, outputs, NULL);
    struct work w = {.g = g, .options = options_of(tuned, NULL), .want = outputs[0]};
    long n = live_through_all(&w);
    for (int k = 0; k < g->output_count; k++)
        ref_release(&outputs[k]);
    return n;
}

/* The first case of the operator, on all its native kernels in all their variants. */
static long try_operator(const struct op *op, struct pool *pool)
{
    struct error err;
    struct subject s = {.op = op, .c = &op->cases[0], .floats = DTYPE_F32};
    if (subject_open(&s, NONE, &err) != STATUS_OK)
        fail_msg("%s/%s: %s", op->name, s.c->name, err.message);
    struct work w = {.g = s.g, .options = options_of(true, pool), .subject = &s};
    long n = live_through_all(&w);
    subject_close(&s);
    return n;
}

/* ---- tests ---- */

TEST(every_operator_bears_it_or_says_so)
{
    struct pool *pool;
    long n = 0;
    assert_int_equal(pool_new(2, &pool, NULL), STATUS_OK);
    for (int k = 0; k < op_count(); k++)
        if (op_at(k)->case_count)
            n += try_operator(op_at(k), pool);
    pool_free(pool);
    assert_true(n > 50L * op_count()); /* otherwise nothing was wrapped */
}

TEST(ncf_bears_it_or_says_so)
{
    struct graph *g;
    MUST(workload_open, "ncf", 4, PRECISION_F32, &g);
    assert_true(try_network(g, false) > 100);
    graph_free(g);
}

/* Sums alone, products of matrices and of elements, and what moves their axes. */
TEST(an_einsum_bears_it_or_says_so)
{
    struct graph *g = graph_new("einsum");
    int x = noise_input(g, "x", shape_of(2, 3, 4, 5)), y = noise_input(g, "y", shape_of(6, 3, 1));
    int z = noise_input(g, "z", shape_of(2, 6, 3));
    graph_output(g, graph_node(g, "Einsum", NULL, INPUTS(x, y, z),
                               ATTRS(attr_string("equation", "bhij,khj,bkh->kbi"))));
    assert_int_equal(graph_check(g, NULL), STATUS_OK);
    assert_true(try_network(g, false) > 100);
    graph_free(g);
}

/* Attention of heads that lie apart, with two masks and zeros for queries without keys; and of one
 * projection whose result is turned. */
TEST(attention_bears_it_or_says_so)
{
    static const int64_t plain[] = {0, 2, 1, 3}, swap[] = {0, 1, 3, 2}, apart[] = {2, 0, 3, 1, 4};
    struct graph *g = graph_new("attention");
    int in[3], zero = graph_const_f32(g, 0);
    for (int i = 0; i < 3; i++) {
        const char *const names[] = {"q", "k", "v"};
        int x = noise_input(g, names[i], shape_of(2, 5, 3, 4));
        in[i] = unary(g, "Tanh", transpose(g, x, 4, plain));
    }
    int scores = binary(g, "MatMul", in[0], transpose(g, in[1], 4, swap));
    scores = add(g, scores, noise_input(g, "mask", shape_of(2, 3, 1, 5)));
    scores = add(g, scores, noise_param(g, "bias", shape_of(5, 5)));
    int p = softmax(g, scores, -1);
    p = graph_node(g, "Where", NULL, INPUTS(unary(g, "IsNaN", p), zero, p), NO_ATTRS);
    graph_output(g, binary(g, "MatMul", p, in[2]));
    int x = noise_input(g, "x", shape_of(2, 5, 36));
    x = transpose(g, reshape(g, x, 5, (const int64_t[]){2, 5, 3, 3, 4}), 5, apart);
    for (int i = 0; i < 3; i++)
        in[i] = gather(g, x, graph_const_i64(g, -1, (const int64_t[]){i}), 0);
    scores = binary(g, "MatMul", in[0], transpose(g, in[1], 4, swap));
    graph_output(g, binary(g, "MatMul", softmax(g, scores, -1), in[2]));
    assert_int_equal(graph_check(g, NULL), STATUS_OK);
    assert_true(try_network(g, false) > 100);
    graph_free(g);
}

/* Branches of a convolution that become one, and a product along an axis that is not the last. */
TEST(merged_weights_bear_it_or_say_so)
{
    static const int64_t back[] = {0, 2, 1};
    struct graph *g = graph_new("merged");
    int x = noise_input(g, "x", shape_of(1, 8, 9, 8));
    int wide = conv2d(g, x, .name = "wide", .out = 8, .kernel = 3, .pad = 1, .bias = true);
    int thin = conv2d(g, x, .name = "thin", .out = 8, .kernel = 1);
    graph_output(g, add(g, add(g, wide, thin), batch_norm(g, x, "norm", 1e-3, 1)));
    int y = transpose(g, noise_input(g, "y", shape_of(2, 6, 64)), 3, back);
    graph_output(g, transpose(g, dense(g, y, "mixed", 7), 3, back));
    assert_int_equal(graph_check(g, NULL), STATUS_OK);
    assert_true(try_network(g, false) > 100);
    graph_free(g);
}

/* Convolutions of every kind, with batch norms to fold and epilogues to fuse. */
static struct graph *small_vision(void)
{
    struct graph *g = graph_new("small_vision");
    int x = noise_input(g, "x", shape_of(1, 3, 20, 20));
    x = conv2d(g, x, .name = "stem", .out = 16, .kernel = 3, .stride = 2, .pad = 1);
    x = relu(g, batch_norm(g, x, "stem.norm", 1e-5, 1));
    int y = conv2d(g, x, .name = "a", .out = 16, .kernel = 3, .pad = 1, .bias = true);
    x = relu(g, add(g, y, x));
    y = conv2d(g, x, .name = "b", .out = 24, .kernel = 1);
    x = concat(g, 1, 2, (int[]){x, y});
    x = relu(g, batch_norm(g, x, "join.norm", 1e-5, 1));
    for (int k = 0; k < 6; k++) /* large enough for arrays with memory of their own */
        x = relu(g,
                 add(g, conv2d(g, x, .name = name_of(g, "block%d", k), .out = 40, .kernel = 1), x));
    x = flatten(g, x);
    graph_output(g, softmax(g, dense(g, x, "classes", 10), -1));
    return g;
}

TEST(a_small_vision_network_bears_it_or_says_so)
{
    struct graph *g = small_vision();
    assert_int_equal(graph_check(g, NULL), STATUS_OK);
    assert_true(try_network(g, false) > 200);
    graph_free(g);
}

/* Candidates that could not be prepared were not released: trial.c. */
TEST(a_trial_releases_what_could_not_be_prepared)
{
    struct graph *g = small_vision();
    assert_int_equal(graph_check(g, NULL), STATUS_OK);
    assert_true(try_network(g, true) > 400);
    graph_free(g);
}

/* ---- kernels alone ---- */

/* One kernel, in all its instruction sets, on its operator's first case. */
static void try_kernel(const char *op, const char *prefix)
{
    struct subject s = {.op = op_named(op), .floats = DTYPE_F32};
    int tried = 0;
    assert_non_null(s.op);
    s.c = &s.op->cases[0];
    MUST(subject_open, &s, NONE);
    for (int k = 0; k < kernel_count(); k++) {
        if (strncmp(kernel_at(k)->name, prefix, strlen(prefix)) != 0 ||
            kernel_at(k)->isa > isa_detect())
            continue;
        struct work w = {.g = s.g, .options = options_of(true, NULL), .subject = &s};
        w.options.only = kernel_at(k)->name;
        assert_true(live_through_all(&w) > 20);
        tried++;
    }
    assert_true(tried > 0);
    subject_close(&s);
}

/* rnn_prepare published its state before it failed. */
TEST(a_recurrent_layer_that_cannot_be_packed_leaves_nothing)
{
    try_kernel("LSTM", "lstm_sequence");
    try_kernel("GRU", "gru_sequence");
    try_kernel("RNN", "rnn_sequence");
}

/* So did decoder_loop's prepare. */
TEST(a_decoder_that_cannot_be_packed_leaves_nothing)
{
    try_kernel("AttentionDecoder", "decoder_loop");
    try_kernel("AttentionLSTM", "attention_lstm_steps");
    try_kernel("AttentionLSTMGradient", "attention_lstm_gradient_steps");
}
