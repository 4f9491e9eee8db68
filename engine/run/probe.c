/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "engine/run/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/cpus.h"
#include "base/system/last_words.h"

enum { GUARD = 256, GUARD_BYTE = 0xa5, UNWRITTEN_BYTE = 0xff /* a NaN in every float type */ };

enum stage { STAGE_START, STAGE_PLAN, STAGE_PREPARE, STAGE_LAUNCH, STAGE_RELEASE, STAGE_END };

/* Shared with the child, which fills it in. */
struct verdict {
    enum stage stage;
    enum status status;
    struct error why;
};

struct buffers {
    void **out; /* per output; NULL: absent */
    unsigned char *workspace;
    size_t workspace_bytes;
};

struct trial {
    const struct kernel *kernel;
    const struct kernel_query *q;
    const struct probe_data *data;
    int variant;
    struct cpus cpus;
    struct verdict *verdict; /* shared memory */
    int alive[2];            /* pipe: the read end hangs up when the child is gone */
    int chatter;             /* what the child prints; -1: lost */
    struct buffers buffers;  /* in the child, which never frees them: it ends right after */
};

/* ---- in the child ---- */

static double element(const void *data, enum dtype dtype, int64_t k)
{
    switch (dtype) {
    case DTYPE_F32:
        return (double)((const float *)data)[k];
    case DTYPE_F64:
        return ((const double *)data)[k];
    case DTYPE_F16:
        return (double)half_to_float(((const uint16_t *)data)[k]);
    case DTYPE_BF16:
        return (double)bfloat_to_float(((const uint16_t *)data)[k]);
    case DTYPE_F8E4M3:
        return (double)f8_to_float(((const uint8_t *)data)[k]);
    case DTYPE_I8:
        return ((const int8_t *)data)[k];
    case DTYPE_U8:
    case DTYPE_BOOL:
        return ((const uint8_t *)data)[k];
    case DTYPE_I16:
        return ((const int16_t *)data)[k];
    case DTYPE_U16:
        return ((const uint16_t *)data)[k];
    case DTYPE_I32:
        return ((const int32_t *)data)[k];
    case DTYPE_U32:
        return ((const uint32_t *)data)[k];
    case DTYPE_I64:
        return (double)((const int64_t *)data)[k];
    case DTYPE_U64:
        return (double)((const uint64_t *)data)[k];
    default:
        return (double)NAN;
    }
}

/* Steps index to the next element in logical order; returns its place in memory. */
static int64_t next_place(const struct desc *desc, int64_t *index, int64_t place)
{
    for (int d = desc->shape.rank - 1; d >= 0; d--) {
        place += desc->stride[d];
        if (++index[d] < desc->shape.dim[d])
            return place;
        place -= index[d] * desc->stride[d];
        index[d] = 0;
    }
    return place;
}

static enum status compare(const struct desc *desc, const void *got, const double *expected,
                           double tolerance, struct error *why)
{
    int64_t index[RANK_MAX] = {0}, place = 0, count = shape_count(&desc->shape);
    double worst = 0, scale = 0;
    for (int64_t k = 0; k < count; k++, place = next_place(desc, index, place)) {
        double want = expected[k], have = element(got, desc->dtype, place);
        if (have == want || (isnan(have) && isnan(want))) {
            scale = isfinite(want) ? fmax(scale, fabs(want)) : scale;
            continue;
        }
        if (!isfinite(have) || !isfinite(want))
            return UNSUPPORTED(why, "wrong: element %lld is %g, not %g", (long long)k, have, want);
        worst = fmax(worst, fabs(have - want));
        scale = fmax(scale, fabs(want));
    }
    double error = scale > 0 ? worst / scale : worst;
    double bound = dtype_is_float(desc->dtype) ? tolerance : 0;
    if (error > bound)
        return UNSUPPORTED(why, "wrong: relative error %.1e > %.1e", error, bound);
    return STATUS_OK;
}

