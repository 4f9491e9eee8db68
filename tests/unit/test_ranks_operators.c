/* SPDX-License-Identifier: Apache-2.0
 * Operators between ranks, as executables of several processes run them: exact results, their
 * gradients, and what stands untouched while it is on its way. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "collective/comm_thread.h"
#include "collective/communicator.h"
#include "collective/local_ranks.h"
#include "engine/compile/compile.h"
#include "engine/graph/op_list.h"
#include "engine/ops/family/gradient.h"
#include "engine/train/autodiff.h"
#include "tests/lib/made_nccl.h"
#include "tests/lib/unit.h"
#include "tests/lib/unit/graphs.h"

static const char *program;

static int start(int argc, char **argv)
{
    (void)argc;
    program = argv[0];
    return UNIT_RUN;
}

const struct unit_fixture unit_fixture = {.start = start};

enum { RANKS_MOST = 9, WIDTH = 7, RUNS = 5, COUNTERS = 600 };

/* Small whole numbers: every sum of them is exact. */
static float number_of(int rank, int64_t element, int run)
{
    return (float)((rank * 31 + element * 7 + run * 13) % 61 - 30);
}

struct job {
    const struct op *op;
    int64_t rows; /* of each rank's input */
    bool threaded;
    const struct backend *backend;
    bool on_device; /* as the backend's ranks are */
};

/* What element e of rank `rank` should be, from what all ranks have. of: the number that rank r has
 * in its element e. */
typedef float number_fn(int rank, int64_t element, int run);

static double wanted(const struct op *op, number_fn *of, int ranks, int rank, int64_t count,
                     int64_t e, int run)
{
    double sum = 0;
    if (op == &op_all_gather)
        return (double)of((int)(e / count), e % count, run);
    if (op == &op_broadcast)
        return (double)of(ranks - 1, e, run);
    if (op == &op_all_to_all)
        return (double)of((int)(e / (count / ranks)), rank * (count / ranks) + e % (count / ranks),
                          run);
    int64_t shift = op == &op_reduce_scatter ? rank * (count / ranks) : 0;
    for (int r = 0; r < ranks; r++)
        sum += (double)of(r, shift + e, run);
    return sum;
}

/* The weight of element e of the result in the loss of a rank: the gradient that comes back. */
static float weight_of(int rank, int64_t element, int run)
{
    (void)run;
    return (float)((rank * 5 + element * 3) % 11 - 5);
}

/* The operator that gradients take. */
static const struct op *back(const struct op *op)
{
    return op == &op_all_gather       ? &op_reduce_scatter
           : op == &op_reduce_scatter ? &op_all_gather
           : op == &op_broadcast      ? &op_all_reduce
                                      : op;
}

/* x, the result of the operator, and the gradient by x of the sum of result times weights, twice
 * over so that several are on their way at once. */
static struct graph *make_graph(const struct job *job, int ranks, int rank)
{
    struct graph *g = graph_new("between");
    struct fill none = {.kind = FILL_CONST};
    int x = graph_input(g, "x", DTYPE_F32, shape_of(job->rows, WIDTH), none), grown, gradient;
    struct attr attrs[] = {attr_int("ranks", ranks), attr_int("root", ranks - 1),
                           attr_int("rank", rank)};
    int attr_count = job->op == &op_broadcast ? 3 : 1;
    int y = graph_node(g, job->op->name, NULL, INPUTS(x), attr_count, attrs);
    int twice = graph_node(g, job->op->name, NULL, INPUTS(make_add(g, x, x)), attr_count, attrs);
    int w = graph_input(g, "w", DTYPE_F32, gradient_shape(g, y), none);
    int loss = make_mul(g, y, w);
    int64_t axes[] = {0, 1};
    loss = make_sum(g, loss, 2, axes, false);
    graph_output(g, y);
    grown = make_sub(g, twice, y);
    graph_output(g, grown);
    graph_output(g, loss);
    MUST(autodiff, g, loss, NONE, 1, &x, &gradient);
    graph_output(g, gradient);
    graph_compact(g);
    return g;
}

