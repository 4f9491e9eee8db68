/* SPDX-License-Identifier: Apache-2.0
 *
 * What the rate of a point is held against. */
#include <math.h>

#include "harness/campaign/point_work.h"
#include "harness/roofs/peak.h"

/* Products of bytes among others, and their peak; of a network that is no longer there as they were
 * recorded. */
static void find_bytes(const struct work *w, struct point_facts *facts)
{
    const struct exe *exe = w->target->exe;
    const struct record *record = w->state->has_record ? &w->state->record : NULL;
    bool here = exe && w->target->pool && exe_device(exe)->kind->is_host;
    if (record && record_metric(record, "byte_flops")) {
        facts->byte_flops = record_value(record, "byte_flops");
        facts->byte_peak = record_value(record, "byte_peak_flop_rate");
    }
    if (here && !record && w->precision != PRECISION_I8)
        facts->byte_flops = exe_byte_flops(exe);
    if (here && facts->byte_flops > 0)
        facts->byte_peak = fmax(
            facts->byte_peak, peak_rate(w->target->pool, isa_detect(), PRECISION_I8, PEAK_BURSTS));
    if (isnan(facts->byte_peak)) /* no instruction is known */
        facts->byte_flops = 0;
}

void work_peak(const struct work *w, const struct point_record *stored, struct point_facts *facts)
{
    facts->peak_reason = "";
    find_bytes(w, facts);
    facts->peak_flop_rate = w->peak;
    if (!isnan(w->peak)) {
        facts->peak_name = peak_name(isa_detect(), w->precision);
        if (w->state->has_record)
            facts->peak_flop_rate =
                fmax(w->peak, record_value(&w->state->record, "peak_flop_rate"));
        return;
    }
    facts->peak_flop_rate =
        peak_of(stored, w->job->ceilings, &facts->peak_clock_hz, &facts->peak_reason);
}
