/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "harness/scale/scale_reproduce.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/shell.h"

struct line {
    FILE *to;
    struct arena *arena;
    bool no_memory;
};

/* Where the value is not the usual one. */
static void say(struct line *line, const char *option, const char *value, const char *usual)
{
    const char *word = value && strcmp(value, usual) != 0 ? shell_word(line->arena, value) : "";
    if (!word)
        line->no_memory = true;
    else if (*word)
        fprintf(line->to, " --%s %s", option, word);
}

static void say_count(struct line *line, const char *option, int64_t value)
{
    if (value > 0)
        fprintf(line->to, " --%s %" PRId64, option, value);
}

static void say_number(struct line *line, const char *option, double value)
{
    if (value > 0)
        fprintf(line->to, " --%s %.10g", option, value);
}

static void say_flag(struct line *line, const char *option, bool said)
{
    if (said)
        fprintf(line->to, " --%s", option);
}

/* Who starts the ranks, and how many. */
static void say_ranks(struct line *line, const struct scaling *s, const char *spec, int ranks)
{
    const struct backend *backend = backend_find(s->backend);
    const struct launcher *launcher = backend && !s->hosts ? backend->launcher : NULL;
    if (launcher)
        fprintf(line->to, "%s -n %d ridge scale %s", launcher->programs[0], ranks, spec);
    else
        fprintf(line->to, "ridge scale %s --%s %d", spec, s->network ? "simulate" : "ranks", ranks);
}

static void say_way(struct line *line, const struct scaling *s)
{
    say(line, "tables", s->tables, "whole");
    say(line, "moments", s->moments, "whole");
    say(line, "wire", s->wire, "");
    say_count(line, "lanes", s->lanes);
    say_count(line, "unit", s->unit_bytes);
    say_flag(line, "recompute", s->recompute);
    say_count(line, "segments", s->segments);
    say(line, "algorithm", s->algorithm, "");
    say_flag(line, "sync-batch-norm", s->sync_norms);
    say_flag(line, "no-overlap", s->no_overlap);
}

static void say_source(struct line *line, const struct scaling *s)
{
    const struct backend *backend = backend_find(s->backend);
    if (backend && (s->hosts || !backend->launcher))
        say(line, "backend", backend->name, "shm");
    say(line, "hosts", s->hosts, "");
    say(line, "data", s->data_path, "");
    say(line, "letter-case", s->letters, "");
    say_count(line, "reader-threads", s->reader_threads > 1 ? s->reader_threads : 0);
    say_number(line, "read-limit", s->read_limit * 1e-6);
}

static void say_all(struct line *line, const struct scaling *s, const struct scale_result *r)
{
    const char *spec = shell_word(line->arena, s->workload);
    const char *code = code_choice_options(line->arena, &s->code, "cpu");
    line->no_memory = !spec || !code;
    if (line->no_memory)
        return;
    say_ranks(line, s, spec, r->ranks);
    fprintf(line->to, " --batch %lld", (long long)(s->strong ? r->batch : r->batch / r->ranks));
    say_count(line, "threads", s->network ? 0 : r->threads);
    fprintf(line->to, " --steps %lld", (long long)r->steps);
    say(line, "optimiser", s->optimiser, "");
    say_flag(line, "strong", s->strong);
    say_flag(line, "quick-tune", s->quick_tune);
    fputs(code, line->to);
    say(line, "providers", s->providers, "");
    say_way(line, s);
    say_source(line, s);
    say(line, "platform", s->platform, "");
    say_number(line, "step-time", s->step_s);
    say(line, "db", s->network && !(s->step_s > 0) ? s->step_db : "", "");
}

const char *scaling_reproduce(const struct scaling *s, const struct scale_result *r,
                              struct arena *arena)
{
    char *text = NULL, *copy = NULL;
    size_t size;
    struct line line = {.to = open_memstream(&text, &size), .arena = arena};
    if (!line.to)
        return NULL;
    say_all(&line, s, r);
    if (fclose(line.to) == 0 && !line.no_memory)
        copy = arena_strdup(arena, text);
    free(text);
    return copy;
}