static enum status compare(const struct exe *exe, int output, const char *what, double expected,
                           int64_t e, struct error *err)
{
    double got = (double)((const float *)exe_output(exe, output))[e];
    if (got == expected)
        return STATUS_OK;
    return FAIL(err, STATUS_INVALID, "%s, element %lld: %g instead of %g", what, (long long)e, got,
                expected);
}

static enum status check(const struct job *job, const struct exe *exe, const struct comm *comm,
                         int run, struct error *err)
{
    const struct graph *g = exe_graph(exe);
    int64_t count = job->rows * WIDTH;
    int64_t result = shape_count(&g->values[g->outputs[0]].shape);
    for (int64_t e = 0; e < result; e++) {
        double y = wanted(job->op, number_of, comm->ranks, comm->rank, count, e, run);
        TRY(compare(exe, 0, "result", y, e, err));
        TRY(compare(exe, 1, "another on its way", y, e, err));
    }
    bool read = job->op != &op_broadcast || comm->rank == comm->ranks - 1;
    for (int64_t e = 0; e < count; e++) {
        double dx =
            wanted(back(job->op), weight_of, comm->ranks, comm->rank, result, e, run) * read;
        TRY(compare(exe, 3, "gradient", dx, e, err));
    }
    return STATUS_OK;
}

/* A run is replayed, with what is between ranks, and says when that was. */
static enum status check_queue(const struct exe *exe, int run, struct error *err)
{
    uint64_t now_ns = clock_now_ns();
    if (exe_not_captured(exe))
        return FAIL(err, STATUS_INVALID, "not captured: %s", exe_not_captured(exe));
    for (int k = 0; k < exe_exchange_count(exe); k++) {
        struct exe_exchange x = exe_exchange_at(exe, k);
        if (x.ready_ns != x.of.started_ns || x.of.ended_ns < x.of.started_ns ||
            x.of.ended_ns > now_ns || x.waited_ns != x.of.ended_ns - x.of.started_ns ||
            strcmp(x.of.algorithm, "library") != 0)
            return FAIL(err, STATUS_INVALID, "run %d: the times of exchange %d make no sense", run,
                        k);
    }
    return exe_exchange_count(exe) > 0 ? STATUS_OK
                                       : FAIL(err, STATUS_INVALID, "nothing is exchanged");
}

static enum status run_exe(const struct job *job, struct comm *comm, struct error *err)
{
    char device[16];
    snprintf(device, sizeof(device), job->on_device ? "cuda:%d" : "cpu", comm->rank);
    struct exe_options options = {.threads = 1, .no_tune = true, .comm = comm, .device = device};
    struct graph *g = make_graph(job, comm->ranks, comm->rank);
    struct exe *exe = NULL;
    enum status status = exe_new(g, &options, &exe, err);
    for (int run = 0; run < RUNS && status == STATUS_OK; run++) {
        float *x = exe_input(exe, 0), *w = exe_input(exe, 1);
        int64_t weights = shape_count(&g->values[g->inputs[1]].shape);
        for (int64_t e = 0; e < job->rows * WIDTH; e++)
            x[e] = number_of(comm->rank, e, run);
        for (int64_t e = 0; e < weights; e++)
            w[e] = weight_of(comm->rank, e, run);
        exe_run(exe);
        status = exe_status(exe, err);
        if (status == STATUS_OK)
            status = check(job, exe, comm, run, err);
        if (status == STATUS_OK && job->on_device)
            status = check_queue(exe, run, err);
    }
    exe_graph_free(exe, g);
    return status;
}

static enum status one_rank(void *context, struct group *group, int rank, struct error *err)
{
    const struct job *job = context;
    struct communicator_options options = {.algorithm = NULL};
    struct comm base, thread = {0};
    TRY(communicator_open(job->backend, group, rank, &options, &base, err));
    enum status status = STATUS_OK;
    if (job->threaded)
        status = comm_thread_open(&base, &thread, err);
    if (status == STATUS_OK)
        status = run_exe(job, job->threaded ? &thread : &base, err);
    comm_thread_close(&thread);
    communicator_close(&base);
    return status;
}

