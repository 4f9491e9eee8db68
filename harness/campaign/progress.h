/* SPDX-License-Identifier: Apache-2.0
 *
 * One line on the terminal: which point, which phase, how much is left. Written to stderr and only
 * when that is a terminal; erased before anything else is printed. */
#ifndef HARNESS_CAMPAIGN_PROGRESS_H
#define HARNESS_CAMPAIGN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool shown;      /* stderr is a terminal, and nobody asked for silence */
    bool dirty;      /* a line stands there */
    int done, total; /* points */
    const char *label;
    uint64_t began_ns;
};

void progress_begin(struct progress *progress, int total, bool quiet);
/* A point starts: "resnet50 b32". */
void progress_point(struct progress *progress, int index, const char *label);
/* share in [0, 1]; NAN: not known. seconds_left of this phase, NAN: not known. */
void progress_show(struct progress *progress, const char *phase, double share, double seconds_left);
void progress_clear(struct progress *progress);

#endif
