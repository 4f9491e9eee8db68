/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/bench/platform.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/registry.h"
#include "base/system/file.h"
#include "base/text/options.h"
#include "base/text/toml.h"

static const struct platform_key {
    const char *name;
    size_t offset;
    double least, largest, otherwise; /* -1: there is no other */
} keys[] = {
    {"ranks_per_host", offsetof(struct platform, ranks_per_host), 1, 1024, 1},
    {"link_gbit_s", offsetof(struct platform, link_gbit_s), 1e-3, 1e5, -1},
    {"link_latency_us", offsetof(struct platform, link_latency_us), 0, 1e6, -1},
    {"inside_gbyte_s", offsetof(struct platform, inside_gbyte_s), 1e-3, 1e5, 20},
    {"inside_us", offsetof(struct platform, inside_us), 0, 1e6, 1},
    {"oversubscription", offsetof(struct platform, oversubscription), 1, 1000, 1},
    {"message_us", offsetof(struct platform, message_us), 0, 1e6, 0},
    {"flow_gbit_s", offsetof(struct platform, flow_gbit_s), 0, 1e5, 0},
};

static double *value_of(struct platform *platform, const struct platform_key *key)
{
    return (double *)(void *)((char *)platform + key->offset);
}

static enum status read_key(const struct toml_value *value, struct platform *platform,
                            struct error *err)
{
    const char *names[ARRAY_COUNT(keys)];
    for (int k = 0; k < ARRAY_COUNT(keys); k++) {
        const struct platform_key *key = &keys[k];
        names[k] = key->name;
        if (strcmp(value->key, key->name) != 0)
            continue;
        bool number = value->kind == TOML_INT || value->kind == TOML_FLOAT;
        if (!number || !(value->number >= key->least && value->number <= key->largest))
            return FAIL(err, STATUS_FAILED, "%s:%d: %s must be a number from %g to %g", value->file,
                        value->line, key->name, key->least, key->largest);
        *value_of(platform, key) = value->number;
        return STATUS_OK;
    }
    const char *near = nearest_word(value->key, names, ARRAY_COUNT(keys));
    return FAIL(err, STATUS_FAILED, "%s:%d: key \"%s\" unknown%s%s", value->file, value->line,
                value->key, near ? ", did you mean " : "", near ? near : "");
}

static enum status read_tree(const char *path, const struct toml_value *root,
                             struct platform *platform, struct error *err)
{
    for (int k = 0; k < ARRAY_COUNT(keys); k++) {
        *value_of(platform, &keys[k]) = keys[k].otherwise;
        if (keys[k].otherwise < 0 && !toml_find(root, keys[k].name))
            return FAIL(err, STATUS_FAILED, "%s: %s is missing", path, keys[k].name);
    }
    for (const struct toml_value *value = root->first; value; value = value->next)
        TRY(read_key(value, platform, err));
    /* The simulator bounds a flow by what is under way in a round trip, inside a host, too. */
    double inside = platform->flow_gbit_s / 8 * 2 * platform->link_latency_us;
    if (platform->flow_gbit_s > 0 && inside < platform->inside_gbyte_s * platform->inside_us)
        return FAIL(err, STATUS_FAILED,
                    "%s: flow_gbit_s with such a latency would bound ranks of one host, too: "
                    "raise link_latency_us or lower inside_us",
                    path);
    return STATUS_OK;
}

enum status platform_read(const char *path, struct platform *platform, struct error *err)
{
    struct arena arena = {0};
    struct file file;
    const struct toml_value *root;
    TRY(file_map(path, &file, err));
    enum status status = toml_parse(path, file.data, file.size, &arena, &root, err);
    if (status == STATUS_OK)
        status = read_tree(path, root, platform, err);
    file_unmap(&file);
    arena_release(&arena);
    return status;
}

static int platform_hosts(const struct platform *platform, int ranks)
{
    int each = (int)platform->ranks_per_host;
    return (ranks + each - 1) / each;
}

void platform_text(const struct platform *p, char *text, size_t size)
{
    snprintf(text, size, "%gx%gGbit/s,%gus,%gGB/s,%gus,o%g,m%g,f%g", p->ranks_per_host,
             p->link_gbit_s, p->link_latency_us, p->inside_gbyte_s, p->inside_us,
             p->oversubscription, p->message_us, p->flow_gbit_s);
}

void platform_write_xml(const struct platform *p, int ranks, FILE *file)
{
    int hosts = platform_hosts(p, ranks);
    fprintf(file, "<?xml version='1.0'?>\n"
                  "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                  "<platform version=\"4.1\">\n");
    fprintf(file,
            "  <cluster id=\"hosts\" prefix=\"h\" suffix=\"\" radical=\"0-%d\" speed=\"100Gf\" "
            "bw=\"%.9gGbps\" lat=\"%.9gus\" sharing_policy=\"SPLITDUPLEX\" "
            "loopback_bw=\"%.9gGBps\" loopback_lat=\"%.9gus\"",
            hosts - 1, p->link_gbit_s, p->link_latency_us, p->inside_gbyte_s, p->inside_us);
    if (p->oversubscription > 1)
        fprintf(file, " bb_bw=\"%.9gGbps\" bb_lat=\"0us\"",
                p->link_gbit_s * hosts / p->oversubscription);
    fprintf(file, "/>\n</platform>\n");
}

void platform_write_hosts(const struct platform *platform, int ranks, FILE *file)
{
    for (int rank = 0; rank < ranks; rank++)
        fprintf(file, "h%d\n", rank / (int)platform->ranks_per_host);
}
