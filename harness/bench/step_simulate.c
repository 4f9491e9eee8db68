/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/bench/step_simulate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/bench/smpi.h"

enum { KEPT_RANKS = 8, LINE_MOST = 256 };

static enum status write_step(const struct step_simulation *s, const struct smpi *smpi,
                              struct error *err)
{
    const struct lone_step *step = s->step;
    enum dtype dtype = s->wire == DTYPE_NONE ? DTYPE_F32 : s->wire;
    int64_t narrower = (int64_t)(dtype_size(DTYPE_F32) / dtype_size(dtype));
    FILE *file = fopen(smpi->input, "we");
    if (!file)
        return FAIL(err, STATUS_FAILED, "cannot write into %s", smpi->folder);
    fprintf(file, "step %.17g %" PRId64 " %s %s %d\n", step->compute_s, s->steps, dtype_name(dtype),
            s->algorithm ? s->algorithm->name : "-", KEPT_RANKS);
    for (int k = 0; k < step->unit_count; k++)
        fprintf(file, "unit %" PRId64 " %.17g\n", step->units[k].bytes / narrower,
                step->units[s->no_overlap ? step->unit_count - 1 : k].ready_s);
    return fclose(file) == 0 ? STATUS_OK
                             : FAIL(err, STATUS_FAILED, "cannot write into %s", smpi->folder);
}

/* ---- what comes back ---- */

static uint64_t ns_of(double seconds)
{
    return (uint64_t)llround(seconds * 1e9);
}

/* Of the slowest rank. Steps are the same but for the order in which ranks come to them. */
struct ends {
    double began, *ended; /* of each step */
    int64_t lines;
};

static bool read_rank(const char *line, const struct step_simulation *s, struct ends *ends,
                      struct scale_result *out)
{
    int rank, step;
    double began, ended, communication, exposed;
    if (sscanf(line, "rank %d %d %lf %lf %lf %lf", &rank, &step, &began, &ended, &communication,
               &exposed) != 6 ||
        rank < 0 || rank >= s->ranks || step < 0 || step >= s->steps)
        return false;
    if (step == 0)
        ends->began = fmax(ends->began, began);
    ends->ended[step] = fmax(ends->ended[step], ended);
    ends->lines++;
    struct scale_rank *of = &out->by_rank[rank];
    of->step_s += (ended - began) / (double)s->steps;
    of->communication_s += communication / (double)s->steps;
    of->computing_s = s->step->compute_s;
    of->exposed_s += exposed / (double)s->steps;
    return true;
}

static bool read_unit(const char *line, const struct step_simulation *s, struct scale_result *out)
{
    int rank, index;
    struct scale_unit unit = {0};
    double ready, started, ended, waited;
    if (sscanf(line, "unit %d %d %23s %" SCNd64 " %" SCNd64 " %lf %lf %lf %lf", &rank, &index,
               unit.algorithm, &unit.messages, &unit.bytes_sent, &ready, &started, &ended,
               &waited) != 9 ||
        rank < 0 || rank >= out->detailed || index < 0 || index >= out->unit_count)
        return false;
    unit.bytes = s->step->units[index].bytes;
    unit.ready_ns = ns_of(ready);
    unit.started_ns = ns_of(started);
    unit.ended_ns = ns_of(ended);
    unit.waited_ns = ns_of(waited);
    out->by_rank[rank].units[index] = unit;
    return true;
}

static enum status read_lines(char *text, const struct step_simulation *s, struct scale_result *out,
                              struct error *err)
{
    struct ends ends = {.ended = calloc((size_t)s->steps, sizeof(*ends.ended))};
    char *rest = NULL;
    if (!ends.ended)
        return FAIL_NO_MEMORY(err);
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (!read_rank(line, s, &ends, out))
            read_unit(line, s, out);
    bool whole = ends.lines == s->ranks * s->steps;
    for (int64_t k = 0; k < s->steps; k++) {
        out->step_times[k] = ends.ended[k] - (k ? ends.ended[k - 1] : ends.began);
        out->step_s = out->step_times[k]; /* the last one: all have come to it as they do */
    }
    free(ends.ended);
    return whole ? STATUS_OK : FAIL(err, STATUS_FAILED, "a simulated rank returned no times");
}

