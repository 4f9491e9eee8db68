/* SPDX-License-Identifier: Apache-2.0 */
#include "collective/timing_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void timing_write(FILE *file, int index, const struct timing *timing)
{
    if (timing->status != STATUS_OK)
        return;
    fprintf(file, "sample %d %s %" PRId64 " %" PRId64 " %" PRId64, index,
            timing->algorithm[0] ? timing->algorithm : "-", timing->bytes, timing->per_block,
            timing->wrong);
    fprintf(file, " %" PRId64 " %" PRId64 " %" PRId64, timing->work.messages,
            timing->work.elements_sent, timing->work.elements_added);
    for (int k = 0; k < timing->sample_count; k++)
        fprintf(file, " %.17g", timing->samples[k]);
    fputc('\n', file);
}

bool timing_read(const char *line, int *index, struct timing *timing)
{
    int used = 0;
    *timing = (struct timing){0};
    if (sscanf(line, "sample %d %31s %" SCNd64 " %" SCNd64 " %" SCNd64 "%n", index,
               timing->algorithm, &timing->bytes, &timing->per_block, &timing->wrong, &used) != 5)
        return false;
    line += used;
    if (sscanf(line, "%" SCNd64 " %" SCNd64 " %" SCNd64 "%n", &timing->work.messages,
               &timing->work.elements_sent, &timing->work.elements_added, &used) != 3)
        return false;
    line += used;
    if (strcmp(timing->algorithm, "-") == 0)
        timing->algorithm[0] = '\0';
    while (timing->sample_count < TIMING_SAMPLES_MAX) {
        char *end;
        double seconds = strtod(line, &end);
        if (end == line)
            break;
        timing->samples[timing->sample_count++] = seconds;
        line = end;
    }
    if (timing->sample_count == 0)
        return false;
    timing_summarise(timing);
    return true;
}
