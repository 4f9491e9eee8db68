/* SPDX-License-Identifier: Apache-2.0
 *
 * The backends of MPI, each under its own mpirun: results bit for bit those of the backend `loop`,
 * for every algorithm, type, ragged count and place; the library's own operations exact; and what
 * happens when a rank is killed, stopped, leaves or does something else. The same program is the
 * ranks and who starts them. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/numbers/random.h"
#include "base/registry.h"
#include "base/system/clock.h"
#include "collective/example.h"
#include "collective/launcher.h"
#include "harness/turns/asked_child.h"
#include "tests/lib/collective_ranks.h"

/* ROOM: bytes of all inputs, or all outputs, of one case. */
enum { ROOM = 32 << 20, COUNT = 131, DEADLINE_S = 20, TROUBLE_MS = 2000, LIMIT_S = 90 };

static const enum dtype dtypes[] = {DTYPE_F32,  DTYPE_F64, DTYPE_F16,
                                    DTYPE_BF16, DTYPE_I32, DTYPE_I64};

/* ---- as a rank ---- */

struct world {
    const struct backend *backend; /* ready */
    struct group *group;
    int rank, ranks;
    unsigned char *inputs, *outputs; /* of all ranks, as loop has them */
};

/* Random numbers of the type; halves and floats that are no NaN. */
static void fill_inputs(const struct ranks_case *c, unsigned char *inputs, size_t bytes)
{
    size_t size = dtype_size(c->call.dtype);
    for (size_t k = 0; k < bytes / size; k++) {
        float value = (float)random_normal(c->seed, k);
        double wide = (double)value;
        int64_t number = (int64_t)(value * 1000);
        int32_t small = (int32_t)number;
        if (c->call.dtype == DTYPE_F64)
            memcpy(inputs + k * size, &wide, size);
        else if (c->call.dtype == DTYPE_I64)
            memcpy(inputs + k * size, &number, size);
        else if (c->call.dtype == DTYPE_I32)
            memcpy(inputs + k * size, &small, size);
        else
            floats_store(c->call.dtype, &value, inputs + k * size, 1);
    }
}

/* Where this rank's part of all outputs is; and its input. */
static void offsets_of(const struct ranks_case *c, int rank, size_t *input, size_t *output)
{
    struct comm_call call = c->call;
    call.counts = c->counts;
    *input = *output = 0;
    for (int k = 0; k < rank; k++) {
        *input += (size_t)call_input_count(&call, k, c->ranks) * dtype_size(call.dtype);
        *output += (size_t)call_output_count(&call, k, c->ranks) * dtype_size(call.dtype);
    }
}

/* As loop has it, which this process runs for all ranks. */
static enum status compare_with_loop(struct world *world, const struct ranks_case *c,
                                     struct error *err)
{
    struct one_rank one;
    size_t from, to;
    struct ranks_buffers buffers = {world->inputs, world->outputs};
    offsets_of(c, c->ranks, &from, &to);
    if (from > ROOM || to > ROOM)
        return FAIL(err, STATUS_FAILED, "the test has not enough room");
    fill_inputs(c, world->inputs, from);
    if (ranks_run_loop(c, &buffers, err) < 0)
        return STATUS_FAILED;
    offsets_of(c, world->rank, &from, &to);
    enum status status = one_rank_open(c, world->backend, world->group, world->rank, &one, err);
    if (status == STATUS_OK) {
        memcpy(one.input, world->inputs + from, one.input_bytes);
        status = one_rank_run(&one, err);
    }
    if (status == STATUS_OK && memcmp(one.output, world->outputs + to, one.output_bytes) != 0)
        status = FAIL(err, STATUS_INVALID, "other bits than loop");
    one_rank_close(&one);
    return status;
}

/* The library may add in another order, so its numbers are small integers. */
static enum status compare_own(struct world *world, const struct ranks_case *c, struct error *err)
{
    struct one_rank one;
    struct comm_call call = c->call;
    call.counts = c->counts;
    TRY(one_rank_open(c, world->backend, world->group, world->rank, &one, err));
    enum status status = one_rank_run(&one, err);
    if (status == STATUS_OK && example_wrong(&call, world->rank, c->ranks, one.output) > 0)
        status = FAIL(err, STATUS_INVALID, "wrong elements");
    one_rank_close(&one);
    return status;
}

static enum status run_case(struct world *world, const struct ranks_case *c, struct error *err)
{
    char text[200];
    enum status status =
        c->algorithm->own ? compare_own(world, c, err) : compare_with_loop(world, c, err);
    if (status != STATUS_OK)
        error_context(err, "%s", ranks_case_text(c, text, sizeof(text)));
    return status;
}

