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

void timing_case_write(FILE *file, int index, const struct timing_case *c)
{
    fprintf(file, "case %d %s %s %s %s %s %" PRId64 " %d %d\n", index, operation_name(c->operation),
            c->algorithm ? c->algorithm->name : "-", reduction_name(c->reduction),
            dtype_name(c->dtype), c->wire == DTYPE_NONE ? "-" : dtype_name(c->wire), c->bytes,
            c->root, c->in_place);
}

static bool find_operation(const char *name, enum comm_operation *out)
{
    for (int k = 0; k < COMM_OPERATION_COUNT; k++)
        if (strcmp(name, operation_name((enum comm_operation)k)) == 0)
            return *out = (enum comm_operation)k, true;
    return false;
}

static bool find_reduction(const char *name, enum comm_reduction *out)
{
    for (int k = 0; k < COMM_REDUCTION_COUNT; k++)
        if (strcmp(name, reduction_name((enum comm_reduction)k)) == 0)
            return *out = (enum comm_reduction)k, true;
    return false;
}

bool timing_case_read(const char *line, int *index, struct timing_case *c)
{
    char operation[32], algorithm[32], reduction[32], dtype[32], wire[32];
    int in_place;
    *c = (struct timing_case){0};
    if (sscanf(line, "case %d %31s %31s %31s %31s %31s %" SCNd64 " %d %d", index, operation,
               algorithm, reduction, dtype, wire, &c->bytes, &c->root, &in_place) != 9)
        return false;
    c->in_place = in_place;
    c->algorithm = algorithm_find(algorithm);
    c->dtype = dtype_from_name(dtype);
    c->wire = strcmp(wire, "-") == 0 ? DTYPE_NONE : dtype_from_name(wire);
    return find_operation(operation, &c->operation) && find_reduction(reduction, &c->reduction) &&
           (c->algorithm || strcmp(algorithm, "-") == 0);
}
