/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/turns/child_words.h"

#include <string.h>

#include "base/registry.h"

const char *child_refuses(const struct point *point)
{
    if (point->skip)
        return point->skip;
    if (point->ranks)
        return "not in turns: steps on several ranks are not asked for one by one";
    if (point->protocol.scenario == SCENARIO_SERVER)
        return "not in turns: the rate of a server is searched for, and has no single samples that "
               "could take turns";
    if (point->protocol.scenario == SCENARIO_OFFLINE)
        return "not in turns: blocks of the scenario offline are no single executions";
    return point->protocol.cold ? "not in turns: flushing the caches of one program empties those "
                                  "of the other"
                                : NULL;
}

/* A number as text; NULL where it is `usual`, or when memory is out. */
static const char *number(struct arena *arena, int64_t value, int64_t usual)
{
    return value == usual ? NULL : arena_printf(arena, "%lld", (long long)value);
}

static const char *other_than(const char *text, const char *usual)
{
    return text && strcmp(text, usual) != 0 ? text : NULL;
}

enum status child_words(const char *program, const struct point *point,
                        const struct model_options *m, struct arena *arena,
                        const char *words[CHILD_WORDS_MAX], struct error *err)
{
    const char *providers = point->providers[0] ? point->providers : m->providers;
    const struct {
        const char *name, *value;
    } pairs[] = {
        {"--batch", number(arena, point->batch, 0)},
        {"--threads", number(arena, point->threads, 0)},
        {"--device", other_than(point->device, "cpu")},
        {"--precision", other_than(point->precision, "f32")},
        {"--mode", other_than(point->mode, "inference")},
        {"--segments", number(arena, point->segments, 0)},
        {"--providers", providers},
        {"--isa", m->isa},
        {"--cache", m->cache},
        {"--max-error", m->max_error > 0 ? arena_printf(arena, "%.9g", m->max_error) : NULL},
    };
    const struct {
        const char *name;
        bool given;
    } flags[] = {{"--recompute", point->recompute},
                 {"--no-winograd", m->no_winograd},
                 {"--retune", m->retune},
                 {"--no-tune", m->no_tune},
                 {"--quick-tune", m->quick_tune || point->protocol.quick_tune},
                 {"--no-capture", m->no_capture},
                 {"--no-fuse", m->no_fuse}};
    int n = 0;
    const char *const first[] = {program, "run", point->spec, "--on-request"};
    for (int k = 0; k < ARRAY_COUNT(first); k++)
        words[n++] = first[k];
    for (int k = 0; k < ARRAY_COUNT(pairs); k++) {
        if (!pairs[k].value)
            continue;
        words[n++] = pairs[k].name;
        words[n++] = pairs[k].value;
    }
    for (int k = 0; k < ARRAY_COUNT(flags); k++)
        if (flags[k].given)
            words[n++] = flags[k].name;
    words[n] = NULL;
    return words[5] || !point->threads ? STATUS_OK : FAIL_NO_MEMORY(err);
}
