/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/train/broken.h"

#include <math.h>
#include <stdio.h>

#include "workloads/training.h"

static bool all_finite(const struct value *value, const float *data)
{
    for (int64_t i = 0; value->dtype == DTYPE_F32 && i < shape_count(&value->shape); i++)
        if (!isfinite(data[i]))
            return false;
    return true;
}

/* The first input of the samples that holds what is no finite number; NULL: none does. */
static const char *odd_input(struct exe *exe)
{
    const struct graph *g = exe_graph(exe);
    for (int k = 0; k < g->input_count; k++) {
        const struct value *value = &g->values[g->inputs[k]];
        if (batch_gives(g, k) && !all_finite(value, exe_input(exe, k)))
            return value->name;
    }
    return NULL;
}

const char *broken_state(struct exe *exe)
{
    const struct graph *g = exe_graph(exe);
    for (int s = 0; s < g->state_count; s++) {
        const struct value *value = &g->values[g->states[s].before];
        if (!all_finite(value, exe_input(exe, graph_input_index(g, g->states[s].before))))
            return value->name;
    }
    return NULL;
}

static void cause(const struct broken_step *s, char *text, size_t size)
{
    const char *odd = odd_input(s->exe);
    if (odd)
        snprintf(text, size, "its samples are not all finite: look at \"%.80s\"", odd);
    else if (s->first && s->resume)
        snprintf(text, size,
                 "so it is with the weights of %.200s: go on from an earlier checkpoint",
                 s->resume);
    else if (s->first)
        snprintf(
            text, size,
            "no weight was changed before: `ridge verify %.120s --mode training` shows whether "
            "a kernel is wrong",
            s->spec);
    else
        snprintf(text, size, "a smaller --rate than %g may help", s->rate);
}

enum status broken_step_fail(const struct broken_step *s, struct error *err)
{
    char text[320];
    cause(s, text, sizeof(text));
    return FAIL(err, STATUS_INVALID, "the loss of step %lld is %s: %s", (long long)s->step,
                isnan(s->loss) ? "not a number" : "infinite", text);
}
