/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/campaign/settings.h"

#include <stdio.h>
#include <string.h>

#include "base/registry.h"

enum { VALUE_BYTES = 200 };

enum kind { WHOLE, NUMBER, TRUTH, WORDS };

/* One that belongs to each point. */
struct setting {
    const char *key, *option; /* as a suite has it, and a command line */
    enum kind kind;
    size_t offset; /* in struct point */
};

#define OF_PROTOCOL(field) offsetof(struct point, protocol.field)
static const struct setting settings[] = {
    {"samples_min", "--samples", WHOLE, OF_PROTOCOL(samples_min)},
    {"samples_max", "", WHOLE, OF_PROTOCOL(samples_max)},
    {"seconds_min", "--seconds", NUMBER, OF_PROTOCOL(seconds_min)},
    {"seconds_max", "--seconds-max", NUMBER, OF_PROTOCOL(seconds_max)},
    {"interval", "--interval", NUMBER, OF_PROTOCOL(interval)},
    {"warmup_runs", "", WHOLE, OF_PROTOCOL(warmup_runs)},
    {"warmup_s", "", NUMBER, OF_PROTOCOL(warmup_s)},
    {"queries", "", WHOLE, OF_PROTOCOL(server_queries)},
    {"steps", "", WHOLE, offsetof(struct point, steps)},
    {"verify", "--no-verify", TRUTH, OF_PROTOCOL(verify)},
    {"layers", "--no-layers", TRUTH, OF_PROTOCOL(layers)},
    {"profilers", "--profilers", WORDS, offsetof(struct point, profilers)},
};

static void value_text(const struct setting *s, const struct point *p, char text[VALUE_BYTES])
{
    const void *at = (const char *)p + s->offset;
    switch (s->kind) {
    case WHOLE:
        snprintf(text, VALUE_BYTES, "%lld", (long long)*(const int64_t *)at);
        break;
    case NUMBER:
        snprintf(text, VALUE_BYTES, "%.10g", *(const double *)at);
        break;
    case TRUTH:
        snprintf(text, VALUE_BYTES, "%s", *(const bool *)at ? "true" : "false");
        break;
    case WORDS:
        snprintf(text, VALUE_BYTES, "%s", *(const char *const *)at);
        break;
    }
}

/* "15", or "15, 40" where points differ: in their order, without those that are as the one before.
 */
static const char *value_of_plan(struct arena *arena, const struct setting *s,
                                 const struct plan *plan)
{
    char text[VALUE_BYTES], before[VALUE_BYTES] = "";
    const char *all = "";
    for (int k = 0; k < plan->count && all; k++) {
        value_text(s, &plan->points[k], text);
        if (k == 0 || strcmp(text, before) != 0)
            all = arena_printf(arena, "%s%s%s", all, k ? ", " : "", text);
        memcpy(before, text, sizeof(before));
    }
    return all;
}

static enum status isa_of(const struct campaign *c, const char **isa, struct error *err)
{
    struct exe_options options;
    char path[512];
    TRY(model_exe_options(c->options->model, &options, path, sizeof(path), err));
    *isa = isa_name(options.isa);
    return STATUS_OK;
}

enum status settings_put(struct campaign *c, struct error *err)
{
    struct fact facts[ARRAY_COUNT(settings) + 1];
    struct environment of_run = {.facts = facts, .fact_count = ARRAY_COUNT(facts)};
    const char *isa;
    TRY(isa_of(c, &isa, err));
    for (int k = 0; k < ARRAY_COUNT(facts); k++) {
        bool last = k == ARRAY_COUNT(settings);
        const char *value = last ? isa : value_of_plan(&c->arena, &settings[k], c->plan);
        if (!value)
            return FAIL_NO_MEMORY(err);
        facts[k] = (struct fact){.category = "run",
                                 .key = last ? "isa" : settings[k].key,
                                 .value = value,
                                 .unit = "",
                                 .source = "suite and command line",
                                 .class = FACT_VOLATILE};
    }
    return run_put_facts(c->store, c->run, "before", &of_run, err);
}

/* ---- going on ---- */

static enum status refuse(const struct run_found *found, const char *what, const char *was,
                          const char *now, struct error *err)
{
    return FAIL(
        err, STATUS_FAILED,
        "the unfinished run %.8s was started with %s %.100s, and now it would be %.100s: go "
        "on with the former, or begin anew without --resume",
        found->uuid, what, was, now);
}

static enum status check_one(struct campaign *c, const struct run_found *found, const char *key,
                             const char *option, const char *now, struct error *err)
{
    const char *was;
    char what[80];
    if (!now)
        return FAIL_NO_MEMORY(err);
    TRY(run_fact(c->store, found->run, "run", key, &c->arena, &was, err));
    snprintf(what, sizeof(what), "%s%s%s%s", key, *option ? " (" : "", option, *option ? ")" : "");
    return !was || strcmp(was, now) == 0 ? STATUS_OK : refuse(found, what, was, now, err);
}

static enum status check_head(const struct campaign *c, const struct run_found *found,
                              struct error *err)
{
    char was[32], now[32];
    if (found->rounds != c->plan->rounds)
        return FAIL(err, STATUS_FAILED,
                    "the unfinished run %.8s has %d rounds, and now there would be %d: go on with "
                    "--rounds %d, or begin anew without --resume",
                    found->uuid, found->rounds, c->plan->rounds, found->rounds);
    snprintf(was, sizeof(was), "%lld", (long long)found->order_seed);
    snprintf(now, sizeof(now), "%lld", (long long)c->plan->order_seed.value);
    if (c->plan->order_seed.given && strcmp(was, now) != 0)
        return refuse(found, "--order-seed", was, now, err);
    const char *tag = c->options->tag;
    if (tag && strncmp(tag, found->tag, sizeof(found->tag) - 1) != 0)
        return refuse(found, "--tag", *found->tag ? found->tag : "(none)", tag, err);
    return STATUS_OK;
}

enum status settings_check(struct campaign *c, const struct run_found *found, struct error *err)
{
    const char *isa;
    TRY(check_head(c, found, err));
    TRY(isa_of(c, &isa, err));
    TRY(check_one(c, found, "isa", "--isa, RIDGE_ISA", isa, err));
    for (int k = 0; k < ARRAY_COUNT(settings); k++)
        TRY(check_one(c, found, settings[k].key, settings[k].option,
                      value_of_plan(&c->arena, &settings[k], c->plan), err));
    return STATUS_OK;
}
