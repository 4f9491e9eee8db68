/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/campaign/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/clock.h"

enum { BAR_CELLS = 24 };

void progress_begin(struct progress *progress, int total, bool quiet)
{
    const char *term = getenv("TERM");
    bool able = isatty(STDERR_FILENO) && (!term || strcmp(term, "dumb") != 0);
    *progress = (struct progress){.shown = able && !quiet, .total = total, .label = ""};
    progress->began_ns = clock_now_ns();
}

void progress_point(struct progress *progress, int index, const char *label)
{
    progress->done = index;
    progress->label = label;
}

/* The total time left, estimated from the points so far; during the first only the time of its
 * phase is known. */
static double whole_left(const struct progress *p, double phase_left)
{
    double spent = (double)(clock_now_ns() - p->began_ns) * 1e-9;
    if (p->done < 1)
        return phase_left;
    return spent / p->done * (p->total - p->done);
}

void progress_show(struct progress *p, const char *phase, double share, double seconds_left)
{
    char bar[BAR_CELLS + 1];
    if (!p->shown)
        return;
    double whole = (p->done + (isnan(share) ? 0 : share)) / (p->total > 0 ? p->total : 1);
    for (int k = 0; k < BAR_CELLS; k++)
        bar[k] = k < (int)(whole * BAR_CELLS) ? '#' : '.';
    bar[BAR_CELLS] = '\0';
    double left = whole_left(p, seconds_left);
    fprintf(stderr, "\r\033[K[%s] %d/%d %s: %s", bar, p->done + 1, p->total, p->label, phase);
    if (!isnan(left))
        fprintf(stderr, ", %.0f s left", ceil(left));
    fflush(stderr);
    p->dirty = true;
}

void progress_clear(struct progress *progress)
{
    if (progress->dirty)
        fprintf(stderr, "\r\033[K");
    progress->dirty = false;
}
