/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge bench collectives: how long operations between ranks take, by algorithm and size. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/cpus.h"
#include "collective/timing_text.h"
#include "harness/bench/bench_store.h"
#include "harness/bench/platform.h"
#include "harness/bench/print.h"
#include "harness/cli/command.h"

enum {
    RANKS_DEFAULT = 2,
    RANKS_MAX = 1024,
    FACTOR_DEFAULT = 4,
    BLOCK_MS = 10,
    DEADLINE_S = 30,
    TURNS_DEFAULT = 5, /* of several backends */
    BLOCKS_LEAST = 3,
};

#define BYTES_MAX (INT64_C(16) << 30)

struct bench_options {
    int64_t ranks, simulated, factor, block_ms, blocks, turns, lanes, node_ranks;
    double deadline_s;
    const char *from, *to, *operation, *algorithm, *dtype, *wire, *reduction, *segment, *backends,
        *platform, *db;
    bool json, samples, own_memory, touch, log_gp;
};

static const struct option options[] = {
    {"ranks", 'n', OPTION_COUNT, offsetof(struct bench_options, ranks), "N",
     "processes of this machine (default 2)"},
    {"from", 0, OPTION_TEXT, offsetof(struct bench_options, from), "SIZE",
     "smallest size in bytes (default 8)"},
    {"to", 0, OPTION_TEXT, offsetof(struct bench_options, to), "SIZE",
     "largest size (default 64MiB)"},
    {"factor", 0, OPTION_COUNT, offsetof(struct bench_options, factor), "N",
     "each size is so many times the one before (default 4)"},
    {"operation", 'o', OPTION_TEXT, offsetof(struct bench_options, operation), "NAME",
     "all_reduce (default), reduce_scatter, all_gather, broadcast, all_to_all, or all"},
    {"algorithm", 'a', OPTION_TEXT, offsetof(struct bench_options, algorithm), "NAME",
     "this one alone (default: each, and what is chosen by size)"},
    {"backend", 'b', OPTION_TEXT, offsetof(struct bench_options, backends), "LIST",
     "shm, openmpi, mpich, loop: one, or several in turns (default shm, or what started the "
     "ranks)"},
    {"turns", 0, OPTION_COUNT, offsetof(struct bench_options, turns), "N",
     "how often each of several backends is measured, one after the other (default 5)"},
    {"dtype", 0, OPTION_TEXT, offsetof(struct bench_options, dtype), "TYPE",
     "f32 (default), f64, f16, bf16, i32 or i64"},
    {"wire", 0, OPTION_TEXT, offsetof(struct bench_options, wire), "TYPE",
     "the type in which f32 crosses between ranks: f16 or bf16 (default: f32)"},
    {"reduction", 0, OPTION_TEXT, offsetof(struct bench_options, reduction), "NAME",
     "sum (default), max or min"},
    {"lanes", 0, OPTION_COUNT, offsetof(struct bench_options, lanes), "N",
     "independent parts of a schedule, 1 to 4 (default 1)"},
    {"per-node", 0, OPTION_COUNT, offsetof(struct bench_options, node_ranks), "N",
     "ranks that share a node, for the algorithm hierarchical (default 2)"},
    {"segment", 0, OPTION_TEXT, offsetof(struct bench_options, segment), "SIZE",
     "at most so much of a buffer is under way in each lane (default: by backend and ranks)"},
    {"own-memory", 0, OPTION_FLAG, offsetof(struct bench_options, own_memory), NULL,
     "buffers in memory of each rank alone, also where ranks can share it"},
    {"touch", 0, OPTION_FLAG, offsetof(struct bench_options, touch), NULL,
     "each rank writes its input before an operation and reads its output after it, in its time"},
    {"loggp", 0, OPTION_FLAG, offsetof(struct bench_options, log_gp), NULL,
     "also messages between two ranks, and what one costs by the model LogGP"},
    {"block", 0, OPTION_COUNT, offsetof(struct bench_options, block_ms), "MS",
     "milliseconds of a block of operations that is timed (default 10)"},
    {"blocks", 0, OPTION_COUNT, offsetof(struct bench_options, blocks), "N",
     "blocks of each case and turn (default 9, of several turns 3)"},
    {"deadline", 0, OPTION_POSITIVE, offsetof(struct bench_options, deadline_s), "S",
     "seconds without progress after which all ranks give up (default 30)"},
    {"simulate", 0, OPTION_COUNT, offsetof(struct bench_options, simulated), "RANKS",
     "simulate so many ranks by SimGrid, each case once; needs --platform"},
    {"platform", 0, OPTION_TEXT, offsetof(struct bench_options, platform), "FILE",
     "the network to simulate: link_gbit_s, link_latency_us, and more (docs/method.md)"},
    {"samples", 0, OPTION_FLAG, offsetof(struct bench_options, samples), NULL,
     "a line for each case with all its times, for programs that join several runs"},
    {"db", 0, OPTION_TEXT, offsetof(struct bench_options, db), "FILE",
     "keeps the results in this database, for reports, plots and comparisons"},
    {"json", 0, OPTION_FLAG, offsetof(struct bench_options, json), NULL, "machine-readable"},
    {0},
};

