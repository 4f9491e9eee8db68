/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge bench collectives: how long operations between ranks take, by algorithm and size. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/bench_print.h"
#include "harness/cli/command.h"

enum { RANKS_DEFAULT = 2, RANKS_MAX = 1024, FACTOR_DEFAULT = 4, BLOCK_MS = 10, DEADLINE_S = 30 };

#define BYTES_MAX (INT64_C(16) << 30)

struct bench_options {
    int64_t ranks, factor, block_ms, lanes;
    double deadline_s;
    const char *from, *to, *operation, *algorithm, *backend, *dtype, *reduction, *segment;
    bool json;
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
    {"backend", 'b', OPTION_TEXT, offsetof(struct bench_options, backend), "NAME",
     "this one alone (default: each whose times mean something)"},
    {"dtype", 0, OPTION_TEXT, offsetof(struct bench_options, dtype), "TYPE",
     "f32 (default), f64, f16, bf16, i32 or i64"},
    {"reduction", 0, OPTION_TEXT, offsetof(struct bench_options, reduction), "NAME",
     "sum (default), max or min"},
    {"lanes", 0, OPTION_COUNT, offsetof(struct bench_options, lanes), "N",
     "independent parts of a schedule, 1 to 4 (default 1)"},
    {"segment", 0, OPTION_TEXT, offsetof(struct bench_options, segment), "SIZE",
     "at most so much of a buffer is under way in each lane (default: by ranks)"},
    {"block", 0, OPTION_COUNT, offsetof(struct bench_options, block_ms), "MS",
     "milliseconds of each of the 9 blocks of operations that are timed (default 10)"},
    {"deadline", 0, OPTION_FLOAT, offsetof(struct bench_options, deadline_s), "S",
     "seconds without progress after which all ranks give up (default 30)"},
    {"json", 0, OPTION_FLAG, offsetof(struct bench_options, json), NULL, "machine-readable"},
    {0},
};

/* What is to be measured, as the options say. */
struct bench {
    struct timing_options timing;
    int64_t from, to, factor;
    enum dtype dtype;
    enum comm_reduction reduction;
    unsigned operations;               /* OPERATION_BIT */
    const struct algorithm *algorithm; /* NULL: each */
    const struct backend *backend;     /* NULL: each */
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
    TRY(word_index("backend", o->backend, backend_word, backend_count(), &index, err));
    bench->backend = index < 0 ? NULL : backend_at(index);
    if (bench->algorithm && !(bench->algorithm->operations & bench->operations))
        return FAIL(err, STATUS_FAILED, "%s has no schedule for %s", bench->algorithm->name,
                    o->operation ? o->operation : operation_name(COMM_ALL_REDUCE));
    return STATUS_OK;
}

static enum status read_options(const struct bench_options *o, struct bench *bench,
                                struct error *err)
{
    TRY(read_words(o, bench, err));
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
    if (o->deadline_s < 0 || o->deadline_s > 1e6)
        return FAIL(err, STATUS_FAILED, "--deadline %g: take seconds up to 1e6", o->deadline_s);
    double deadline_s = o->deadline_s > 0 ? o->deadline_s : DEADLINE_S;
    bench->timing.schedule.lanes = (int)o->lanes;
    bench->timing.ranks = o->ranks ? (int)o->ranks : RANKS_DEFAULT;
    bench->timing.block_ns = (uint64_t)(o->block_ms ? o->block_ms : BLOCK_MS) * 1000000u;
    bench->timing.deadline_ns = (uint64_t)(deadline_s * 1e9);
    return STATUS_OK;
}

static enum status add_case(struct bench_part *part, struct timing_case c, struct error *err)
{
    if (part->count == part->capacity) {
        int capacity = part->capacity ? 2 * part->capacity : 64;
        struct timing_case *cases = realloc(part->cases, (size_t)capacity * sizeof(*cases));
        if (!cases)
            return FAIL_NO_MEMORY(err);
        part->cases = cases;
        part->capacity = capacity;
    }
    part->cases[part->count++] = c;
    return STATUS_OK;
}

