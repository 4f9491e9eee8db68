/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge checkpoint: what a checkpoint of a training holds, and how far two are from each other. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/json.h"
#include "base/text/table.h"
#include "engine/train/checkpoint_compare.h"
#include "harness/cli/command.h"

struct checkpoint_options {
    double tolerance;
    bool json;
};

static const struct option options[] = {
    {"tolerance", 't', OPTION_FLOAT, offsetof(struct checkpoint_options, tolerance), "SHARE",
     "diff: distance of a tensor, relative to the norm of all of its kind, up to which it counts "
     "as "
     "equal (default 0: the same bits)"},
    {"json", 0, OPTION_FLAG, offsetof(struct checkpoint_options, json), NULL, "machine-readable"},
    {.name = NULL},
};

static struct shape shape_of_tensor(const struct safetensor *t)
{
    return shape_from(t->rank, t->dim);
}

static void shape_cell(struct table *table, const struct safetensor *t)
{
    char text[96];
    struct shape shape = shape_of_tensor(t);
    table_cell(table, "%s", shape_text(&shape, text));
}

/* ---- show ---- */

static void show_json(const struct checkpoint *c, const struct tensor_summary *summary)
{
    struct json json;
    json_begin(&json, stdout);
    json_open(&json, NULL, '{');
    json_open(&json, "notes", '{');
    for (int k = 0; k < c->contents.note_count; k++)
        json_text(&json, c->contents.notes[k].key, c->contents.notes[k].text);
    json_close(&json);
    json_open(&json, "tensors", '[');
    for (int k = 0; k < c->contents.count; k++) {
        const struct safetensor *t = &c->contents.tensors[k];
        json_open(&json, NULL, '{');
        json_text(&json, "name", t->name);
        json_text(&json, "type", t->type);
        json_ints(&json, "shape", t->dim, t->rank);
        json_int(&json, "bytes", (int64_t)t->bytes);
        json_number(&json, "mean", summary[k].mean);
        json_number(&json, "deviation", summary[k].deviation);
        json_number(&json, "largest", summary[k].largest);
        json_int(&json, "not_finite", summary[k].odd);
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
}

static void show_text(const struct checkpoint *c, const struct tensor_summary *summary)
{
    struct table table = {0};
    for (int k = 0; k < c->contents.note_count; k++)
        printf("%-12s %s\n", c->contents.notes[k].key, c->contents.notes[k].text);
    printf("\n");
    table_column(&table, "tensor", TABLE_LEFT);
    table_column(&table, "type", TABLE_LEFT);
    table_column(&table, "shape", TABLE_LEFT);
    table_column(&table, "mean", TABLE_RIGHT);
    table_column(&table, "deviation", TABLE_RIGHT);
    table_column(&table, "largest", TABLE_RIGHT);
    table_column(&table, "not finite", TABLE_RIGHT);
    for (int k = 0; k < c->contents.count; k++) {
        const struct safetensor *t = &c->contents.tensors[k];
        table_cell(&table, "%s", t->name);
        table_cell(&table, "%s", t->type);
        shape_cell(&table, t);
        table_cell(&table, "%.4g", summary[k].mean);
        table_cell(&table, "%.4g", summary[k].deviation);
        table_cell(&table, "%.4g", summary[k].largest);
        table_cell(&table, "%lld", (long long)summary[k].odd);
    }
    table_print(&table, stdout);
    table_release(&table);
}

static enum status show(const char *path, const struct checkpoint_options *o, struct error *err)
{
    struct checkpoint c;
    enum status status = checkpoint_open(path, &c, err);
    struct tensor_summary *summary = NULL;
    if (status == STATUS_OK) {
        summary = arena_array(&c.contents.arena, (size_t)c.contents.count + 1, sizeof(*summary));
        status = summary ? STATUS_OK : FAIL_NO_MEMORY(err);
    }
    for (int k = 0; status == STATUS_OK && k < c.contents.count; k++)
        status = tensor_summarise(&c.contents.tensors[k], &summary[k], err);
    if (status == STATUS_OK && o->json)
        show_json(&c, summary);
    else if (status == STATUS_OK)
        show_text(&c, summary);
    checkpoint_close(&c);
    return status;
}

/* ---- diff ---- */

struct row {
    const char *name, *problem; /* problem: why numbers cannot be compared; NULL: they are */
    struct tensor_difference difference;
    double of_kind; /* distance over the norm of all tensors of this one's kind */
};

struct diff {
    struct checkpoint a, b;
    struct row *rows;
    int count, different; /* different: beyond the tolerance */
    double worst, worst_of_kind;
};

/* Weights are one kind, and what an optimiser keeps for them, "WEIGHT.adam0", another one each.
 * NULL: a weight. */
static const char *kind_of(const struct safetensors *all, const char *name)
{
    const char *dot = strrchr(name, '.');
    char weight[256];
    if (!dot || (size_t)(dot - name) >= sizeof(weight))
        return NULL;
    snprintf(weight, sizeof(weight), "%.*s", (int)(dot - name), name);
    return safetensors_find(all, weight) ? dot : NULL;
}

/* Integers are a kind of their own. */
static bool same_kind(const struct safetensors *all, int i, int k)
{
    const struct safetensor *a = &all->tensors[i], *b = &all->tensors[k];
    const char *kind_a = kind_of(all, a->name), *kind_b = kind_of(all, b->name);
    if ((a->type[0] == 'I') != (b->type[0] == 'I'))
        return false;
    return kind_a && kind_b ? strcmp(kind_a, kind_b) == 0 : kind_a == kind_b;
}

/* The distance of one tensor means nothing where its elements are what is left of larger numbers
 * that cancel: it is judged by the norm of all tensors of its kind. */
static void judge_by_kinds(struct diff *d)
{
    const struct safetensors *all = &d->a.contents;
    for (int k = 0; k < all->count; k++) {
        struct row *row = &d->rows[k];
        double squares = 0;
        if (!(row->difference.off > 0))
            continue;
        for (int i = 0; i < all->count; i++)
            if (same_kind(all, i, k))
                squares += d->rows[i].difference.norm * d->rows[i].difference.norm;
        row->of_kind = squares > 0 ? row->difference.off / sqrt(squares) : (double)INFINITY;
    }
}

static enum status compare_rows(struct diff *d, double tolerance, struct error *err)
{
    const struct safetensors *a = &d->a.contents, *b = &d->b.contents;
    d->rows = arena_array(&d->a.contents.arena, (size_t)a->count + (size_t)b->count + 1,
                          sizeof(*d->rows));
    if (!d->rows)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < a->count; k++) {
        struct row *row = &d->rows[d->count++];
        const struct safetensor *other = safetensors_find(b, a->tensors[k].name);
        row->name = a->tensors[k].name;
        if (!other)
            row->problem = "only in the first file";
        else if (!tensors_are_alike(&a->tensors[k], other))
            row->problem = "of another type or shape";
        else
            TRY(tensor_compare(&a->tensors[k], other, &row->difference, err));
    }
    for (int k = 0; k < b->count; k++)
        if (!safetensors_find(a, b->tensors[k].name))
            d->rows[d->count++] =
                (struct row){.name = b->tensors[k].name, .problem = "only in the second file"};
    judge_by_kinds(d);
    for (int k = 0; k < d->count; k++) {
        struct row *row = &d->rows[k];
        if (row->problem)
            row->difference.relative = row->of_kind = INFINITY;
        d->worst = fmax(d->worst, row->difference.relative);
        d->worst_of_kind = fmax(d->worst_of_kind, row->of_kind);
        d->different +=
            row->of_kind > tolerance || (tolerance <= 0 && row->difference.different > 0);
    }
    return STATUS_OK;
}

