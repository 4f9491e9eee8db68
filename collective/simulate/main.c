/* SPDX-License-Identifier: Apache-2.0
 *
 * One simulated rank: the same schedules, exchange and backend as between real ranks, compiled
 * against SimGrid's SMPI, which runs as many of them as wanted in one process and says how long
 * their messages take on a network that exists on paper. Computing takes no time there.
 *
 * Usage, under smpirun: ridge_ranks cases|steps FILE LANES SEGMENT NODE_RANKS SHARED. FILE has
 * lines of timing_case_write, of which rank 0 prints results (timing_write), or steps (steps.h). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/plugins/mpi/mpi_backend.h"
#include "collective/simulate/steps.h"
#include "collective/timing_text.h"

enum { CASES_MAX = 512, LINE_BYTES = 512, ARGUMENTS = 7, BLOCKS = 1 };

/* One piece of memory for all ranks, as large as one of them needs. */
static void *shared_memory(size_t bytes)
{
    return SMPI_SHARED_MALLOC(bytes);
}

static int read_cases(const char *path, struct timing_case *cases, int *indices)
{
    FILE *file = fopen(path, "re");
    char line[LINE_BYTES];
    int count = 0;
    while (file && count < CASES_MAX && fgets(line, sizeof(line), file))
        count += timing_case_read(line, &indices[count], &cases[count]);
    if (file)
        fclose(file);
    return count;
}

static int64_t number_of(const char *word)
{
    return strtoll(word, NULL, 10);
}

static struct schedule_options schedule_of(char **words)
{
    return (struct schedule_options){(int)number_of(words[3]), number_of(words[4]),
                                     (int)number_of(words[5])};
}

static enum status time_cases(char **words, const struct timing_case *cases, const int *indices,
                              int count, struct timing *results, struct error *err)
{
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct timing_options options = {.backend = &mpi_backend,
                                     .ranks = ranks,
                                     .deadline_ns = UINT64_MAX / 4,
                                     .blocks = BLOCKS,
                                     .schedule = schedule_of(words),
                                     .memory = number_of(words[6]) ? shared_memory : NULL};
    TRY(timing_run_rank(&options, cases, count, results, err));
    for (int k = 0; k < count && rank == 0; k++)
        timing_write(stdout, indices[k], &results[k]);
    fflush(stdout);
    return STATUS_OK;
}

static enum status simulate_cases(char **words, struct error *err)
{
    struct timing_case *cases = calloc(CASES_MAX, sizeof(*cases));
    struct timing *results = calloc(CASES_MAX, sizeof(*results));
    int *indices = calloc(CASES_MAX, sizeof(*indices));
    int count = cases && results && indices ? read_cases(words[2], cases, indices) : 0;
    enum status status = count > 0 ? time_cases(words, cases, indices, count, results, err)
                                   : FAIL(err, STATUS_FAILED, "no cases in %s", words[2]);
    free(cases);
    free(results);
    free(indices);
    return status;
}

int main(int argc, char **argv)
{
    struct error err = {0};
    MPI_Init(&argc, &argv);
    if (argc != ARGUMENTS)
        return 2;
    struct schedule_options schedule = schedule_of(argv);
    enum status status = strcmp(argv[1], "steps") == 0
                             ? simulate_steps(&mpi_backend, argv[2], &schedule, &err)
                             : simulate_cases(argv, &err);
    if (status != STATUS_OK)
        fprintf(stderr, "simulated rank: %s\n", err.message);
    return status == STATUS_OK ? 0 : 1;
}