/* size bytes between two guard zones, 64-byte aligned; NULL: out of memory. */
static unsigned char *guarded_new(size_t size)
{
    size_t padded = (size + 2 * GUARD + ALIGN_TENSOR - 1) / ALIGN_TENSOR * ALIGN_TENSOR;
    unsigned char *block = aligned_alloc(ALIGN_TENSOR, padded);
    if (!block)
        return NULL;
    memset(block, GUARD_BYTE, padded);
    memset(block + GUARD, UNWRITTEN_BYTE, size);
    return block + GUARD;
}

static bool guards_hold(const unsigned char *memory, size_t size)
{
    for (int k = 1; k <= GUARD; k++)
        if (memory[-k] != GUARD_BYTE || memory[size + (size_t)k - 1] != GUARD_BYTE)
            return false;
    return true;
}

static enum status buffers_new(struct trial *t, const struct kernel_state *state, struct error *why)
{
    struct buffers *b = &t->buffers;
    const struct kernel_query *q = t->q;
    b->out = calloc((size_t)q->out_count + 1, sizeof(*b->out));
    if (!b->out)
        return FAIL_NO_MEMORY(why);
    for (int k = 0; k < q->out_count; k++)
        if (q->out[k].dtype != DTYPE_NONE && !(b->out[k] = guarded_new(desc_bytes(&q->out[k]))))
            return FAIL_NO_MEMORY(why);
    b->workspace_bytes = kernel_workspace(t->kernel, state);
    b->workspace = guarded_new(b->workspace_bytes);
    return b->workspace ? STATUS_OK : FAIL_NO_MEMORY(why);
}

static enum status check_results(const struct trial *t, struct error *why)
{
    const struct buffers *b = &t->buffers;
    const struct kernel_query *q = t->q;
    if (!guards_hold(b->workspace, b->workspace_bytes))
        return UNSUPPORTED(why, "wrote outside its workspace of %zu bytes", b->workspace_bytes);
    for (int k = 0; k < q->out_count; k++) {
        if (!b->out[k])
            continue;
        if (!guards_hold(b->out[k], desc_bytes(&q->out[k])))
            return UNSUPPORTED(why, "wrote outside output %d", k);
        const double *expected = t->data->expected[k];
        if (expected && compare(&q->out[k], b->out[k], expected, t->data->tolerance, why))
            return error_context(why, "output %d", k);
    }
    return STATUS_OK;
}

static enum status run_kernel(struct trial *t, struct error *why)
{
    struct pool *pool;
    TRY(pool_new(t->q->threads, &pool, why));
    struct kernel_state *state;
    size_t state_bytes;
    t->verdict->stage = STAGE_PLAN;
    TRY(kernel_plan(t->kernel, t->q, t->variant, &state, why));
    TRY(buffers_new(t, state, why));
    t->verdict->stage = STAGE_PREPARE;
    TRY(kernel_prepare(t->kernel, t->q, state, &state_bytes, why));
    t->verdict->stage = STAGE_LAUNCH;
    struct kernel_args args = {
        .in = t->data->in, .out = t->buffers.out, .workspace = t->buffers.workspace, .pool = pool};
    if (t->kernel->own_threads)
        pool_park(pool);
    kernel_launch(t->kernel, t->q, state, &args);
    TRY(check_results(t, why));
    t->verdict->stage = STAGE_RELEASE;
    kernel_release(t->kernel, state);
    return STATUS_OK;
}

static void *trial_main(void *argument)
{
    struct trial *t = argument;
    struct error why = {0};
    enum status status = run_kernel(t, &why);
    t->verdict->why = why;
    t->verdict->status = status;
    t->verdict->stage = STAGE_END;
    return NULL;
}

/* Dies with the parent, by signals rather than by handlers, without core files or output; leaves
 * the decision about an interrupt to the parent. */
static void isolate(const struct trial *t)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGALRM};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int k = 0; k < ARRAY_COUNT(fatal); k++)
        signal(fatal[k], SIG_DFL);
    signal(SIGINT, SIG_IGN);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (t->chatter >= 0) {
        dup2(t->chatter, STDOUT_FILENO);
        dup2(t->chatter, STDERR_FILENO);
    }
    cpus_bind(pthread_self(), &t->cpus);
}

