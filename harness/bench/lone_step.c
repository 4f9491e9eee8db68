/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/train/reduce.h"
#include "harness/bench/step_simulate.h"
#include "harness/suite/point_params.h"
#include "results/query.h"
#include "workloads/workload.h"

void lone_step_release(struct lone_step *step)
{
    free(step->units);
    *step = (struct lone_step){0};
}

static enum status make_units(int64_t count, struct lone_step *out, struct error *err)
{
    *out = (struct lone_step){.unit_count = (int)count,
                              .units = calloc((size_t)count + 1, sizeof(*out->units))};
    return out->units ? STATUS_OK : FAIL_NO_MEMORY(err);
}

/* The last unit is ready when the step ends, at the latest: the last step may have been slower than
 * the median. */
static void fit_into_step(struct lone_step *step)
{
    double last = step->unit_count ? step->units[step->unit_count - 1].ready_s : 0;
    for (int k = 0; k < step->unit_count && last > step->compute_s; k++)
        step->units[k].ready_s *= step->compute_s / last;
}

static enum status from_grid(const struct grid *g, struct lone_step *out, struct error *err)
{
    TRY(make_units(g->row_count, out, err));
    out->compute_s = grid_number(g, 0, "computing");
    out->threads = (int)grid_number(g, 0, "threads");
    for (int k = 0; k < out->unit_count; k++) {
        out->units[k].bytes = (int64_t)grid_number(g, k, "bytes");
        out->units[k].ready_s = grid_number(g, k, "ready");
    }
    fit_into_step(out);
    return STATUS_OK;
}

static enum status measured(const char *db, const char *workload, int64_t batch, const char *params,
                            struct lone_step *out, struct error *err)
{
    const struct workload *w = workload_of(workload);
    const struct query_value values[] = {{.name = "workload", .text = w ? w->name : ""},
                                         {.name = "params", .text = params},
                                         {.name = "batch", .number = (double)batch}};
    struct store *store;
    struct grid grid;
    TRY(store_open(db, STORE_READ, &store, err));
    enum status status = query_view(store, "lone_step", values, ARRAY_COUNT(values), &grid, err);
    if (status == STATUS_OK) {
        status = grid.row_count
                     ? from_grid(&grid, out, err)
                     : FAIL(err, STATUS_FAILED,
                            "%s has no ranks of %s with %lld samples each: measure two first "
                            "(ridge scale ... --ranks 2 --db), or say --step-time",
                            db, workload, (long long)batch);
        grid_release(&grid);
    }
    store_close(store);
    return status;
}

enum status lone_step_measured(const char *db, const char *workload, int64_t batch,
                               struct lone_step *out, struct error *err)
{
    struct arena arena = {.head = NULL};
    const char *params = point_params(&arena, workload);
    enum status status =
        params ? measured(db, workload, batch, params, out, err) : FAIL_NO_MEMORY(err);
    arena_release(&arena);
    return status;
}

enum status lone_step_join(const struct lone_step *step, int ranks, struct lone_step *out,
                           struct error *err)
{
    int64_t unit_bytes = reduce_unit_bytes(ranks);
    int count = step->unit_count, *ends = calloc((size_t)count + 1, sizeof(*ends)), first = 0;
    int64_t *bytes = calloc((size_t)count + 1, sizeof(*bytes));
    enum status status = ends && bytes ? make_units(count, out, err) : FAIL_NO_MEMORY(err);
    for (int k = 0; k < count && status == STATUS_OK; k++) {
        bytes[k] = step->units[k].bytes;
        ends[k] = k + 1;
    }
    if (status == STATUS_OK && unit_bytes > reduce_unit_bytes(2))
        out->unit_count = reduce_cut(unit_bytes, count, bytes, ends);
    for (int k = 0; status == STATUS_OK && k < out->unit_count; first = ends[k++]) {
        out->units[k].ready_s = step->units[ends[k] - 1].ready_s;
        for (int of = first; of < ends[k]; of++)
            out->units[k].bytes += bytes[of];
    }
    if (status == STATUS_OK) {
        out->compute_s = step->compute_s;
        out->threads = step->threads;
    }
    free(ends);
    free(bytes);
    return status;
}

/* ---- from the plan ---- */

static double flops_of(const struct exe *exe, int step)
{
    struct cost cost = exe_step_at(exe, step).cost;
    return 2 * cost.macs + cost.elementwise;
}

static void take_units(const struct exe *exe, struct lone_step *out)
{
    double all = 0, before = 0;
    int unit = 0;
    for (int k = 0; k < exe_step_count(exe); k++)
        all += flops_of(exe, k);
    for (int k = 0; k < exe_step_count(exe); k++) {
        before += flops_of(exe, k);
        if (unit < out->unit_count && exe_exchange_at(exe, unit).step == k) {
            out->units[unit].bytes = (int64_t)exe_exchange_at(exe, unit).bytes;
            out->units[unit++].ready_s = all > 0 ? out->compute_s * before / all : out->compute_s;
        }
    }
}

/* Compiled as if there were two ranks, which never meet. */
enum status lone_step_planned(const struct train_job *job, double compute_s, struct lone_step *out,
                              struct error *err)
{
    const struct backend *loop = backend_find("loop");
    struct group_options options = {.deadline_ns = UINT64_MAX / 4};
    struct communicator_options how = {.algorithm = NULL};
    struct train_job planned = *job;
    struct trainer *trainer = NULL;
    struct comm comm = {0};
    struct group *group;
    TRY(loop->group_new(2, &options, &group, err));
    enum status status = communicator_open(loop, group, 0, &how, &comm, err);
    planned.model.comm = &comm;
    planned.model.no_tune = true;
    planned.wire = NULL; /* it makes the same units shorter */
    if (status == STATUS_OK)
        status = trainer_open(&planned, &trainer, err);
    if (status == STATUS_OK)
        status = make_units(exe_exchange_count(trainer_exe(trainer)), out, err);
    if (status == STATUS_OK) {
        out->compute_s = compute_s;
        take_units(trainer_exe(trainer), out);
    }
    trainer_close(trainer);
    communicator_close(&comm);
    loop->group_free(group);
    return status;
}