static enum status bytes_of(const char *text, int64_t otherwise, int64_t *out, struct error *err)
{
    static const struct unit {
        const char *name;
        int shift;
    } units[] = {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
    char *end = NULL;
    int64_t number = text ? strtoll(text, &end, 10) : otherwise;
    *out = number;
    for (int k = 0; text && end != text && k < ARRAY_COUNT(units); k++)
        if (strcmp(end, units[k].name) == 0 && number >= 1 && number <= BYTES_MAX >> units[k].shift)
            return *out = number << units[k].shift, STATUS_OK;
    if (text)
        return FAIL(err, STATUS_FAILED,
                    "size \"%s\": take a number of bytes up to 16GiB: 8, 4KiB, 64MiB", text);
    return STATUS_OK;
}

static const char *operation_word(int index)
{
    return operation_name((enum comm_operation)index);
}

static const char *reduction_word(int index)
{
    return reduction_name((enum comm_reduction)index);
}

static const char *algorithm_word(int index)
{
    return algorithm_at(index)->name;
}

static const char *backend_word(int index)
{
    return backend_at(index)->name;
}

static const char *dtype_word(int index)
{
    static const enum dtype dtypes[] = {DTYPE_F32,  DTYPE_F64, DTYPE_F16,
                                        DTYPE_BF16, DTYPE_I32, DTYPE_I64};
    return dtype_name(dtypes[index]);
}

/* The index of a word among `count`; -1 where none was given. */
static enum status word_index(const char *what, const char *word, const char *(*at)(int), int count,
                              int *out, struct error *err)
{
    const char *words[OPTION_LIST_MAX];
    char all[200] = "";
    *out = -1;
    if (!word)
        return STATUS_OK;
    for (int k = 0; k < count; k++) {
        words[k] = at(k);
        snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", k ? ", " : "", words[k]);
        if (strcmp(word, words[k]) == 0)
            *out = k;
    }
    if (*out >= 0)
        return STATUS_OK;
    const char *near = nearest_word(word, words, count);
    if (near)
        return FAIL(err, STATUS_FAILED, "%s \"%s\" unknown, did you mean %s?", what, word, near);
    return FAIL(err, STATUS_FAILED, "%s \"%s\" unknown: there are %s", what, word, all);
}

static enum status read_words(const struct bench_options *o, struct bench *bench, struct error *err)
{
    int index;
    bool every = o->operation && strcmp(o->operation, "all") == 0;
    TRY(word_index("operation", every ? NULL : o->operation, operation_word, COMM_OPERATION_COUNT,
                   &index, err));
    bench->operations = every ? ~0u : OPERATION_BIT(index < 0 ? COMM_ALL_REDUCE : index);
    TRY(word_index("reduction", o->reduction, reduction_word, COMM_REDUCTION_COUNT, &index, err));
    bench->reduction = index < 0 ? COMM_SUM : (enum comm_reduction)index;
    TRY(word_index("type", o->dtype, dtype_word, 6, &index, err));
    bench->dtype = dtype_from_name(dtype_word(index < 0 ? 0 : index));
    TRY(word_index("algorithm", o->algorithm, algorithm_word, algorithm_count(), &index, err));
    bench->algorithm = index < 0 ? NULL : algorithm_at(index);
    TRY(word_index("type", o->wire, dtype_word, 6, &index, err));
    bench->wire = index < 0 ? DTYPE_NONE : dtype_from_name(dtype_word(index));
    if (bench->wire != DTYPE_NONE && (bench->dtype != DTYPE_F32 || dtype_size(bench->wire) != 2))
        return FAIL(err, STATUS_FAILED, "--wire %s: only f32 crosses as f16 or bf16", o->wire);
    if (bench->algorithm && !(bench->algorithm->operations & bench->operations))
        return FAIL(err, STATUS_FAILED, "%s has no schedule for %s", bench->algorithm->name,
                    o->operation ? o->operation : operation_name(COMM_ALL_REDUCE));
    return STATUS_OK;
}

static enum status add_backend(struct bench *bench, const char *word, struct error *err)
{
    int index;
    TRY(word_index("backend", word, backend_word, backend_count(), &index, err));
    const struct backend *backend = backend_at(index);
    if (bench->launched && backend->device) /* its ranks are those that were started */
        bench->backends[0] = backend;
    if (bench->launched && backend != bench->backends[0])
        return FAIL(err, STATUS_FAILED, "--backend %s, but ranks were started for %s", word,
                    bench->backends[0]->name);
    if (bench->backend_count == BENCH_BACKENDS_MAX)
        return FAIL(err, STATUS_FAILED, "--backend: at most %d of them", BENCH_BACKENDS_MAX);
    if (!bench->launched)
        bench->backends[bench->backend_count++] = backend;
    return STATUS_OK;
}

static enum status read_backends(const struct bench_options *o, struct bench *bench,
                                 struct error *err)
{
    const struct backend *starter = backend_starter(&bench->rank, &bench->timing.ranks);
    TRY(backend_check_starter(err));
    bench->launched = starter != NULL;
    if (starter)
        bench->backends[bench->backend_count++] = starter;
    if (bench->launched && o->ranks && o->ranks != bench->timing.ranks)
        return FAIL(err, STATUS_FAILED, "--ranks %" PRId64 ", but %s started %d", o->ranks,
                    starter->launcher->programs[0], bench->timing.ranks);
    for (const char *at = o->backends ? o->backends : ""; *at;) {
        char word[32];
        size_t length = strcspn(at, ",");
        snprintf(word, sizeof(word), "%.*s", (int)length, at);
        TRY(add_backend(bench, word, err));
        at += length + (at[length] != '\0');
    }
    if (bench->backend_count == 0)
        bench->backends[bench->backend_count++] = backend_find("shm");
    return STATUS_OK;
}

/* Not a backend among the others: nothing of it is measured. */
static const struct backend simulated = {
    .name = "simulated", .summary = "SimGrid", .for_measures = true};

static enum status read_simulation(const struct bench_options *o, struct bench *bench,
                                   struct error *err)
{
    if (!o->simulated != !o->platform)
        return FAIL(err, STATUS_FAILED,
                    "--simulate RANKS and --platform FILE go together; docs/method.md says what "
                    "the file holds");
    if (!o->simulated)
        return STATUS_OK;
    if (bench->launched || o->backends || o->ranks)
        return FAIL(err, STATUS_FAILED, "--simulate has ranks and a backend of its own");
    struct platform platform;
    TRY(platform_read(o->platform, &platform, err));
    bench->platform = o->platform;
    bench->timing.ranks = (int)o->simulated;
    bench->backends[0] = &simulated;
    bench->backend_count = 1;
    return STATUS_OK;
}

static enum status read_options(const struct bench_options *o, struct bench *bench,
                                struct error *err)
{
    TRY(read_words(o, bench, err));
    TRY(read_backends(o, bench, err));
    TRY(read_simulation(o, bench, err));
    TRY(bytes_of(o->from, 8, &bench->from, err));
    TRY(bytes_of(o->to, INT64_C(64) << 20, &bench->to, err));
    TRY(bytes_of(o->segment, 0, &bench->timing.schedule.segment_bytes, err));
    bench->factor = o->factor ? o->factor : FACTOR_DEFAULT;
    if (bench->factor < 2)
        return FAIL(err, STATUS_FAILED, "--factor %" PRId64 ": take 2 or more", bench->factor);
    if (bench->from > bench->to)
        return FAIL(err, STATUS_FAILED, "--from is larger than --to");
    if (o->ranks > RANKS_MAX)
        return FAIL(err, STATUS_FAILED, "--ranks %" PRId64 ": at most %d", o->ranks, RANKS_MAX);
    if (o->lanes > LANES_MAX)
        return FAIL(err, STATUS_FAILED, "--lanes %" PRId64 ": at most %d", o->lanes, LANES_MAX);
    if (o->deadline_s > 1e6)
        return FAIL(err, STATUS_FAILED, "--deadline %g: take seconds up to 1e6", o->deadline_s);
    double deadline_s = o->deadline_s > 0 ? o->deadline_s : DEADLINE_S;
    bench->timing.schedule.lanes = (int)o->lanes;
    bench->timing.schedule.node_ranks = o->node_ranks > RANKS_MAX ? RANKS_MAX : (int)o->node_ranks;
    if (o->simulated > RANKS_MAX)
        return FAIL(err, STATUS_FAILED, "--simulate %" PRId64 ": at most %d", o->simulated,
                    RANKS_MAX);
    if (!bench->launched && !bench->platform)
        bench->timing.ranks = o->ranks ? (int)o->ranks : RANKS_DEFAULT;
    if (o->turns > BENCH_TURNS_MAX || o->blocks > TIMING_SAMPLES_MAX)
        return FAIL(err, STATUS_FAILED, "at most %d turns and %d blocks", BENCH_TURNS_MAX,
                    TIMING_SAMPLES_MAX);
    bench->turns = bench->backend_count > 1 ? TURNS_DEFAULT : 1;
    bench->turns = o->turns ? (int)o->turns : bench->turns;
    bench->timing.blocks = bench->turns > 1 ? BLOCKS_LEAST : TIMING_BLOCKS;
    if (o->blocks)
        bench->timing.blocks = (int)o->blocks;
    bench->timing.block_ns = (uint64_t)(o->block_ms ? o->block_ms : BLOCK_MS) * 1000000u;
    bench->timing.own_memory = o->own_memory;
    bench->timing.touch = o->touch;
    bench->log_gp = o->log_gp;
    if (o->log_gp && (o->simulated || (bench->timing.ranks < 2 && !bench->launched)))
        return FAIL(err, STATUS_FAILED, "--loggp needs two ranks that are measured");
    bench->timing.deadline_ns = (uint64_t)(deadline_s * 1e9);
    return STATUS_OK;
}

/* What a reader must know beside the numbers. */
static void print_notes(const struct bench *bench)
{
    if (bench->platform)
        fprintf(stderr, "simulated, not measured: times are what SimGrid computes for %s\n",
                bench->platform);
    if (bench->timing.ranks == 1)
        fprintf(stderr, "one rank: nothing is sent\n");
    for (int k = 0; k < bench->backend_count; k++)
        if (!bench->backends[k]->for_measures)
            fprintf(stderr, "times of %s mean nothing: %s\n", bench->backends[k]->name,
                    bench->backends[k]->summary);
}

static void print_samples(const struct bench_part *part)
{
    for (int k = 0; k < part->count; k++)
        timing_write(stdout, k, &part->results[k]);
}

static int report(const struct bench *bench, const struct bench_options *o,
                  const struct bench_part *parts)
{
    int64_t wrong = bench_wrong(parts, bench->backend_count);
    print_notes(bench);
    if (o->json)
        bench_print_json(bench, parts, bench->backend_count);
    for (int k = 0; k < bench->backend_count && !o->json; k++)
        if (o->samples)
            print_samples(&parts[k]);
        else
            bench_print_table(&parts[k], bench->timing.ranks);
    if (wrong)
        fprintf(stderr, "ridge: %" PRId64 " elements are wrong\n", wrong);
    return wrong ? EXIT_WRONG : EXIT_FINE;
}

static enum status keep(const struct bench *bench, const struct bench_part *parts, const char *db,
                        struct error *err)
{
    struct arena arena = {.head = NULL};
    char *typed = command_typed(&arena);
    enum status status =
        typed ? bench_store(bench, parts, bench->launched ? 0 : cpus_allowed(), db, typed, err)
              : FAIL_NO_MEMORY(err);
    arena_release(&arena);
    return status;
}

/* Of ranks that a launcher started the first one speaks, and the others when they fail. */
static int measure_and_report(const struct bench *bench, const struct bench_options *o)
{
    struct bench_part parts[BENCH_BACKENDS_MAX] = {{0}};
    struct error err = {0};
    int code = EXIT_FINE;
    fflush(NULL);
    if (bench_measure(bench, parts, &err) != STATUS_OK)
        code = command_fail(&err);
    else if (!bench->launched || bench->rank == 0)
        code = report(bench, o, parts);
    bool kept = o->db && (!bench->launched || bench->rank == 0) && err.code == STATUS_OK;
    if (kept && keep(bench, parts, o->db, &err) != STATUS_OK)
        code = command_fail(&err);
    for (int k = 0; k < bench->backend_count; k++)
        bench_part_release(&parts[k]);
    return code;
}

static int run_bench(const struct bench_options *o)
{
    struct bench bench = {.timing = {0}};
    struct error err = {0};
    if (read_options(o, &bench, &err) == STATUS_OK)
        return measure_and_report(&bench, o);
    fprintf(stderr, "ridge: %s\n", err.message);
    return EXIT_USAGE;
}

static int bench(int word_count, char **words, const void *values)
{
    if (word_count == 1 && strcmp(words[0], "collectives") == 0)
        return run_bench(values);
    fprintf(stderr, "ridge bench: takes one word, collectives, got \"%s\"\n",
            words[word_count > 1 ? 1 : 0]);
    return EXIT_USAGE;
}

REGISTER(command, bench) = {
    .name = "bench",
    .summary = "time operations between ranks, by algorithm and size",
    .usage = "collectives [options]",
    .help =
        "Starts ranks as processes of this machine and times operations between them, back to\n"
        "back, in blocks; a time is the median of the blocks, each that of its slowest rank. "
        "Under\n"
        "mpirun or srun the ranks are those that it started. Several backends take turns, those "
        "of\n"
        "MPI under their mpirun: -b shm,openmpi,mpich. The algorithm \"library\" is the backend's "
        "own.\n"
        "algbw is bytes / time; busbw is algbw x 2 (N - 1) / N for all_reduce, (N - 1) / N for\n"
        "reduce_scatter, all_gather and all_to_all, 1 for broadcast, as nccl-tests count. \"copy\n"
        "alone\" is each rank copying the same bytes once, all at a time: \"of copy\" is its time\n"
        "over that of the operation. \"wrong\" counts elements that are not exactly right.\n",
    .options = options,
    .values_size = sizeof(struct bench_options),
    .words_min = 1,
    .main = bench,
};
