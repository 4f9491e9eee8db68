/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/campaign/phase_split.h"

#include <math.h>
#include <stdlib.h>

#include "engine/graph/cost.h"

/* ---- memory ---- */

/* Behind nodes that only rename it: those that are no steps. */
static int memory_of(const struct graph *g, const bool *computed, int v)
{
    while (v != NONE && !computed[v] && g->values[v].producer != NONE)
        v = g->nodes[g->values[v].producer].inputs[0];
    return v;
}

static void mark_outputs(const struct node *node, bool *computed)
{
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NONE)
            computed[node->outputs[k]] = true;
}

/* What a step of phase `reader` reads counts as what it is between the phases. */
static void count_read(const struct graph *g, int v, enum phase reader, struct phase_sums *out)
{
    int producer = g->values[v].producer;
    enum phase maker = producer == NONE ? PHASE_COUNT : g->nodes[producer].phase;
    if (reader == PHASE_BACKWARD && maker == PHASE_FORWARD)
        out->activation_bytes += value_bytes(&g->values[v]);
    if (reader == PHASE_UPDATE && (maker == PHASE_BACKWARD || maker == PHASE_COMMUNICATION))
        out->gradient_bytes += value_bytes(&g->values[v]);
}

static void count_reads(const struct exe *exe, bool *computed, unsigned *seen,
                        struct phase_sums *out)
{
    const struct graph *g = exe_graph(exe);
    for (int s = 0; s < exe_step_count(exe); s++)
        mark_outputs(exe_step_at(exe, s).node, computed);
    for (int s = 0; s < exe_step_count(exe); s++) {
        const struct node *node = exe_step_at(exe, s).node;
        for (int k = 0; k < node->input_count; k++) {
            int v = memory_of(g, computed, node->inputs[k]);
            if (v == NONE || seen[v] >> node->phase & 1)
                continue;
            seen[v] |= 1u << node->phase;
            count_read(g, v, node->phase, out);
        }
    }
}

static void count_memory(const struct exe *exe, struct phase_sums *out)
{
    const struct graph *g = exe_graph(exe);
    size_t values = (size_t)g->value_count + 1;
    bool *computed = calloc(values, sizeof(*computed));
    unsigned *seen = calloc(values, sizeof(*seen)); /* by which phases */
    for (int s = 0; s < g->state_count; s++)
        out->state_bytes += value_bytes(&g->values[g->states[s].before]);
    if (computed && seen)
        count_reads(exe, computed, seen, out);
    else
        out->activation_bytes = out->gradient_bytes = NAN;
    free(computed);
    free(seen);
}

/* ---- steps ---- */

void phase_split(const struct exe *exe, const double *step_ns, struct phase_sums *out)
{
    *out = (struct phase_sums){.steps = {0}};
    count_memory(exe, out);
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
                double value, const char *absent)
{
    counts->metrics[counts->count++] =
        (struct profiler_metric){.name = name,
                                 .unit = unit,
                                 .formula = formula,
                                 .value = value,
                                 .reason = isnan(value) ? absent : ""};
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
            sums->time_s[p], "steps were not timed");
        put(work, names[p].flops, "1", "sum over the phase's steps", sums->flops[p], "");
        put(work, names[p].bytes, "B", "streamed by the phase's steps", sums->bytes[p], "");
    }
    put(work, "state_bytes", "B", "weights, moments and counters", sums->state_bytes, "");
    put(work, "gradient_bytes", "B", "computed backward, read by the update", sums->gradient_bytes,
        "no memory to count them");
    put(work, "activation_bytes", "B", "computed forward, read backward", sums->activation_bytes,
        "no memory to count them");
}
