/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank is its communication thread: it sleeps until a unit is ready, and carries it out. What is
 * computed after the last unit is ready are the updates: each waits for its unit. Contents do not
 * matter, so all ranks have one memory, and nothing is combined. */
#define _POSIX_C_SOURCE 200809L
#include "collective/simulate/steps.h"

#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { UNITS_MAX = 1024, LINE_BYTES = 256 };

struct unit {
    int64_t bytes;
    double ready_s;
    struct comm_plan *plan; /* owned */
    double started_s, ended_s, waited_s;
};

struct steps {
    double compute_s;
    int steps, kept, unit_count;
    enum dtype dtype;
    const struct algorithm *algorithm;
    struct unit units[UNITS_MAX];
    struct comm comm;
    void *memory;
    int64_t bytes, largest; /* of all units; of one */
};

static bool read_line(const char *line, struct steps *s)
{
    char dtype[32], algorithm[32];
    struct unit unit = {0};
    if (sscanf(line, "step %lf %d %31s %31s %d", &s->compute_s, &s->steps, dtype, algorithm,
               &s->kept) == 5) {
        s->dtype = dtype_from_name(dtype);
        s->algorithm = algorithm_find(algorithm);
        return s->algorithm || strcmp(algorithm, "-") == 0;
    }
    if (sscanf(line, "unit %" SCNd64 " %lf", &unit.bytes, &unit.ready_s) != 2 ||
        s->unit_count == UNITS_MAX || unit.bytes < 1)
        return false;
    s->bytes += unit.bytes;
    s->largest = unit.bytes > s->largest ? unit.bytes : s->largest;
    s->units[s->unit_count++] = unit;
    return true;
}

static enum status read_steps(const char *path, struct steps *s, struct error *err)
{
    char line[LINE_BYTES];
    FILE *file = fopen(path, "re");
    bool good = file;
    while (good && fgets(line, sizeof(line), file))
        good = read_line(line, s);
    if (file)
        fclose(file);
    return good && s->steps > 0 ? STATUS_OK
                                : FAIL(err, STATUS_FAILED, "%s does not describe steps", path);
}

static enum status prepare(struct steps *s, struct error *err)
{
    s->memory = SMPI_SHARED_MALLOC((size_t)s->largest + 8);
    if (!s->memory)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < s->unit_count; k++) {
        struct comm_call call = {.operation = COMM_ALL_REDUCE,
                                 .dtype = s->dtype,
                                 .count = s->units[k].bytes / (int64_t)dtype_size(s->dtype)};
        TRY(s->comm.prepare(&s->comm, &call, &s->units[k].plan, err));
    }
    return STATUS_OK;
}

/* Simulated, as all of nanosleep is in this program. */
static void sleep_until(double time_s)
{
    double left = time_s - MPI_Wtime();
    struct timespec time = {.tv_sec = left > 0 ? (time_t)left : 0};
    time.tv_nsec = left > 0 ? (long)((left - (double)time.tv_sec) * 1e9) : 0;
    if (left > 0)
        nanosleep(&time, NULL);
}

static enum status one_step(struct steps *s, double began, double *ended, struct error *err)
{
    double last = 0;
    for (int k = 0; k < s->unit_count; k++) {
        struct unit *unit = &s->units[k];
        sleep_until(began + unit->ready_s);
        unit->started_s = MPI_Wtime() - began;
        TRY(s->comm.start(&s->comm, unit->plan, s->memory, s->memory, err));
        TRY(s->comm.wait(&s->comm, unit->plan, err));
        unit->ended_s = MPI_Wtime() - began;
        last = unit->ready_s > last ? unit->ready_s : last;
    }
    double updates = s->compute_s > last ? s->compute_s - last : 0, at = last;
    for (int k = 0; k < s->unit_count; k++) {
        struct unit *unit = &s->units[k];
        unit->waited_s = unit->ended_s > at ? unit->ended_s - at : 0;
        at += unit->waited_s + updates * (double)unit->bytes / (double)s->bytes;
    }
    *ended = began + (s->unit_count ? at : s->compute_s);
    sleep_until(*ended);
    return STATUS_OK;
}

static void print_step(const struct steps *s, int step, double began, double ended)
{
    double communication = 0, exposed = 0;
    for (int k = 0; k < s->unit_count; k++) {
        communication += s->units[k].ended_s - s->units[k].started_s;
        exposed += s->units[k].waited_s;
    }
    printf("rank %d %d %.12g %.12g %.12g %.12g\n", s->comm.rank, step, began, ended, communication,
           exposed);
    for (int k = 0; k < s->unit_count && step + 1 == s->steps && s->comm.rank < s->kept; k++) {
        const struct unit *unit = &s->units[k];
        struct comm_record of;
        s->comm.record(&s->comm, unit->plan, &of);
        printf("unit %d %d %s %" PRId64 " %" PRId64 " %.12g %.12g %.12g %.12g\n", s->comm.rank, k,
               of.algorithm, of.messages, of.bytes_sent, unit->ready_s, unit->started_s,
               unit->ended_s, unit->waited_s);
    }
}

static enum status run_steps(struct steps *s, struct error *err)
{
    TRY(prepare(s, err));
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    for (int k = 0; k < s->steps; k++) {
        double ended;
        TRY(one_step(s, began, &ended, err));
        print_step(s, k, began, ended);
        began = ended;
    }
    fflush(stdout);
    return STATUS_OK;
}

enum status simulate_steps(const struct backend *backend, const char *path,
                           const struct schedule_options *schedule, struct error *err)
{
    struct group_options group_options = {.deadline_ns = UINT64_MAX / 4};
    struct steps *s = calloc(1, sizeof(*s));
    struct group *group;
    int rank, ranks;
    if (!s)
        return FAIL_NO_MEMORY(err);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    enum status status = read_steps(path, s, err);
    if (status == STATUS_OK)
        status = backend->group_new(ranks, &group_options, &group, err);
    if (status == STATUS_OK) {
        struct communicator_options options = {s->algorithm, *schedule, .bytes_alone = true};
        status = communicator_open(backend, group, rank, &options, &s->comm, err);
        if (status == STATUS_OK)
            status = run_steps(s, err);
        for (int k = 0; k < s->unit_count && s->comm.state; k++)
            s->comm.release(&s->comm, s->units[k].plan);
        communicator_close(&s->comm);
        backend->group_free(group);
    }
    if (s->memory)
        SMPI_SHARED_FREE(s->memory);
    free(s);
    return status;
}
