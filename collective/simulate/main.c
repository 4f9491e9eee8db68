/* SPDX-License-Identifier: Apache-2.0
 *
 * One simulated rank: the same schedules, exchange and backend as between real ranks, compiled
 * against SimGrid's SMPI, which runs as many of them as wanted in one process and says how long
 * their messages take on a network that exists on paper. Computing takes no time there.
 *
 * Usage, under smpirun: ridge_ranks CASES RANKS SHARED LANES SEGMENT NODE_RANKS; CASES is a file
 * of timing_case_write. Rank 0 prints results (timing_write). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "collective/plugins/mpi/mpi_backend.h"
#include "collective/timing_text.h"

enum { CASES_MAX = 512, LINE_BYTES = 512, ARGUMENTS = 7, BLOCKS = 1 };

/* One piece of memory for all ranks, as large as one of them needs. */
static void *shared_room(size_t bytes)
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

static int simulate(char **words, const struct timing_case *cases, const int *indices, int count,
                    struct timing *results)
{
    struct error err = {0};
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct timing_options options = {.backend = &mpi_backend,
                                     .ranks = ranks,
                                     .deadline_ns = UINT64_MAX / 4,
                                     .blocks = BLOCKS,
                                     .room = number_of(words[3]) ? shared_room : NULL};
    options.schedule = (struct schedule_options){(int)number_of(words[4]), number_of(words[5]),
                                                 (int)number_of(words[6])};
    if (timing_run_rank(&options, cases, count, results, &err) != STATUS_OK) {
        fprintf(stderr, "rank %d: %s\n", rank, err.message);
        return 1;
    }
    for (int k = 0; k < count && rank == 0; k++)
        timing_write(stdout, indices[k], &results[k]);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    struct timing_case *cases = calloc(CASES_MAX, sizeof(*cases));
    struct timing *results = calloc(CASES_MAX, sizeof(*results));
    int *indices = calloc(CASES_MAX, sizeof(*indices));
    int code = 2;
    MPI_Init(&argc, &argv);
    int count =
        argc == ARGUMENTS && cases && results && indices ? read_cases(argv[1], cases, indices) : 0;
    if (count > 0)
        code = simulate(argv, cases, indices, count, results);
    else
        fprintf(stderr, "ridge_ranks: no cases in %s\n", argc > 1 ? argv[1] : "no file");
    free(cases);
    free(results);
    free(indices);
    return code;
}
