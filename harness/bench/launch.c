/* SPDX-License-Identifier: Apache-2.0
 *
 * `ridge bench collectives --samples` under a launcher, with the options that make the same cases
 * there as here; its lines are the results. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "collective/launcher.h"
#include "collective/timing_text.h"
#include "harness/bench/bench.h"
#include "harness/turns/asked_child.h"

enum { WORDS_MAX = 64, OUTPUT_BYTES = 8 << 20, START_S = 60 };

struct words {
    struct arena arena;
    struct launcher_command launcher;
    const char *list[WORDS_MAX + 1];
    int count;
};

static void add(struct words *words, const char *word)
{
    if (word && words->count < WORDS_MAX)
        words->list[words->count++] = word;
}

static void add_number(struct words *words, const char *option, int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRId64, value);
    add(words, option);
    add(words, arena_strdup(&words->arena, text));
}

static void add_cases(struct words *words, const struct bench *bench)
{
    const struct timing_options *t = &bench->timing;
    int operation = 0;
    while (!(bench->operations & OPERATION_BIT(operation)))
        operation++;
    add(words, "--operation");
    add(words, bench->operations & (bench->operations - 1)
                   ? "all"
                   : operation_name((enum comm_operation)operation));
    if (bench->algorithm) {
        add(words, "--algorithm");
        add(words, bench->algorithm->name);
    }
    if (bench->wire != DTYPE_NONE) {
        add(words, "--wire");
        add(words, dtype_name(bench->wire));
    }
    add(words, "--dtype");
    add(words, dtype_name(bench->dtype));
    add(words, "--reduction");
    add(words, reduction_name(bench->reduction));
    add_number(words, "--from", bench->from);
    add_number(words, "--to", bench->to);
    add_number(words, "--factor", bench->factor);
    add_number(words, "--block", (int64_t)(t->block_ns / 1000000u));
    add_number(words, "--blocks", t->blocks);
    if (t->schedule.lanes)
        add_number(words, "--lanes", t->schedule.lanes);
    if (t->schedule.segment_bytes)
        add_number(words, "--segment", t->schedule.segment_bytes);
    if (t->schedule.node_ranks)
        add_number(words, "--per-node", t->schedule.node_ranks);
    if (t->touch)
        add(words, "--touch");
    if (bench->log_gp)
        add(words, "--loggp");
    add_number(words, "--deadline", (int64_t)((t->deadline_ns + 999999999u) / 1000000000u));
}

static enum status make_words(const struct bench *bench, const struct bench_part *part,
                              const char *program, struct words *words, struct error *err)
{
    TRY(launcher_command_init(&words->launcher, part->backend, bench->timing.ranks, NULL, err));
    for (int k = 0; k < words->launcher.count; k++)
        add(words, words->launcher.words[k]);
    add(words, program);
    add(words, "bench");
    add(words, "collectives");
    add(words, "--samples");
    add(words, "--backend");
    add(words, part->backend->name);
    add_cases(words, bench);
    return words->count < WORDS_MAX ? STATUS_OK : FAIL_NO_MEMORY(err);
}

enum status bench_read_lines(char *text, const struct bench_part *part, struct timing *results,
                             struct error *err)
{
    int found = 0;
    for (int k = 0; k < part->count; k++)
        results[k].status = STATUS_UNSUPPORTED; /* what is not in the lines */
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        struct timing timing;
        int index;
        if (!timing_read(line, &index, &timing) || index < 0 || index >= part->count)
            continue;
        results[index] = timing;
        found++;
    }
    return found ? STATUS_OK
                 : FAIL(err, STATUS_FAILED, "ranks of %s gave no results", part->backend->name);
}

enum status bench_launch(const struct bench *bench, const struct bench_part *part,
                         struct timing *results, struct error *err)
{
    static const char *const environment[] = {NULL};
    const struct timing_options *t = &bench->timing;
    const struct backend *ready;
    char program[4096];
    struct words words = {.count = 0};
    double limit_s =
        START_S +
        4 * (double)part->count * (t->blocks + 8) * ((double)t->block_ns * 1e-9 + 1e-2 * t->ranks) +
        (double)t->deadline_ns * 1e-9;
    TRY(backend_ready(part->backend, &ready, err));
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[length > 0 ? length : 0] = '\0';
    char *text = malloc(OUTPUT_BYTES);
    enum status status = text ? make_words(bench, part, program, &words, err) : FAIL_NO_MEMORY(err);
    if (status == STATUS_OK)
        status = asked_child_output(words.list, environment, limit_s, text, OUTPUT_BYTES, err);
    if (status == STATUS_OK)
        status = bench_read_lines(text, part, results, err);
    arena_release(&words.arena);
    free(text);
    return status;
}
