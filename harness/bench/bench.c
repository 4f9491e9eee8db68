/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/bench/bench.h"

#include <stdlib.h>
#include <string.h>

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
                            .wire = bench->wire,
                            .bytes = bytes};
    for (int k = -1; k < algorithm_count(); k++) {
        c.algorithm = k < 0 ? NULL : algorithm_at(k);
        bool wanted = !bench->algorithm || c.algorithm == bench->algorithm;
        bool chosen = c.algorithm && !bench->algorithm; /* a device leaves nothing to choose */
        if (!wanted || (chosen && part->backend->device) ||
            (c.algorithm && !(c.algorithm->operations & OPERATION_BIT(operation))))
            continue;
        for (int place = 0; place < (operation == COMM_ALL_TO_ALL ? 1 : 2); place++) {
            c.in_place = place;
            TRY(add_case(part, c, err));
        }
    }
    return STATUS_OK;
}

/* What LogGP is fitted to: trips of one message and of several, of each size up to 1 MiB, and some
 * of small ones with pauses that are longer than anything else in them. */
static enum status add_trips(const struct bench *bench, struct bench_part *part, struct error *err)
{
    enum { SEVERAL = 16, BYTES_LEAST = 8, BYTES_MOST = 1 << 20, APART_NS = 100000 };
    for (int64_t bytes = BYTES_LEAST; bytes <= BYTES_MOST; bytes *= 8)
        for (int several = 0; several < 2; several++) {
            struct timing_case c = {.dtype = bench->dtype, .bytes = bytes};
            c.trip = (struct trip){several ? SEVERAL : 1, (size_t)bytes, 0};
            TRY(add_case(part, c, err));
            c.trip.apart_ns = APART_NS;
            if (several && bytes == BYTES_LEAST)
                TRY(add_case(part, c, err));
        }
    return STATUS_OK;
}

static enum status bench_cases(const struct bench *bench, struct bench_part *part,
                               struct error *err)
{
    for (int64_t bytes = bench->from; bytes <= bench->to; bytes *= bench->factor) {
        struct timing_case copy = {
            .reduction = bench->reduction, .dtype = bench->dtype, .bytes = bytes, .copies = true};
        TRY(add_case(part, copy, err));
        for (int operation = 0; operation < COMM_OPERATION_COUNT; operation++)
            if (bench->operations & OPERATION_BIT(operation))
                TRY(add_size(bench, part, (enum comm_operation)operation, bytes, err));
        if (bytes > bench->to / bench->factor)
            break; /* 64 bits may not hold the next */
    }
    if (bench->log_gp)
        TRY(add_trips(bench, part, err));
    part->results = calloc((size_t)part->count + 1, sizeof(*part->results));
    return part->results ? STATUS_OK : FAIL_NO_MEMORY(err);
}

void bench_part_release(struct bench_part *part)
{
    free(part->cases);
    free(part->results);
}

static enum status run_turn(const struct bench *bench, struct bench_part *part,
                            struct timing *results, struct error *err)
{
    struct timing_options timing = bench->timing;
    timing.backend = part->backend;
    if (bench->platform)
        return bench_simulate(bench, part, results, err);
    if (part->backend->launcher && !bench->launched)
        return bench_launch(bench, part, results, err);
    return timing_run(&timing, part->cases, part->count, results, err);
}

/* One turn of one backend, added to what it has. */
static enum status take_turn(const struct bench *bench, struct bench_part *part, bool first,
                             struct error *err)
{
    struct timing *results = calloc((size_t)part->count, sizeof(*results));
    if (!results)
        return FAIL_NO_MEMORY(err);
    enum status status = run_turn(bench, part, results, err);
    for (int k = 0; k < part->count && status == STATUS_OK; k++)
        if (first)
            part->results[k] = results[k];
        else if (results[k].status == STATUS_OK)
            timing_join(&part->results[k], &results[k]);
    free(results);
    return status;
}

enum status bench_measure(const struct bench *bench, struct bench_part *parts, struct error *err)
{
    for (int k = 0; k < bench->backend_count; k++) {
        parts[k] = (struct bench_part){.backend = bench->backends[k]};
        TRY(bench_cases(bench, &parts[k], err));
    }
    for (int turn = 0; turn < bench->turns; turn++)
        for (int k = 0; k < bench->backend_count; k++)
            TRY(take_turn(bench, &parts[k], turn == 0, err));
    return STATUS_OK;
}

int64_t bench_wrong(const struct bench_part *parts, int count)
{
    int64_t wrong = 0;
    for (int p = 0; p < count; p++)
        for (int k = 0; k < parts[p].count; k++)
            wrong += parts[p].results[k].wrong > 0 ? parts[p].results[k].wrong : 0;
    return wrong;
}