/* ---- results ---- */

static enum status make_result(const struct step_simulation *s, struct scale_result *out,
                               struct error *err)
{
    *out = (struct scale_result){.simulated = true,
                                 .ranks = s->ranks,
                                 .threads = s->step->threads,
                                 .batch = s->batch * s->ranks,
                                 .steps = s->steps,
                                 .warm_up = s->steps - 1,
                                 .unit_count = s->ranks > 1 ? s->step->unit_count : 0};
    out->detailed = s->ranks < KEPT_RANKS ? s->ranks : KEPT_RANKS;
    out->step_times = calloc((size_t)s->steps, sizeof(*out->step_times));
    out->losses = calloc((size_t)s->steps, sizeof(*out->losses));
    out->by_rank = calloc((size_t)s->ranks, sizeof(*out->by_rank));
    if (!out->step_times || !out->losses || !out->by_rank)
        return FAIL_NO_MEMORY(err);
    for (int64_t k = 0; k < s->steps; k++)
        out->losses[k] = NAN; /* nothing is learnt */
    for (int rank = 0; rank < out->detailed; rank++) {
        struct scale_rank *of = &out->by_rank[rank];
        of->units = calloc((size_t)out->unit_count + 1, sizeof(*of->units));
        if (!of->units)
            return FAIL_NO_MEMORY(err);
    }
    return STATUS_OK;
}

static enum status simulate_ranks(const struct step_simulation *s, struct scale_result *out,
                                  struct error *err)
{
    struct smpi smpi;
    char lanes[16], segment[32], node_ranks[16];
    size_t size =
        (size_t)LINE_MOST * (size_t)(s->ranks * s->steps + out->detailed * out->unit_count + 1);
    TRY(smpi_open(s->platform, s->ranks, &smpi, err));
    const struct schedule_options *o = &s->schedule;
    snprintf(lanes, sizeof(lanes), "%d", o->lanes);
    snprintf(segment, sizeof(segment), "%" PRId64, o->segment_bytes);
    snprintf(node_ranks, sizeof(node_ranks), "%d",
             o->node_ranks ? o->node_ranks : (int)smpi.platform.ranks_per_host);
    const char *const words[] = {"steps", smpi.input, lanes, segment, node_ranks, "1", NULL};
    char *text = malloc(size);
    enum status status = text ? write_step(s, &smpi, err) : FAIL_NO_MEMORY(err);
    if (status == STATUS_OK)
        status = smpi_run(&smpi, words, text, size, err);
    if (status == STATUS_OK)
        status = read_lines(text, s, out, err);
    smpi_close(&smpi);
    free(text);
    return status;
}

static void run_alone(const struct step_simulation *s, struct scale_result *out)
{
    out->by_rank[0].computing_s = s->step->compute_s;
    out->step_s = out->by_rank[0].step_s = s->step->compute_s;
    for (int64_t k = 0; k < s->steps; k++)
        out->step_times[k] = s->step->compute_s;
}

static enum status simulate_step(const struct step_simulation *s, struct scale_result *out,
                                 struct error *err)
{
    TRY(make_result(s, out, err));
    if (s->ranks > 1)
        TRY(simulate_ranks(s, out, err));
    else
        run_alone(s, out);
    out->samples_per_s = (double)out->batch / out->step_s;
    return STATUS_OK;
}

enum status step_simulate(const struct step_simulation *simulation, struct scale_result *out,
                          struct error *err)
{
    struct step_simulation s = *simulation;
    struct lone_step joined = {0};
    *out = (struct scale_result){0};
    if (!s.unit_bytes) {
        TRY(lone_step_join(simulation->step, s.ranks, &joined, err));
        s.step = &joined;
    }
    enum status status = simulate_step(&s, out, err);
    lone_step_release(&joined);
    return status;
}
