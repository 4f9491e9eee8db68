/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/hash.h"
#include "engine/compile/stages.h"
#include "engine/run/plugin.h"

static void put_attr(FILE *out, const struct attr *attr)
{
    fprintf(out, " %s=", attr->name);
    switch (attr->kind) {
    case ATTR_INT:
        fprintf(out, "%lld", (long long)attr->i);
        break;
    case ATTR_FLOAT:
        fprintf(out, "%.9g", attr->f);
        break;
    case ATTR_STRING:
        fputs(attr->s, out);
        break;
    case ATTR_INTS:
        for (int k = 0; k < attr->count; k++)
            fprintf(out, "%lld,", (long long)attr->ints[k]);
        break;
    case ATTR_FLOATS:
        for (int k = 0; k < attr->count; k++)
            fprintf(out, "%.9g,", attr->floats[k]);
        break;
    case ATTR_STRINGS:
    case ATTR_TENSOR:
    case ATTR_GRAPH:
        fputs("?", out);
        break;
    }
}

/* Sizes as they are, or by magnitude: which power of two they reach, and which dimension is
 * innermost. */
static void put_desc(FILE *out, const struct desc *desc, bool fixed, bool by_magnitude)
{
    fprintf(out, " %s%s", dtype_name(desc->dtype), fixed ? "!" : "");
    for (int k = 0; k < desc->shape.rank; k++) {
        int64_t dim = desc->shape.dim[k], stride = desc->stride[k];
        if (by_magnitude)
            fprintf(out, ":%d%s", dim > 0 ? ilogb((double)dim) : -1, stride == 1 ? "!" : "");
        else
            fprintf(out, ":%lld/%lld", (long long)dim, (long long)stride);
    }
}

static const char *cpu_model(char *text, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[256];
    text[0] = 0;
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "model name", 10) == 0 || strncmp(line, "model\t", 6) == 0) {
            size_t used = strlen(text);
            snprintf(text + used, size - used, "%s", line);
        }
        if (line[0] == '\n')
            break;
    }
    if (file)
        fclose(file);
    return text;
}

/* What the sizes do not say: the machine, the device, who computes. */
static void put_circumstances(FILE *out, const struct exe *exe, const struct step *step)
{
    char model[256];
    fprintf(out, " threads=%d isa=%s providers=%s error=%g cpu=%s", step->query.threads,
            isa_name(exe->options.isa), exe->options.providers ? exe->options.providers : "all",
            exe->options.max_error, cpu_model(model, sizeof(model)));
    const struct device_properties *device = &exe_device(exe)->properties;
    if (exe_is_on_device(exe))
        fprintf(out, " device=%s %d units driver=%s%s%s", device->name, device->units,
                device->driver, exe->options.precision == PRECISION_TF32 ? " tf32" : "",
                exe->options.no_capture ? " launched" : "");
    for (int k = 0; k < plugin_info_count(); k++)
        if (plugin_info_at(k)->state == PLUGIN_LOADED)
            fprintf(out, " %s=%s", plugin_info_at(k)->name, plugin_info_at(k)->version);
}

static void put_operator(FILE *out, const struct node *node)
{
    const struct attr *window = node_attr(node, "kernel_shape");
    fprintf(out, "%s", node->op->name);
    if (window)
        put_attr(out, window);
}

static void put_step(FILE *out, const struct exe *exe, const struct step *step, bool by_magnitude)
{
    const struct node *node = step->query.node;
    fprintf(out, "%s", node->op->name);
    for (int k = 0; k < node->attr_count; k++)
        put_attr(out, &node->attrs[k]);
    for (int k = 0; k < node->post_count; k++)
        fprintf(out, " post%d:%s(%g,%g)@%d", node->posts[k].kind,
                function_info(node->posts[k].act)->name, (double)node->posts[k].a,
                (double)node->posts[k].b, node->posts[k].input);
    for (int k = 0; k < step->query.in_count; k++)
        put_desc(out, &step->query.in[k],
                 node->inputs[k] != NONE && value_is_fixed(&exe->g->values[node->inputs[k]]),
                 by_magnitude);
    fputs(" ->", out);
    for (int k = 0; k < step->query.out_count; k++)
        put_desc(out, &step->query.out[k], false, by_magnitude);
}

/* To be freed; NULL: out of memory. */
static char *text_of(const struct exe *exe, const struct step *step, enum likeness likeness)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    if (likeness == LIKE_OPERATOR)
        put_operator(out, step->query.node);
    else
        put_step(out, exe, step, likeness == LIKE_SIMILAR);
    put_circumstances(out, exe, step);
    fclose(out);
    return text;
}

char *step_signature(const struct exe *exe, const struct step *step, struct arena *arena)
{
    char *text = text_of(exe, step, LIKE_SAME);
    char *copy = text ? arena_strdup(arena, text) : NULL;
    free(text);
    return copy;
}

uint64_t step_likeness(const struct exe *exe, const struct step *step, enum likeness likeness)
{
    /* Parts of keys in the caches that users have. */
    static const char *const salt[] = {"twin", "kin", "family"};
    char *text = text_of(exe, step, likeness);
    uint64_t hash = hash_fnv1a(text ? text : step->signature) ^ hash_fnv1a(salt[likeness]);
    free(text);
    return hash;
}