/* Ranks that share a core wait for each other most of the time: of more than FEW a few turns, in
 * other types, the one with a large count among them. */
enum { TURNS = 12, FEW = 3, STRIDE = 5 };

static enum status each_turn(struct world *world, const struct algorithm *algorithm,
                             enum comm_operation operation, int *count, struct error *err)
{
    int by = world->ranks > FEW ? STRIDE : 1;
    for (int turn = (TURNS - 1) % by; turn < TURNS; turn += by, ++*count) {
        uint64_t seed = (uint64_t)*count;
        struct ranks_case c = {.algorithm = algorithm, .ranks = world->ranks, .seed = seed};
        ranks_case_call(&c, operation, turn == TURNS - 1 ? 20011 : COUNT);
        c.call.dtype = dtypes[turn % ARRAY_COUNT(dtypes)];
        c.call.reduction = (enum comm_reduction)(turn / 2 % COMM_REDUCTION_COUNT);
        c.call.root = (int)(seed % (uint64_t)world->ranks);
        c.in_place = turn / 6 && operation != COMM_ALL_TO_ALL;
        c.options = (struct schedule_options){1 + turn % LANES_MAX, 64 << turn % 4, 1 + turn % 4};
        if (turn == TURNS - 1)
            c.options = schedule_options_for(world->ranks);
        if (turn == 6 && !algorithm->own)
            c.call.wire = DTYPE_F16;
        TRY(run_case(world, &c, err));
    }
    return STATUS_OK;
}

static enum status each_case(struct world *world, int *count, struct error *err)
{
    for (int k = 0; k < algorithm_count() * COMM_OPERATION_COUNT; k++) {
        const struct algorithm *algorithm = algorithm_at(k / COMM_OPERATION_COUNT);
        enum comm_operation operation = (enum comm_operation)(k % COMM_OPERATION_COUNT);
        if (algorithm->operations & OPERATION_BIT(operation))
            TRY(each_turn(world, algorithm, operation, count, err));
    }
    return STATUS_OK;
}

enum trouble { KILLED, STOPPED, LEAVES, DIFFERS, TROUBLE_COUNT };
static const char *const troubles[] = {"killed", "stopped", "leaves", "differs"};

static enum status meet_trouble(struct world *world, enum trouble trouble, int victim,
                                struct error *err)
{
    struct one_rank one;
    struct ranks_case c = {.algorithm = algorithm_find("ring"), .ranks = world->ranks};
    c.call = (struct comm_call){.operation = COMM_ALL_REDUCE, .dtype = DTYPE_F32, .count = 9999};
    if (trouble == DIFFERS && world->rank == victim)
        c.call.count = 8888;
    c.options = (struct schedule_options){2, 4096, 0};
    TRY(one_rank_open(&c, world->backend, world->group, world->rank, &one, err));
    enum status status = STATUS_OK;
    for (int k = 0; k < 1000000 && status == STATUS_OK; k++) {
        if (k == 50 && world->rank == victim && trouble == KILLED)
            raise(SIGKILL);
        if (k == 50 && world->rank == victim && trouble == STOPPED)
            raise(SIGSTOP);
        if (k == 50 && world->rank == victim && trouble == LEAVES)
            break;
        status = one_rank_run(&one, err);
    }
    one_rank_close(&one);
    return status;
}

static enum status be_rank(const struct backend *backend, int argc, char **argv,
                           struct world *world, struct error *err)
{
    int count = 0;
    bool cases = argc < 3;
    struct group_options options = {.deadline_ns = cases ? DEADLINE_S * UINT64_C(1000000000)
                                                         : TROUBLE_MS * UINT64_C(1000000)};
    TRY(backend_ready(backend, &world->backend, err));
    TRY(world->backend->group_new(world->ranks, &options, &world->group, err));
    enum status status = cases ? each_case(world, &count, err)
                               : meet_trouble(world, (enum trouble)strtol(argv[1], NULL, 10),
                                              (int)strtol(argv[2], NULL, 10), err);
    if (status != STATUS_OK)
        world->backend->announce(world->group, world->rank, err->message);
    world->backend->group_free(world->group);
    if (status == STATUS_OK && world->rank == 0)
        printf("%d cases\n", count);
    return status;
}