static enum status add_size(const struct bench *bench, struct bench_part *part,
                            enum comm_operation operation, int64_t bytes, struct error *err)
{
    struct timing_case c = {.operation = operation,
                            .reduction = bench->reduction,
                            .dtype = bench->dtype,
                            .bytes = bytes};
    for (int k = -1; k < algorithm_count(); k++) {
        c.algorithm = k < 0 ? NULL : algorithm_at(k);
        bool wanted = !bench->algorithm || c.algorithm == bench->algorithm;
        if (!wanted || (c.algorithm && !(c.algorithm->operations & OPERATION_BIT(operation))))
            continue;
        for (int place = 0; place < (operation == COMM_ALL_TO_ALL ? 1 : 2); place++) {
            c.in_place = place;
            TRY(add_case(part, c, err));
        }
    }
    return STATUS_OK;
}

static enum status add_cases(const struct bench *bench, struct bench_part *part, struct error *err)
{
    for (int64_t bytes = bench->from; bytes <= bench->to; bytes *= bench->factor) {
        struct timing_case copy = {
            .reduction = bench->reduction, .dtype = bench->dtype, .bytes = bytes, .copies = true};
        TRY(add_case(part, copy, err));
        for (int operation = 0; operation < COMM_OPERATION_COUNT; operation++)
            if (bench->operations & OPERATION_BIT(operation))
                TRY(add_size(bench, part, (enum comm_operation)operation, bytes, err));
    }
    part->results = calloc((size_t)part->count, sizeof(*part->results));
    return part->results ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static int64_t wrong_of(const struct bench_part *part)
{
    int64_t wrong = 0;
    for (int k = 0; k < part->count; k++)
        wrong += part->results[k].wrong;
    return wrong;
}

static enum status measure(const struct bench *bench, struct bench_part *parts, int *count,
                           struct error *err)
{
    *count = 0;
    for (int k = 0; k < backend_count(); k++) {
        const struct backend *backend = backend_at(k);
        if (bench->backend ? backend != bench->backend : !backend->for_measures)
            continue;
        struct bench_part *part = &parts[(*count)++];
        struct timing_options timing = bench->timing;
        *part = (struct bench_part){.backend = backend};
        timing.backend = backend;
        TRY(add_cases(bench, part, err));
        TRY(timing_run(&timing, part->cases, part->count, part->results, err));
    }
    return STATUS_OK;
}

/* What a reader must know beside the numbers. */
static void print_notes(const struct bench *bench)
{
    if (bench->timing.ranks == 1)
        fprintf(stderr, "one rank: nothing is sent\n");
    if (bench->backend && !bench->backend->for_measures)
        fprintf(stderr, "times of %s mean nothing: %s\n", bench->backend->name,
                bench->backend->summary);
}

static int report(const struct bench *bench, const struct bench_options *o,
                  const struct bench_part *parts, int count)
{
    int64_t wrong = 0;
    print_notes(bench);
    if (o->json)
        bench_print_json(&bench->timing, parts, count);
    for (int k = 0; k < count; k++) {
        wrong += wrong_of(&parts[k]);
        if (o->json)
            continue;
        bench_print_table(&parts[k], bench->timing.ranks);
    }
    if (wrong)
        fprintf(stderr, "ridge: %" PRId64 " elements are wrong\n", wrong);
    return wrong ? EXIT_WRONG : EXIT_FINE;
}

static int run_bench(const struct bench_options *o)
{
    struct bench bench = {.timing = {0}};
    struct error err = {0};
    if (read_options(o, &bench, &err) != STATUS_OK) {
        fprintf(stderr, "ridge: %s\n", err.message);
        return EXIT_USAGE;
    }
    struct bench_part *parts = calloc((size_t)backend_count(), sizeof(*parts));
    int count = 0, code;
    fflush(NULL);
    if (!parts || measure(&bench, parts, &count, &err) != STATUS_OK)
        code = parts ? command_fail(&err) : EXIT_WRONG;
    else
        code = report(&bench, o, parts, count);
    for (int k = 0; k < count; k++) {
        free(parts[k].cases);
        free(parts[k].results);
    }
    free(parts);
    return code;
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
        "back, in 9 blocks; a time is the median of the blocks, each that of its slowest rank.\n"
        "algbw is bytes / time; busbw is algbw x 2 (N - 1) / N for all_reduce, (N - 1) / N for\n"
        "reduce_scatter, all_gather and all_to_all, 1 for broadcast, as nccl-tests count. \"copy\n"
        "alone\" is each rank copying the same bytes once, all at a time: \"of copy\" is its time\n"
        "over that of the operation. \"wrong\" counts elements that are not exactly right.\n",
    .options = options,
    .values_size = sizeof(struct bench_options),
    .words_min = 1,
    .main = bench,
};