_Noreturn static void child_main(struct trial *t)
{
    isolate(t);
    pthread_t thread;
    int refused = pthread_create(&thread, NULL, trial_main, t);
    if (refused == 0) {
        pthread_join(thread, NULL);
    } else {
        t->verdict->status = FAIL(&t->verdict->why, STATUS_FAILED, "no thread to try %s: %s",
                                  t->kernel->name, strerror(refused));
        t->verdict->stage = STAGE_END;
    }
    _exit(0);
}

/* ---- in the parent ---- */

/* Waits until the child has closed its end of the pipe; false: the deadline came first. */
static bool wait_for_end(int fd, int deadline_ms)
{
    uint64_t start = clock_now_ns();
    for (;;) {
        int64_t left = deadline_ms - (int64_t)((clock_now_ns() - start) / 1000000);
        struct pollfd end = {.fd = fd, .events = POLLIN};
        int ready = poll(&end, 1, left > 0 ? (int)left : 0);
        if (ready > 0)
            return true;
        if (ready == 0 || left <= 0)
            return false;
    }
}

static enum status judge(const struct trial *t, int ended, struct error *why)
{
    static const char *const stages[] = {"at its start", "in plan",    "in prepare",
                                         "in launch",    "in release", "at its end"};
    const struct verdict *verdict = t->verdict;
    const char *name = t->kernel->name, *stage = stages[verdict->stage];
    char said[200], words[sizeof(said) + 2];
    last_words(t->chatter, said, sizeof(said));
    snprintf(words, sizeof(words), "%s%s", said[0] ? ": " : "", said);
    if (WIFSIGNALED(ended)) {
        const char *signal_name = sigabbrev_np(WTERMSIG(ended));
        return UNSUPPORTED(why, "%s died with SIG%s %s%s", name, signal_name ? signal_name : "?",
                           stage, words);
    }
    if (verdict->stage != STAGE_END)
        return UNSUPPORTED(why, "%s ended the process with code %d %s%s", name, WEXITSTATUS(ended),
                           stage, words);
    if (verdict->status == STATUS_OK)
        return STATUS_OK;
    if (why)
        *why = verdict->why;
    return verdict->status;
}

static enum status run_child(struct trial *t, int deadline_ms, struct error *why)
{
    pid_t child = fork();
    if (child < 0)
        return FAIL(why, STATUS_FAILED, "cannot fork to try %s: %s", t->kernel->name,
                    strerror(errno));
    if (child == 0)
        child_main(t);
    close(t->alive[1]);
    t->alive[1] = -1;
    bool in_time = wait_for_end(t->alive[0], deadline_ms);
    if (!in_time)
        kill(child, SIGKILL);
    int ended = 0;
    while (waitpid(child, &ended, 0) < 0)
        if (errno != EINTR)
            return FAIL(why, STATUS_FAILED, "lost the trial of %s: %s", t->kernel->name,
                        strerror(errno));
    if (!in_time)
        return UNSUPPORTED(why, "%s did not end within %d ms", t->kernel->name, deadline_ms);
    return judge(t, ended, why);
}

static void close_if_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

enum status probe_kernel(const struct kernel *kernel, const struct kernel_query *q, int variant,
                         const struct probe_data *data, int deadline_ms, struct error *why)
{
    if (kernel->device && strcmp(kernel->device, "cpu") != 0)
        return FAIL(why, STATUS_FAILED, "%s runs on a %s, which cannot be tried in a forked child",
                    kernel->name, kernel->device);
    struct trial t = {
        .kernel = kernel, .q = q, .data = data, .variant = variant, .alive = {-1, -1}};
    cpus_of_process(&t.cpus); /* a pool has bound the calling thread to one of them */
    t.verdict =
        mmap(NULL, sizeof(*t.verdict), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (t.verdict == MAP_FAILED)
        return FAIL_NO_MEMORY(why);
    t.chatter = memfd_create("ridge-probe", MFD_CLOEXEC);
    enum status status;
    if (pipe2(t.alive, O_CLOEXEC))
        status = FAIL(why, STATUS_FAILED, "no pipe to try %s: %s", kernel->name, strerror(errno));
    else
        status = run_child(&t, deadline_ms, why);
    close_if_open(t.alive[0]);
    close_if_open(t.alive[1]);
    close_if_open(t.chatter);
    munmap(t.verdict, sizeof(*t.verdict));
    return status;
}
