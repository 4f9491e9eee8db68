/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "harness/machine/environment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "base/system/hash.h"
#include "harness/machine/facts.h"
#include "harness/machine/procfs.h"
#include "harness/machine/redact.h"

enum { CHANGES_TOLD = 3 };

static int by_name(const void *a, const void *b)
{
    const struct fact *x = a, *y = b;
    int order = strcmp(x->category, y->category);
    order = order ? order : strcmp(x->key, y->key);
    return order ? order : strcmp(x->source, y->source);
}

/* Category and key name a fact: of two libraries with the same name the second becomes NAME#2. */
static void number_doubles(struct facts *facts)
{
    int copies = 1;
    for (int k = 1; k < facts->count; k++) {
        struct fact *f = &facts->items[k];
        const char *key = facts->items[k - copies].key;
        if (strcmp(f->category, f[-1].category) != 0 || strcmp(f->key, key) != 0) {
            copies = 1;
            continue;
        }
        char *name = arena_printf(facts->arena, "%s#%d", key, ++copies);
        facts->failed |= !name;
        f->key = name ? name : f->key;
    }
}

/* The redacted forms are always hashed, so that the hash is the same with --redact and without.
 * Facts that were denied do not count, so that root and others get the same. */
static uint64_t hash_and_redact(struct facts *facts, bool redact)
{
    struct redaction words;
    uint64_t hash = 0;
    char value[8192], source[4096];
    redaction_init(&words, facts->root);
    for (int k = 0; k < facts->count; k++) {
        struct fact *f = &facts->items[k];
        redact_value(&words, f, value, sizeof(value));
        if (f->class != FACT_VOLATILE && f->status == FACT_OK) {
            hash = hash64_more(hash, f->category, strlen(f->category));
            hash = hash64_more(hash, f->key, strlen(f->key));
            hash = hash64_more(hash, value, strlen(value));
        }
        if (!redact)
            continue;
        redact_source(&words, f, source, sizeof(source));
        f->value = arena_strdup(facts->arena, value);
        f->source = arena_strdup(facts->arena, source);
        facts->failed |= !f->value || !f->source;
    }
    return hash;
}

/* A number for this machine that says nothing about it. Without a machine id (some containers) the
 * firmware's, else the host's name. */
static void name_host(struct environment *environment, const char *root, bool redact)
{
    static const char *const files[] = {"/etc/machine-id", "/var/lib/dbus/machine-id",
                                        "/sys/class/dmi/id/product_uuid",
                                        "/proc/sys/kernel/hostname"};
    char id[256] = "", host[256] = "";
    for (int k = 0; k < ARRAY_COUNT(files) && !id[0]; k++)
        procfs_line(root, files[k], id, sizeof(id));
    hash64_hex(hash64_more(hash64_text("ridge host uid 1"), id, strlen(id)), environment->host_uid);
    procfs_line(root, "/proc/sys/kernel/hostname", host, sizeof(host));
    if (redact || !host[0])
        snprintf(environment->host_label, sizeof(environment->host_label), "host-%.6s",
                 environment->host_uid);
    else
        snprintf(environment->host_label, sizeof(environment->host_label), "%.63s", host);
}

enum status environment_probe_at(const struct environment_options *options,
                                 struct environment *environment, struct arena *arena,
                                 struct error *err)
{
    struct facts facts = {.arena = arena, .root = options->root ? options->root : ""};
    *environment = (struct environment){.fact_count = 0};
    facts_machine(&facts);
    facts_system(&facts);
    facts_process(&facts);
    facts_storage(&facts, options->folder ? options->folder : ".");
    if (!facts.root[0]) { /* libraries look at the real machine only */
        facts_topology(&facts);
        facts_gpu(&facts);
    }
    if (!facts.failed)
        qsort(facts.items, (size_t)facts.count, sizeof(*facts.items), by_name);
    number_doubles(&facts);
    hash64_hex(hash_and_redact(&facts, options->redact), environment->hash);
    if (facts.failed)
        return FAIL_NO_MEMORY(err);
    name_host(environment, facts.root, options->redact);
    environment->facts = facts.items;
    environment->fact_count = facts.count;
    return STATUS_OK;
}

enum status environment_probe(struct environment *environment, struct arena *arena, bool redact,
                              struct error *err)
{
    return environment_probe_at(&(struct environment_options){.redact = redact}, environment, arena,
                                err);
}

const struct fact *environment_find(const struct environment *environment, const char *category,
                                    const char *key)
{
    for (int k = 0; k < environment->fact_count; k++)
        if (strcmp(environment->facts[k].category, category) == 0 &&
            strcmp(environment->facts[k].key, key) == 0)
            return &environment->facts[k];
    return NULL;
}

double environment_number(const struct environment *environment, const char *category,
                          const char *key)
{
    const struct fact *fact = environment_find(environment, category, key);
    char *end = NULL;
    double value = fact ? strtod(fact->value, &end) : NAN;
    return fact && end != fact->value ? value : NAN;
}

/* What the hash sees of a fact. */
static const char *hashed_value(const struct fact *fact)
{
    return fact && fact->class != FACT_VOLATILE && fact->status == FACT_OK ? fact->value : "(none)";
}

struct change_text {
    char *text;
    size_t size, used;
    int count;
};

static void add_change(struct change_text *t, const struct fact *fact, const struct fact *before,
                       const struct fact *after)
{
    const char *was = hashed_value(before), *is = hashed_value(after);
    if (t->used >= t->size || t->count > CHANGES_TOLD || strcmp(was, is) == 0)
        return;
    if (t->count++ == CHANGES_TOLD)
        t->used += (size_t)snprintf(t->text + t->used, t->size - t->used, ", ...");
    else
        t->used += (size_t)snprintf(t->text + t->used, t->size - t->used, "%s%s %s %.60s -> %.60s",
                                    t->count > 1 ? ", " : "", fact->category, fact->key, was, is);
}

void environment_changes(const struct environment *before, const struct environment *after,
                         char *text, size_t size)
{
    struct change_text t = {.text = text, .size = size};
    text[0] = '\0';
    for (int k = 0; k < before->fact_count; k++) {
        const struct fact *fact = &before->facts[k];
        add_change(&t, fact, fact, environment_find(after, fact->category, fact->key));
    }
    for (int k = 0; k < after->fact_count; k++) {
        const struct fact *fact = &after->facts[k];
        if (!environment_find(before, fact->category, fact->key))
            add_change(&t, fact, NULL, fact);
    }
}