static void diff_json(const struct diff *d)
{
    struct json json;
    json_begin(&json, stdout);
    json_open(&json, NULL, '{');
    json_int(&json, "different", d->different);
    json_number(&json, "worst", d->worst);
    json_number(&json, "worst_of_kind", d->worst_of_kind);
    json_open(&json, "tensors", '[');
    for (int k = 0; k < d->count; k++) {
        const struct row *row = &d->rows[k];
        json_open(&json, NULL, '{');
        json_text(&json, "name", row->name);
        json_text(&json, "problem", row->problem);
        json_int(&json, "elements", row->difference.elements);
        json_int(&json, "different", row->difference.different);
        json_number(&json, "largest", row->difference.largest);
        json_number(&json, "relative", row->difference.relative);
        json_number(&json, "of_kind", row->of_kind);
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
}

static void diff_note(const struct diff *d, const char *key)
{
    const char *a = safetensors_note(&d->a.contents, key);
    const char *b = safetensors_note(&d->b.contents, key);
    if (a && b && strcmp(a, b) != 0)
        printf("%s: %s and %s\n", key, a, b);
}

static void diff_text(const struct diff *d)
{
    struct table table = {0};
    int equal = 0;
    diff_note(d, "workload");
    diff_note(d, "recipe");
    diff_note(d, "step");
    diff_note(d, "seed");
    table_column(&table, "tensor", TABLE_LEFT);
    table_column(&table, "different elements", TABLE_RIGHT);
    table_column(&table, "largest |a - b|", TABLE_RIGHT);
    table_column(&table, "of largest |b|", TABLE_RIGHT);
    table_column(&table, "of the kind's norm", TABLE_RIGHT);
    for (int k = 0; k < d->count; k++) {
        const struct row *row = &d->rows[k];
        if (!row->problem && !row->difference.different) {
            equal++;
            continue;
        }
        table_cell(&table, "%s", row->name);
        if (row->problem)
            table_cell(&table, "%s", row->problem);
        else
            table_cell(&table, "%lld of %lld", (long long)row->difference.different,
                       (long long)row->difference.elements);
        table_cell(&table, "%.3g", row->difference.largest);
        table_cell(&table, "%.3g", row->difference.relative);
        table_cell(&table, "%.3g", row->of_kind);
    }
    if (equal < d->count)
        table_print(&table, stdout);
    table_release(&table);
    printf("%d of %d tensors are the same, bit for bit; the largest relative error is %.3g of an "
           "element, %.3g of the norm of all of a kind\n",
           equal, d->count, d->worst, d->worst_of_kind);
}

static enum status diff(const char *a, const char *b, const struct checkpoint_options *o,
                        int *exit_code, struct error *err)
{
    struct diff d = {0};
    if (o->tolerance < 0)
        return FAIL(err, STATUS_FAILED, "--tolerance %g: take 0 or more", o->tolerance);
    enum status status = checkpoint_open(a, &d.a, err);
    if (status == STATUS_OK)
        status = checkpoint_open(b, &d.b, err);
    if (status == STATUS_OK)
        status = compare_rows(&d, o->tolerance, err);
    if (status == STATUS_OK && o->json)
        diff_json(&d);
    else if (status == STATUS_OK)
        diff_text(&d);
    *exit_code = d.different ? EXIT_REGRESSION : EXIT_FINE;
    checkpoint_close(&d.a);
    checkpoint_close(&d.b);
    return status;
}

/* ---- the command ---- */

static int checkpoint_main(int count, char **words, const void *values)
{
    struct error err = {0};
    const struct checkpoint_options *o = values;
    int exit_code = EXIT_FINE;
    enum status status;
    if (strcmp(words[0], "show") == 0 && o->tolerance != 0)
        status = FAIL(&err, STATUS_FAILED, "--tolerance belongs to checkpoint diff");
    else if (strcmp(words[0], "show") == 0 && count == 2)
        status = show(words[1], o, &err);
    else if (strcmp(words[0], "diff") == 0 && count == 3)
        status = diff(words[1], words[2], o, &exit_code, &err);
    else
        status =
            FAIL(&err, STATUS_FAILED,
                 "checkpoint: say \"show FILE\" or \"diff FILE FILE\"; %d words beginning with "
                 "\"%s\" are neither",
                 count, words[0]);
    return status == STATUS_OK ? exit_code : command_fail(&err);
}

REGISTER(command, checkpoint) = {
    .name = "checkpoint",
    .summary = "show what a checkpoint of a training holds, or how far two are from each other",
    .usage = "show FILE | diff FILE FILE [options]",
    .help =
        "A checkpoint holds all states of a training: weights, moments, the number of the step.\n"
        "It is a file in the format of safetensors, so that other programs can read it, with\n"
        "notes on what was trained and a checksum, which is looked at before anything else.\n"
        "\n"
        "diff exits with 1 when a tensor's distance, the root of the sum of (a - b)^2, is more "
        "than\n"
        "--tolerance times the norm of all tensors of its kind in the second file, or the tensor "
        "is\n"
        "of another type or shape, or missing. Weights are one kind, and so is each state that an\n"
        "optimiser keeps for them.\n",
    .options = options,
    .values_size = sizeof(struct checkpoint_options),
    .words_min = 2,
    .main = checkpoint_main,
};
