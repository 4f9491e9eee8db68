/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases among simulated ranks. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "collective/timing_text.h"
#include "harness/bench/bench.h"
#include "harness/bench/smpi.h"

enum { OUTPUT_BYTES = 4 << 20 };

/* As much as all ranks together may have before they share one memory. */
#define OWN_MEMORY_BYTES (INT64_C(2) << 30)

/* Nothing is computed, so nothing is copied alone; and SimGrid's MPI_Iallreduce in place is wrong.
 */
static bool is_simulated(const struct timing_case *c)
{
    bool own = c->algorithm && c->algorithm->own == OWN_STARTED;
    return !c->copies && !c->trip.messages && !(own && c->in_place);
}

static enum status write_cases(const struct bench_part *part, const struct smpi *smpi,
                               struct error *err)
{
    FILE *cases = fopen(smpi->input, "we");
    for (int k = 0; k < part->count && cases; k++)
        if (is_simulated(&part->cases[k]))
            timing_case_write(cases, k, &part->cases[k]);
    return cases && fclose(cases) == 0
               ? STATUS_OK
               : FAIL(err, STATUS_FAILED, "cannot write into %s", smpi->folder);
}

static enum status run(const struct bench *bench, const struct smpi *smpi, char *text,
                       struct error *err)
{
    const struct schedule_options *o = &bench->timing.schedule;
    char lanes[16], segment[32], node_ranks[16];
    bool shared = bench->to * 2 * bench->timing.ranks > OWN_MEMORY_BYTES;
    snprintf(lanes, sizeof(lanes), "%d", o->lanes);
    snprintf(segment, sizeof(segment), "%" PRId64, o->segment_bytes);
    snprintf(node_ranks, sizeof(node_ranks), "%d",
             o->node_ranks ? o->node_ranks : (int)smpi->platform.ranks_per_host);
    const char *const words[] = {"cases",    smpi->input,        lanes, segment,
                                 node_ranks, shared ? "1" : "0", NULL};
    return smpi_run(smpi, words, text, OUTPUT_BYTES, err);
}

enum status bench_simulate(const struct bench *bench, const struct bench_part *part,
                           struct timing *results, struct error *err)
{
    struct smpi smpi;
    TRY(smpi_open(bench->platform, bench->timing.ranks, &smpi, err));
    char *text = malloc(OUTPUT_BYTES);
    enum status status = text ? write_cases(part, &smpi, err) : FAIL_NO_MEMORY(err);
    if (status == STATUS_OK)
        status = run(bench, &smpi, text, err);
    if (status == STATUS_OK)
        status = bench_read_lines(text, part, results, err);
    smpi_close(&smpi);
    free(text);
    return status;
}