static void run_job(const struct job *job, int ranks)
{
    struct error err = {0};
    struct job own = *job;
    struct local_ranks run = {.backend = job->backend,
                              .ranks = ranks,
                              .options = {.deadline_ns = 60000000000u},
                              .body = one_rank,
                              .context = &own};
    if (local_ranks_run(&run, &err) != STATUS_OK)
        fail_msg("%s of %lld rows on %d ranks of %s: %s", job->op->name, (long long)job->rows,
                 ranks, job->backend->name, err.message);
}

static const struct op *const ops[] = {&op_all_reduce, &op_all_gather, &op_all_to_all,
                                       &op_broadcast, &op_reduce_scatter};

TEST(results_and_gradients_are_exact)
{
    struct job job = {.backend = backend_find("shm")};
    for (int k = 0; k < ARRAY_COUNT(ops); k++)
        for (int ranks = 2; ranks <= RANKS_MOST; ranks += ranks < 5 ? 1 : 4) {
            job.op = ops[k];
            job.threaded = ranks % 2;
            job.rows = ranks;
            run_job(&job, ranks);
            job.rows = (int64_t)ranks * 40;
            run_job(&job, ranks);
        }
}

/* Over the stand-ins for NCCL and CUDA: what is exchanged never leaves the device. */
TEST(captured_runs_of_a_device_are_exact)
{
    struct error why = {0};
    struct job job = {.backend = made_nccl(program, &why), .on_device = true};
    if (!job.backend) {
        print_message("skipped: %s\n", why.message);
        skip();
    }
    for (int k = 0; k < ARRAY_COUNT(ops); k++)
        for (int ranks = 2; ranks <= 4; ranks++) {
            job.op = ops[k];
            job.rows = (int64_t)ranks * 5;
            run_job(&job, ranks);
        }
}

enum { VALUES = 3 };
static const int64_t sizes[VALUES] = {5, 70, 1};

/* Several values that are exchanged as one: two that are computed where they are sent from, and one
 * that has to be brought there. */
static struct graph *make_unit(int ranks)
{
    struct graph *g = graph_new("unit");
    struct fill none = {.kind = FILL_CONST};
    const struct attr attrs[] = {attr_int("ranks", ranks)};
    static const char *const names[VALUES] = {"x", "y", "z"};
    int in[VALUES], all[VALUES];
    for (int k = 0; k < VALUES; k++) {
        in[k] = graph_input(g, names[k], DTYPE_F32, shape_of(sizes[k]), none);
        if (k < VALUES - 1)
            in[k] = make_mul(g, in[k], in[k]);
    }
    graph_node_many(g, op_all_reduce.name, NULL, VALUES, in, 1, attrs, VALUES, all);
    for (int k = 0; k < VALUES; k++) {
        graph_output(g, all[k]);
        graph_output(g, make_add(g, all[k], all[k]));
    }
    return g;
}

static enum status check_unit(const struct exe *exe, int ranks, int run, struct error *err)
{
    for (int k = 0; k < VALUES; k++)
        for (int64_t e = 0; e < sizes[k]; e++) {
            double sum = 0;
            for (int rank = 0; rank < ranks; rank++) {
                double x = (double)number_of(rank, e + k, run);
                sum += k < VALUES - 1 ? x * x : x;
            }
            TRY(compare(exe, 2 * k, "value of a unit", sum, e, err));
            TRY(compare(exe, 2 * k + 1, "what is made of it", 2 * sum, e, err));
        }
    return STATUS_OK;
}

