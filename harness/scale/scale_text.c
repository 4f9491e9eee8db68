/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "harness/scale/scale_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_MAX = 1 << 20 }; /* steps, ranks, units */

static void write_unit(const struct scale_unit *u, int rank, int index, FILE *to)
{
    fprintf(to,
            "unit %d %d %s %s %" PRId64 " %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64
            " %" PRIu64 "\n",
            rank, index, u->operation[0] ? u->operation : "-", u->algorithm[0] ? u->algorithm : "-",
            u->bytes, u->messages, u->bytes_sent, u->ready_ns, u->started_ns, u->ended_ns,
            u->waited_ns);
}

void scale_result_write(const struct scale_result *r, FILE *to)
{
    fprintf(to, "point %d %d %" PRId64 " %" PRId64 " %" PRId64 " %d %d %.17g %.17g\n", r->ranks,
            r->threads, r->batch, r->steps, r->warm_up, r->detailed, r->unit_count, r->step_s,
            r->samples_per_s);
    for (int64_t k = 0; k < r->steps; k++)
        fprintf(to, "step %" PRId64 " %.17g %.17g\n", k, r->step_times[k], r->losses[k]);
    for (int rank = 0; rank < r->ranks; rank++) {
        const struct scale_rank *one = &r->by_rank[rank];
        fprintf(to, "rank %d %.17g %.17g %.17g %.17g %.17g %" PRId64 " %" PRId64 "\n", rank,
                one->step_s, one->communication_s, one->exposed_s, one->input_s, one->computing_s,
                one->state_bytes, one->work_bytes);
        for (int k = 0; k < r->unit_count && rank < r->detailed; k++)
            write_unit(&one->units[k], rank, k, to);
    }
    fprintf(to, "end %d\n", r->ranks);
}

static bool is_sane(const struct scale_result *r)
{
    return r->ranks > 0 && r->ranks <= COUNT_MAX && r->steps > 0 && r->steps <= COUNT_MAX &&
           r->warm_up >= 0 && r->warm_up < r->steps && r->detailed >= 0 &&
           r->detailed <= r->ranks && r->unit_count >= 0 && r->unit_count <= COUNT_MAX;
}

static enum status read_point(const char *line, struct scale_result *r, struct error *err)
{
    scale_result_release(r);
    if (sscanf(line, "point %d %d %" SCNd64 " %" SCNd64 " %" SCNd64 " %d %d %lf %lf", &r->ranks,
               &r->threads, &r->batch, &r->steps, &r->warm_up, &r->detailed, &r->unit_count,
               &r->step_s, &r->samples_per_s) != 9 ||
        !is_sane(r)) {
        *r = (struct scale_result){0};
        return FAIL(err, STATUS_FAILED, "not a scaling point: %.80s", line);
    }
    r->step_times = calloc((size_t)r->steps, sizeof(*r->step_times));
    r->losses = calloc((size_t)r->steps, sizeof(*r->losses));
    r->by_rank = calloc((size_t)r->ranks, sizeof(*r->by_rank));
    if (!r->step_times || !r->losses || !r->by_rank)
        return FAIL_NO_MEMORY(err);
    for (int rank = 0; rank < r->detailed; rank++) {
        r->by_rank[rank].units = calloc((size_t)r->unit_count + 1, sizeof(struct scale_unit));
        if (!r->by_rank[rank].units)
            return FAIL_NO_MEMORY(err);
    }
    return STATUS_OK;
}

static void read_unit(const char *line, struct scale_result *r)
{
    struct scale_unit u = {0};
    int rank, index;
    if (sscanf(line,
               "unit %d %d %23s %23s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64,
               &rank, &index, u.operation, u.algorithm, &u.bytes, &u.messages, &u.bytes_sent,
               &u.ready_ns, &u.started_ns, &u.ended_ns, &u.waited_ns) == 11 &&
        rank >= 0 && rank < r->detailed && index >= 0 && index < r->unit_count &&
        r->by_rank[rank].units)
        r->by_rank[rank].units[index] = u;
}

/* After the first line, which says how many of each there are. */
static void read_line(const char *line, struct scale_result *r)
{
    struct scale_rank one = {0};
    double time, loss;
    int64_t step;
    int rank;
    if (sscanf(line, "step %" SCNd64 " %lf %lf", &step, &time, &loss) == 3 && step >= 0 &&
        step < r->steps) {
        r->step_times[step] = time;
        r->losses[step] = loss;
    } else if (sscanf(line, "rank %d %lf %lf %lf %lf %lf %" SCNd64 " %" SCNd64, &rank, &one.step_s,
                      &one.communication_s, &one.exposed_s, &one.input_s, &one.computing_s,
                      &one.state_bytes, &one.work_bytes) == 8 &&
               rank >= 0 && rank < r->ranks) {
        one.units = r->by_rank[rank].units;
        r->by_rank[rank] = one;
    } else {
        read_unit(line, r);
    }
}

enum status scale_result_read(char *text, struct scale_result *out, struct error *err)
{
    char *rest = NULL;
    int ranks = 0;
    *out = (struct scale_result){0};
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "point ", strlen("point ")) == 0)
            TRY(read_point(line, out, err));
        else if (out->by_rank && sscanf(line, "end %d", &ranks) != 1)
            read_line(line, out);
    }
    return ranks > 0 && ranks == out->ranks
               ? STATUS_OK
               : FAIL(err, STATUS_FAILED, "the ranks returned no results");
}
