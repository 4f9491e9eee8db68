/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "harness/turns/count_apart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/registry.h"
#include "harness/turns/asked_child.h"
#include "harness/turns/child_words.h"
#include "results/query.h"

enum { WORDS_MAX = CHILD_WORDS_MAX + 24 };

static const double limit_s = 1800; /* patched kernels are slow, and everything is compiled anew */
static const char self[] = "/proc/self/exe";

/* A process at work. */
struct apart {
    const struct profiler *profiler;
    struct arena *arena;
    char folder[400], db[448];
};

/* ---- the process ---- */

/* What is timed there means nothing: as little as can be. */
static enum status command_of(const struct apart *a, const struct point *point,
                              const struct model_options *model, const char *words[WORDS_MAX],
                              struct error *err)
{
    const char *const more[] = {"--profilers",   a->profiler->name,
                                "--db",          a->db,
                                "--rounds",      "1",
                                "--seconds",     "0.02",
                                "--samples",     "6",
                                "--no-verify",   "--no-layers",
                                "--no-ceilings", "--quiet",
                                "--report",      ""};
    const char *usual[CHILD_WORDS_MAX];
    struct model_options chosen = *model;
    int n = 0;
    chosen.retune = false; /* what was chosen here is counted */
    TRY(child_words(self, point, &chosen, a->arena, usual, err));
    for (int k = 0; usual[k]; k++)
        if (strcmp(usual[k], "--on-request") != 0)
            words[n++] = usual[k];
    for (int k = 0; k < ARRAY_COUNT(more); k++)
        words[n++] = more[k];
    words[n] = NULL;
    return STATUS_OK;
}

static enum status make_folder(struct apart *a, struct error *err)
{
    const char *parent = getenv("TMPDIR");
    snprintf(a->folder, sizeof(a->folder), "%.380s/ridge-XXXXXX",
             parent && parent[0] ? parent : "/tmp");
    if (!mkdtemp(a->folder))
        return FAIL(err, STATUS_FAILED, "%s: no folder can be made: set TMPDIR", a->folder);
    snprintf(a->db, sizeof(a->db), "%s/counts.db", a->folder);
    return STATUS_OK;
}

static void remove_folder(const struct apart *a)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char path[sizeof(a->db) + 16];
    for (int k = 0; k < ARRAY_COUNT(ends); k++) {
        snprintf(path, sizeof(path), "%s%s", a->db, ends[k]);
        unlink(path);
    }
    rmdir(a->folder);
}

/* ---- what it stored ---- */

static enum status same_kernels(struct store *store, const struct exe *exe, struct error *err)
{
    struct grid grid;
    enum status status = STATUS_OK;
    TRY(query_sql(store, "SELECT kernel FROM op ORDER BY idx", NULL, 0, &grid, err));
    int64_t steps = exe_step_count(exe);
    if (grid.row_count != steps)
        status = FAIL(err, STATUS_FAILED, "it has %lld steps there, and %lld here",
                      (long long)grid.row_count, (long long)steps);
    for (int64_t s = 0; s < steps && status == STATUS_OK; s++) {
        const char *here = exe_step_at(exe, (int)s).kernel->name;
        const char *there = grid_text(&grid, s, "kernel");
        if (strcmp(here, there) != 0)
            status = FAIL(err, STATUS_FAILED,
                          "step %lld is computed by %s there, and by %s here: is the tuner's cache "
                          "kept?",
                          (long long)s, there, here);
    }
    grid_release(&grid);
    return status;
}

static enum status metric_at(const struct apart *a, const struct grid *grid, int64_t row,
                             struct profiler_metric *m, struct error *err)
{
    m->name = arena_strdup(a->arena, grid_text(grid, row, "name"));
    m->unit = arena_strdup(a->arena, grid_text(grid, row, "metric_unit"));
    m->reason = arena_strdup(a->arena, grid_text(grid, row, "reason"));
    m->formula =
        arena_printf(a->arena, "%s; in a process of its own", grid_text(grid, row, "formula"));
    m->value = grid_number(grid, row, "value");
    return m->name && m->unit && m->reason && m->formula ? STATUS_OK : FAIL_NO_MEMORY(err);
}

static enum status take(const struct apart *a, const struct grid *grid, struct counts *out,
                        struct error *err)
{
    struct step_count *steps = arena_array(a->arena, (size_t)grid->row_count + 1, sizeof(*steps));
    bool counted = false;
    *out = (struct counts){.source = a->profiler->name, .steps = steps};
    if (!steps)
        return FAIL_NO_MEMORY(err);
    for (int64_t row = 0; row < grid->row_count; row++) {
        double op = grid_number(grid, row, "op");
        bool whole = isnan(op);
        if (whole && out->count == PROFILER_METRICS_MAX)
            continue;
        struct profiler_metric *m =
            whole ? &out->metrics[out->count++] : &steps[out->step_count].metric;
        TRY(metric_at(a, grid, row, m, err));
        counted |= !isnan(m->value);
        if (!whole)
            steps[out->step_count++].step = (int)op;
    }
    if (!counted)
        return FAIL(err, STATUS_FAILED, "%s",
                    out->count ? out->metrics[0].reason : "nothing was counted");
    return STATUS_OK;
}

static enum status read_counts(const struct apart *a, struct store *store, const struct exe *exe,
                               struct counts *out, struct error *err)
{
    const struct query_value source = {.name = "source", .text = a->profiler->name};
    struct grid grid;
    TRY(same_kernels(store, exe, err));
    TRY(query_sql(store,
                  "SELECT op, name, unit AS metric_unit, value, reason, formula FROM metric "
                  "WHERE source = :source ORDER BY op, id",
                  &source, 1, &grid, err));
    enum status status = take(a, &grid, out, err);
    grid_release(&grid);
    return status;
}

static enum status read_database(const struct apart *a, const struct exe *exe, struct counts *out,
                                 struct error *err)
{
    struct store *store;
    TRY(store_open(a->db, STORE_READ, &store, err));
    enum status status = read_counts(a, store, exe, out, err);
    store_close(store);
    return status;
}

/* The exit code says whether its times are valid, too, so that it says nothing about its counts. */
enum status count_in_own_process(const struct point *point, const struct model_options *model,
                                 const struct profiler *profiler, const struct exe *exe,
                                 struct arena *arena, struct counts *out, struct error *err)
{
    static const char *const environment[] = {"RIDGE_COUNT_FIRST=1", NULL};
    struct apart a = {.profiler = profiler, .arena = arena};
    const char *words[WORDS_MAX];
    char text[1024];
    struct error ended = {0};
    if (!exe)
        return UNSUPPORTED(err, "there is nothing compiled to count");
    TRY(make_folder(&a, err));
    enum status status = command_of(&a, point, model, words, err);
    if (status == STATUS_OK) {
        enum status ran =
            asked_child_output(words, environment, limit_s, text, sizeof(text), &ended);
        status = read_database(&a, exe, out, err);
        if (status != STATUS_OK && ran != STATUS_OK)
            error_context(err, "%s", ended.message);
    }
    remove_folder(&a);
    return status;
}