static enum status exchange_unit(void *context, struct group *group, int rank, struct error *err)
{
    const struct job *job = context;
    struct communicator_options options = {.algorithm = NULL};
    struct comm comm;
    char device[16];
    TRY(communicator_open(job->backend, group, rank, &options, &comm, err));
    snprintf(device, sizeof(device), job->on_device ? "cuda:%d" : "cpu", rank);
    struct exe_options how = {.threads = 1, .no_tune = true, .comm = &comm, .device = device};
    struct graph *g = make_unit(comm.ranks);
    struct exe *exe = NULL;
    enum status status = exe_new(g, &how, &exe, err);
    for (int run = 0; run < RUNS && status == STATUS_OK; run++) {
        for (int k = 0; k < VALUES; k++)
            for (int64_t e = 0; e < sizes[k]; e++)
                ((float *)exe_input(exe, k))[e] = number_of(rank, e + k, run);
        exe_run(exe);
        status = exe_status(exe, err);
        if (status == STATUS_OK)
            status = check_unit(exe, comm.ranks, run, err);
    }
    if (status == STATUS_OK && exe_exchange_count(exe) != 1)
        status = FAIL(err, STATUS_INVALID, "%d exchanges", exe_exchange_count(exe));
    exe_graph_free(exe, g);
    communicator_close(&comm);
    return status;
}

TEST(a_unit_of_several_values_is_exact)
{
    struct error err = {0}, why = {0};
    const struct backend *nccl = made_nccl(program, &why);
    for (int k = 0; k < (nccl ? 2 : 1); k++) {
        struct job job = {.backend = k ? nccl : backend_find("shm"), .on_device = k};
        struct local_ranks run = {.backend = job.backend,
                                  .ranks = 3,
                                  .options = {.deadline_ns = 60000000000u},
                                  .body = exchange_unit,
                                  .context = &job};
        if (local_ranks_run(&run, &err) != STATUS_OK)
            fail_msg("%s: %s", job.backend->name, err.message);
    }
}

/* The host's ranks have no way to what a device holds. */
TEST(ranks_of_the_host_exchange_nothing_of_a_device)
{
    struct error err = {0}, why = {0};
    struct job job = {.op = &op_all_reduce, .backend = backend_find("shm"), .on_device = true};
    struct local_ranks run = {.backend = job.backend,
                              .ranks = 2,
                              .options = {.deadline_ns = 60000000000u},
                              .body = one_rank,
                              .context = &job};
    job.rows = 4;
    if (!made_nccl(program, &why))
        skip();
    assert_int_equal(local_ranks_run(&run, &err), STATUS_UNSUPPORTED);
    if (!strstr(err.message, "take the backend nccl"))
        fail_msg("%s", err.message);
}

/* Calls of the CUDA runtime fail from their first use on, or one of NCCL once. */
TEST(a_device_that_fails_ends_the_run)
{
    static const char *const calls[] = {"event_create:1", "event_record:1", "copy:1",
                                        "stream_query:1", "graph_launch:1"};
    struct error why = {0};
    struct job job = {.op = &op_all_reduce, .on_device = true, .rows = 6};
    job.backend = made_nccl(program, &why);
    if (!job.backend)
        skip();
    for (int k = 0; k <= ARRAY_COUNT(calls); k++) {
        struct error err = {0};
        struct local_ranks run = {.backend = job.backend,
                                  .ranks = 3,
                                  .options = {.deadline_ns = 60000000000u},
                                  .body = one_rank,
                                  .context = &job};
        bool device = k < ARRAY_COUNT(calls);
        setenv(device ? "RIDGE_HOST_FAIL" : "RIDGE_FAKE_NCCL",
               device ? calls[k] : "ncclAllReduce:4:3:2", 1);
        if (local_ranks_run(&run, &err) == STATUS_OK)
            fail_msg("%s: all went well", device ? calls[k] : "NCCL");
        if (!strstr(err.message, device ? "cudaErrorLaunchFailure" : "rank 2: ncclAllReduce"))
            fail_msg("%s: %s", device ? calls[k] : "NCCL", err.message);
        unsetenv("RIDGE_HOST_FAIL");
        unsetenv("RIDGE_FAKE_NCCL");
    }
}

/* The ranks wait for one that computes no more: the queue ends, undone. */
static enum status stop_one(void *context, struct group *group, int rank, struct error *err)
{
    if (rank == 1)
        raise(SIGSTOP);
    return one_rank(context, group, rank, err);
}