static int rank_main(const struct backend *backend, int argc, char **argv, struct world world)
{
    static unsigned char memory[2 * ROOM];
    struct error err = {0};
    world.inputs = memory;
    world.outputs = memory + ROOM;
    if (be_rank(backend, argc, argv, &world, &err) == STATUS_OK)
        return 0;
    fprintf(stderr, "rank %d of %d: %s\n", world.rank, world.ranks, err.message);
    return 1;
}

/* ---- as who starts them ---- */

static int bad;

static void result(bool good, const char *what, const struct error *err)
{
    printf("%s - %s%s%s\n", good ? "ok" : "not ok", what, good ? "" : ": ",
           good ? "" : err->message);
    bad += !good;
}

static enum status start(const struct backend *backend, int ranks, const char *const *words,
                         char *text, size_t size, struct error *err)
{
    static const char *const environment[] = {"ASAN_OPTIONS=detect_leaks=0", NULL}; /* MPI's leak */
    struct launcher_command command;
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[length > 0 ? length : 0] = '\0';
    TRY(launcher_command_init(&command, backend, ranks, NULL, err));
    const char *all[LAUNCHER_WORDS + 8];
    int count = 0;
    while (count < command.count) {
        all[count] = command.words[count];
        count++;
    }
    all[count++] = "/bin/sh"; /* what ranks say goes to standard output, too */
    all[count++] = "-c";
    all[count++] = "exec \"$0\" \"$@\" 2>&1";
    all[count++] = program;
    for (int k = 0; words[k]; k++)
        all[count++] = words[k];
    all[count] = NULL;
    return asked_child_output(all, environment, LIMIT_S, text, size, err);
}

static void start_cases(const struct backend *backend, int ranks)
{
    static const char *const none[] = {NULL};
    static char text[1 << 18]; /* Open MPI 5 warns of every interface, for every pair of ranks */
    char what[64];
    struct error err = {0};
    text[0] = '\0';
    enum status status = start(backend, ranks, none, text, sizeof(text), &err);
    snprintf(what, sizeof(what), "%s, %d ranks: all cases", backend->name, ranks);
    if (status != STATUS_OK)
        fprintf(stderr, "%s", text);
    result(status == STATUS_OK && strstr(text, " cases"), what, &err);
}

/* All end in time and badly; where the launcher leaves ranks the time to, they name the victim. */
static void start_trouble(const struct backend *backend, enum trouble trouble)
{
    char text[8192] = "", what[96], number[8];
    struct error err = {0};
    snprintf(number, sizeof(number), "%d", trouble);
    const char *const words[] = {number, "1", NULL};
    uint64_t began = clock_now_ns();
    enum status status = start(backend, 3, words, text, sizeof(text), &err);
    double took_s = (double)(clock_now_ns() - began) * 1e-9;
    const char *named = trouble == DIFFERS ? "must start the same operations" : "rank 1 has";
    snprintf(what, sizeof(what), "%s, a rank is %s: all end badly and in time", backend->name,
             troubles[trouble]);
    result(status != STATUS_OK && took_s < 2e-3 * TROUBLE_MS + 20, what, &err);
    if (trouble == KILLED)
        return; /* mpirun ends the others, and says who was killed */
    snprintf(what, sizeof(what), "%s, a rank is %s: it is named", backend->name, troubles[trouble]);
    FAIL(&err, STATUS_INVALID, "%.400s", text);
    result(strstr(text, named) != NULL, what, &err);
}

static void start_all(const struct backend *backend)
{
    static const int ranks[] = {1, 2, 3, 5, 8};
    for (int k = 0; k < ARRAY_COUNT(ranks); k++)
        start_cases(backend, ranks[k]);
    for (int trouble = 0; trouble < TROUBLE_COUNT; trouble++)
        start_trouble(backend, (enum trouble)trouble);
}

int main(int argc, char **argv)
{
    int tried = 0;
    struct world world = {0};
    for (int k = 0; k < backend_count(); k++)
        if (backend_launched(backend_at(k), &world.rank, &world.ranks))
            return rank_main(backend_at(k), argc, argv, world);
    for (int k = 0; k < backend_count(); k++) {
        const struct backend *ready;
        struct launcher_command command;
        struct error why = {0};
        if (!backend_at(k)->launcher)
            continue;
        if (backend_ready(backend_at(k), &ready, &why) != STATUS_OK ||
            launcher_command_init(&command, backend_at(k), 1, NULL, &why) != STATUS_OK) {
            fprintf(stderr, "skipped: %s\n", why.message);
            continue;
        }
        tried++;
        start_all(backend_at(k));
    }
    return tried == 0 ? 77 : bad > 0;
}
