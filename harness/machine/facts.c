/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/machine/facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "harness/machine/procfs.h"

enum { VALUE_MAX = 8192 };

static const char *copied(struct facts *facts, const char *text)
{
    const char *copy = arena_strdup(facts->arena, text ? text : "");
    facts->failed |= !copy;
    return copy ? copy : "";
}

void facts_add(struct facts *facts, struct fact fact)
{
    size_t need = (size_t)facts->count + 1;
    struct fact *items =
        arena_grow(facts->arena, facts->items, &facts->capacity, need, sizeof(*items));
    if (!items) {
        facts->failed = true;
        return;
    }
    facts->items = items;
    items[facts->count++] = (struct fact){
        .category = copied(facts, fact.category),
        .key = copied(facts, fact.key),
        .value = copied(facts, fact.status == FACT_OK ? fact.value : ""),
        .unit = copied(facts, fact.unit),
        .source = copied(facts, fact.source),
        .class = fact.class,
        .status = fact.status,
    };
}

void facts_text(struct facts *facts, struct fact fact, const char *format, ...)
{
    char value[VALUE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(value, sizeof(value), format, args);
    va_end(args);
    fact.value = value;
    fact.status = FACT_OK;
    facts_add(facts, fact);
}

void facts_number(struct facts *facts, struct fact fact, double value)
{
    facts_text(facts, fact, "%.10g", value);
}

static enum fact_status read_one(const char *root, const struct fact_source *s, char *value)
{
    switch (s->how) {
    case FACT_CHOICE:
        return procfs_choice(root, s->path, value, VALUE_MAX);
    case FACT_KEY:
        return procfs_key(root, s->path, s->file_key, value, VALUE_MAX);
    case FACT_LINE:
        break;
    }
    return procfs_line(root, s->path, value, VALUE_MAX);
}

/* "16384 kB" keeps its number alone when the unit says the rest. */
static void drop_unit(char *value, const char *unit)
{
    char *end = strrchr(value, ' ');
    if (end && unit && strcmp(unit, "KiB") == 0 && strcmp(end, " kB") == 0)
        *end = '\0';
}

void facts_read(struct facts *facts, const struct fact_source *sources, int count)
{
    char value[VALUE_MAX];
    for (int k = 0; k < count; k++) {
        const struct fact_source *s = &sources[k];
        enum fact_status status = read_one(facts->root, s, value);
        if (status == FACT_ABSENT && s->optional)
            continue;
        drop_unit(value, s->unit);
        facts_add(facts,
                  (struct fact){s->category, s->key, value, s->unit, s->path, s->class, status});
    }
}