static enum status leave_one(void *context, struct group *group, int rank, struct error *err)
{
    const struct job *job = context;
    struct communicator_options options = {.algorithm = NULL};
    struct comm comm;
    if (rank != 1)
        return one_rank(context, group, rank, err);
    TRY(communicator_open(job->backend, group, rank, &options, &comm, err));
    raise(SIGSTOP);
    return STATUS_OK;
}

TEST(a_rank_that_stops_ends_the_queues_of_the_others)
{
    struct error why = {0};
    struct job job = {.op = &op_all_reduce, .on_device = true, .rows = 6};
    job.backend = made_nccl(program, &why);
    if (!job.backend)
        skip();
    for (int k = 0; k < 2; k++) {
        struct error err = {0};
        struct local_ranks run = {.backend = job.backend,
                                  .ranks = 3,
                                  .options = {.deadline_ns = 1000000000u},
                                  .body = k ? leave_one : stop_one,
                                  .context = &job};
        assert_int_equal(local_ranks_run(&run, &err), STATUS_FAILED);
        if (!strstr(err.message, "rank 1 has"))
            fail_msg("%s", err.message);
    }
}

/* ---- states ---- */

/* Gives a state to the others and takes 1 from each of its elements, before anyone reads what has
 * come. */
static struct graph *make_counter(int ranks)
{
    struct fill one = {.kind = FILL_CONST, .a = 1};
    struct graph *g = graph_new("counter");
    int s = graph_state(g, "s", DTYPE_F32, shape_of(COUNTERS), one), after;
    int rate = graph_input(g, "rate", DTYPE_F32, shape_scalar(), one);
    int down = graph_input(g, "down", DTYPE_F32, shape_of(COUNTERS), one);
    int step = graph_const_i64(g, -1, &(int64_t){1});
    int all = graph_node(g, op_all_gather.name, NULL, INPUTS(s), ATTRS(attr_int("ranks", ranks)));
    graph_node_many(g, op_sgd.name, NULL, INPUTS(rate, step, NONE, s, down), NO_ATTRS, 1, &after);
    graph_output(g, make_add(g, all, rate));
    graph_state_after(g, s, after);
    return g;
}

static enum status count_down(void *context, struct group *group, int rank, struct error *err)
{
    struct communicator_options options = {.algorithm = NULL};
    struct comm comm;
    (void)context;
    TRY(communicator_open(backend_find("shm"), group, rank, &options, &comm, err));
    struct exe_options how = {.threads = 1, .no_tune = true, .comm = &comm};
    struct graph *g = make_counter(comm.ranks);
    struct exe *exe = NULL;
    enum status status = exe_new(g, &how, &exe, err);
    for (int run = 0; run < RUNS && status == STATUS_OK; run++) {
        exe_run(exe);
        status = exe_status(exe, err);
        for (int64_t e = 0; e < COUNTERS * comm.ranks && status == STATUS_OK; e++)
            status = compare(exe, 0, "counter", 2 - run, e, err);
    }
    exe_graph_free(exe, g);
    communicator_close(&comm);
    return status;
}

/* This communicator moves nothing until somebody waits: an update in the state's place would be
 * what the others get. */
TEST(a_state_on_its_way_is_not_overwritten)
{
    struct local_ranks run = {.backend = backend_find("shm"),
                              .ranks = 3,
                              .options = {.deadline_ns = 60000000000u},
                              .body = count_down};
    MUST(local_ranks_run, &run);
}

/* A tensor that cannot be cut into equal parts is refused when the graph is made. */
TEST(what_cannot_be_cut_is_refused)
{
    struct graph *g = graph_new("ragged");
    int x = graph_input(g, "x", DTYPE_F32, shape_of(7, 2), (struct fill){.kind = FILL_CONST});
    graph_node(g, op_all_to_all.name, NULL, INPUTS(x), ATTRS(attr_int("ranks", 3)));
    FAILS(STATUS_FAILED, "cannot be cut into 3 equal parts", graph_check, g);
    graph_free(g);
}
