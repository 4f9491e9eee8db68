/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/campaign/phase_split.h"

#include <math.h>

void phase_split(const struct exe *exe, const double *step_ns, struct phase_sums *out)
{
    *out = (struct phase_sums){.steps = {0}};
    for (int s = 0; s < exe_step_count(exe); s++) {
        struct exe_step step = exe_step_at(exe, s);
        enum phase p = step.node->phase;
        out->steps[p]++;
        out->time_s[p] += step_ns ? step_ns[s] * 1e-9 : (double)NAN;
        out->flops[p] += 2 * step.cost.macs + step.cost.elementwise;
        out->bytes[p] += step.bytes_in + step.bytes_out;
    }
}

static void put(struct counts *counts, const char *name, const char *unit, const char *formula,
                double value)
{
    counts->metrics[counts->count++] =
        (struct profiler_metric){.name = name,
                                 .unit = unit,
                                 .formula = formula,
                                 .value = value,
                                 .reason = isnan(value) ? "steps were not timed" : ""};
}

void phase_rows(const struct phase_sums *sums, struct counts *times, struct counts *work)
{
    static const struct {
        const char *time, *flops, *bytes;
    } names[PHASE_COUNT] = {
        [PHASE_FORWARD] = {"forward_time_s", "forward_flops", "forward_bytes"},
        [PHASE_BACKWARD] = {"backward_time_s", "backward_flops", "backward_bytes"},
        [PHASE_COMMUNICATION] = {"communication_time_s", "communication_flops",
                                 "communication_bytes"},
        [PHASE_UPDATE] = {"update_time_s", "update_flops", "update_bytes"},
    };
    *times = (struct counts){.source = "clock"};
    *work = (struct counts){.source = "model"};
    if (!sums->steps[PHASE_BACKWARD] && !sums->steps[PHASE_UPDATE])
        return;
    for (int p = 0; p < PHASE_COUNT; p++) {
        if (p == PHASE_COMMUNICATION && !sums->steps[p])
            continue; /* of one rank */
        put(times, names[p].time, "s", "sum of the phase's steps, timed one by one",
            sums->time_s[p]);
        put(work, names[p].flops, "1", "sum over the phase's steps", sums->flops[p]);
        put(work, names[p].bytes, "B", "streamed by the phase's steps", sums->bytes[p]);
    }
}
