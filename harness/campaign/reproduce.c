/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/campaign/reproduce.h"

#include <string.h>

#include "base/registry.h"
#include "base/text/shell.h"

/* NULL, as what it is made of: no memory. */
static const char *joined(struct arena *arena, const char *line, const char *more)
{
    return line && more ? arena_printf(arena, "%s%s", line, more) : NULL;
}

static const char *with_value(struct arena *arena, const char *line, const char *option,
                              const char *value)
{
    const char *word = shell_word(arena, value);
    return line && word ? arena_printf(arena, "%s --%s %s", line, option, word) : NULL;
}

static const char *with_recompute(struct arena *arena, const char *line, const struct point *p)
{
    line = joined(arena, line, p->recompute ? " --recompute" : "");
    return line && p->segments
               ? arena_printf(arena, "%s --segments %lld", line, (long long)p->segments)
               : line;
}

static const char *with_code(struct arena *arena, const char *line, const struct point *p)
{
    line = joined(arena, line, p->protocol.quick_tune ? " --quick-tune" : "");
    return joined(arena, line, code_choice_options(arena, &p->code, p->device));
}

static const char *scale_command(const struct point *p, const char *spec, struct arena *arena)
{
    const char *line =
        arena_printf(arena, "ridge scale %s --ranks %d --batch %lld --threads %d --steps %lld%s",
                     spec, p->ranks, (long long)(p->strong ? p->batch : p->batch / p->ranks),
                     p->threads, (long long)p->steps, p->strong ? " --strong" : "");
    if (strcmp(p->backend, "shm") != 0)
        line = with_value(arena, line, "backend", p->backend);
    if (*p->providers)
        line = with_value(arena, line, "providers", p->providers);
    return with_recompute(arena, with_code(arena, line, p), p);
}

const char *reproduce_command(const struct point *p, struct arena *arena)
{
    const struct {
        const char *name, *value, *usual;
    } more[] = {{"precision", p->precision, "f32"},
                {"mode", p->mode, "inference"},
                {"providers", p->providers, ""}};
    const char *spec = shell_word(arena, p->spec);
    if (!spec || p->ranks)
        return spec ? scale_command(p, spec, arena) : NULL;
    const char *line = arena_printf(arena, "ridge run %s", spec);
    if (line && p->batch)
        line = arena_printf(arena, "%s --batch %lld", line, (long long)p->batch);
    if (line)
        line = arena_printf(arena, "%s --threads %d --device %s", line, p->threads, p->device);
    for (int k = 0; k < ARRAY_COUNT(more) && line; k++)
        if (strcmp(more[k].value, more[k].usual) != 0)
            line = with_value(arena, line, more[k].name, more[k].value);
    line = with_recompute(arena, line, p);
    line =
        line ? arena_printf(arena, "%s --scenario %s%s", line, scenario_name(p->protocol.scenario),
                            p->protocol.cold ? " --cold" : "")
             : NULL;
    line = with_code(arena, line, p);
    if (line && p->protocol.scenario == SCENARIO_SERVER)
        line = arena_printf(arena, "%s --latency-bound %.10g --quantile %.10g", line,
                            p->protocol.latency_bound_s, p->protocol.latency_quantile);
    return line;
}
