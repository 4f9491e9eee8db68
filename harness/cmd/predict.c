/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge predict: what every node of a network should take on a GPU that is not there, beside the
 * time that no kernel can beat: written down before the first measurement, to be compared with it.
 *
 * The graph is compiled as for that GPU, as far as its steps. A step's roof is the longer of its
 * arithmetic at the chip's peak and its bytes at the memory's rate. The prediction takes shares of
 * both that good kernels reach, spreads a product over no more multiprocessors than it has tiles
 * for, and adds what a node of a captured graph costs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clean.h"
#include "base/text/json.h"
#include "base/text/table.h"
#include "engine/compile/compile.h"
#include "harness/cli/command.h"
#include "harness/model/model_options.h"
#include "workloads/workload.h"

/* FLOP/s and bytes/s of the data sheets, dense; 16 bits: f16 and bf16. */
struct chip {
    const char *name, *product;
    double f32, tf32, half, memory;
    int units;
};

static const struct chip chips[] = {
    {"a100", "A100 SXM 80 GB", 19.5e12, 156e12, 312e12, 2.04e12, 108},
    {"h100", "H100 SXM", 66.9e12, 495e12, 989e12, 3.35e12, 132},
    {"h200", "H200 SXM", 66.9e12, 495e12, 989e12, 4.8e12, 132},
    {"b200", "B200", 75e12, 1100e12, 2250e12, 7.7e12, 148},
};

/* What is assumed. A tile: multiply-adds of a block, 64 x 64 results along 256 of depth. */
static const double share_cuda = 0.8, share_tensor = 0.6, share_memory = 0.85, node_s = 2e-6;
enum { TILE = 64 * 64 * 256 };

struct predict_options {
    struct model_options model;
    const char *on;
    bool json, summary;
};

static const struct option options[] = {
    {"on", 0, OPTION_TEXT, offsetof(struct predict_options, on), "CHIP",
     "a100, h100 (default), h200 or b200"},
    {"batch", 'b', OPTION_COUNT, offsetof(struct predict_options, model.batch), "N",
     "images, sequences or rows"},
    {"precision", 0, OPTION_TEXT, offsetof(struct predict_options, model.precision), "NAME",
     "f32 (default), tf32, bf16 or f16"},
    {"summary", 's', OPTION_FLAG, offsetof(struct predict_options, summary), NULL,
     "one line per network"},
    {"json", 0, OPTION_FLAG, offsetof(struct predict_options, json), NULL, "machine-readable"},
    {.name = NULL},
};

enum limit { LIMIT_ARITHMETIC, LIMIT_MEMORY, LIMIT_LAUNCH, LIMIT_COUNT };

static const char *const limit_names[] = {"arithmetic", "memory", "launch"};

struct prediction {
    double flops, bytes, roof_s, s;
    enum limit limit;
};

struct total {
    int steps, of[LIMIT_COUNT];
    double flops, bytes, roof_s, s;
};

static const struct chip *find_chip(const char *name)
{
    for (int k = 0; k < ARRAY_COUNT(chips); k++)
        if (strcmp(chips[k].name, name ? name : "h100") == 0)
            return &chips[k];
    return NULL;
}

/* Of products; what else is computed counts by its bytes. */
static double rate_of(const struct chip *chip, enum precision precision, double *share)
{
    *share = precision == PRECISION_F32 ? share_cuda : share_tensor;
    return precision == PRECISION_F32    ? chip->f32
           : precision == PRECISION_TF32 ? chip->tf32
                                         : chip->half;
}

static struct prediction predict(const struct chip *chip, enum precision precision,
                                 const struct exe_step *step)
{
    double share, rate = rate_of(chip, precision, &share);
    double filled = fmin(1, fmax(1, step->cost.macs / TILE) / chip->units);
    struct prediction p = {.flops = 2 * step->cost.macs + step->cost.elementwise,
                           .bytes = step->bytes_in + step->bytes_out};
    double arithmetic_s = 2 * step->cost.macs / rate, memory_s = p.bytes / chip->memory;
    p.roof_s = fmax(arithmetic_s, memory_s);
    arithmetic_s /= share * filled;
    memory_s /= share_memory;
    p.s = fmax(arithmetic_s, memory_s) + node_s;
    p.limit = fmax(arithmetic_s, memory_s) < node_s ? LIMIT_LAUNCH
              : arithmetic_s > memory_s             ? LIMIT_ARITHMETIC
                                                    : LIMIT_MEMORY;
    return p;
}

static void add(struct total *total, const struct prediction *p)
{
    total->steps++;
    total->of[p->limit]++;
    total->flops += p->flops;
    total->bytes += p->bytes;
    total->roof_s += p->roof_s;
    total->s += p->s;
}

/* ---- printing ---- */

static void put_row(struct table *table, const struct exe_step *step, const struct prediction *p)
{
    char shape[96], name[64];
    table_cell(table, "%s", clean_copy(name, sizeof(name), step->node->name));
    table_cell(table, "%s", step->node->op->name);
    table_cell(table, "%s", shape_text(&step->query->out[0].shape, shape));
    table_cell(table, "%.3f", p->flops * 1e-9);
    table_cell(table, "%.3f", p->bytes * 1e-6);
    table_cell(table, "%.1f", p->roof_s * 1e6);
    table_cell(table, "%.1f", p->s * 1e6);
    table_cell(table, "%s", limit_names[p->limit]);
}

static void json_row(struct json *json, const struct exe_step *step, const struct prediction *p)
{
    json_open(json, NULL, '{');
    json_text(json, "node", step->node->name);
    json_text(json, "op", step->node->op->name);
    json_number(json, "flops", p->flops);
    json_number(json, "bytes", p->bytes);
    json_number(json, "roof_us", p->roof_s * 1e6);
    json_number(json, "predicted_us", p->s * 1e6);
    json_text(json, "limit", limit_names[p->limit]);
    json_close(json);
}

static void print_table(const struct exe *exe, const struct chip *chip, enum precision precision)
{
    static const char *const left[] = {"node", "operator", "result"};
    static const char *const right[] = {"GFLOP", "MB", "roof us", "predicted us"};
    struct table table = {.column_count = 0};
    for (int k = 0; k < ARRAY_COUNT(left); k++)
        table_column(&table, left[k], TABLE_LEFT);
    for (int k = 0; k < ARRAY_COUNT(right); k++)
        table_column(&table, right[k], TABLE_RIGHT);
    table_column(&table, "limit", TABLE_LEFT);
    for (int s = 0; s < exe_step_count(exe); s++) {
        struct exe_step step = exe_step_at(exe, s);
        struct prediction p = predict(chip, precision, &step);
        put_row(&table, &step, &p);
    }
    table_print(&table, stdout);
    table_release(&table);
}

static void print_json(const struct exe *exe, const struct chip *chip, enum precision precision)
{
    struct json json;
    json_begin(&json, stdout);
    json_open(&json, NULL, '[');
    for (int s = 0; s < exe_step_count(exe); s++) {
        struct exe_step step = exe_step_at(exe, s);
        struct prediction p = predict(chip, precision, &step);
        json_row(&json, &step, &p);
    }
    json_close(&json);
}

static void print_total(const struct exe *exe, const struct chip *chip, enum precision precision,
                        const char *model)
{
    struct total t = {.steps = 0};
    for (int s = 0; s < exe_step_count(exe); s++) {
        struct exe_step step = exe_step_at(exe, s);
        struct prediction p = predict(chip, precision, &step);
        add(&t, &p);
    }
    printf("%s, %s, %s: %d nodes, %.4g GFLOP, %.4g MB; roof %.4g ms, predicted %.4g ms; limited by "
           "arithmetic %d, memory %d, launch %d\n",
           model, chip->product, precision_name(precision), t.steps, t.flops * 1e-9, t.bytes * 1e-6,
           t.roof_s * 1e3, t.s * 1e3, t.of[LIMIT_ARITHMETIC], t.of[LIMIT_MEMORY],
           t.of[LIMIT_LAUNCH]);
}

static enum status predict_model(const char *model, const struct predict_options *o,
                                 const struct chip *chip, enum precision precision,
                                 struct error *err)
{
    /* Exact images are plain where cuDNN computes them (engine/compile/images.c). */
    struct exe_options compile = {.threads = 1,
                                  .only_variant = NONE,
                                  .device = "cuda",
                                  .precision = precision,
                                  .images =
                                      precision == PRECISION_F32 ? IMAGES_PLAIN : IMAGES_LAST};
    struct graph *graph;
    struct exe *exe = NULL;
    TRY(model_graph(model, &o->model, PRECISION_F32, &graph, err));
    enum status status = exe_outline(graph, &compile, &exe, err);
    if (status == STATUS_OK && o->json)
        print_json(exe, chip, precision);
    if (status == STATUS_OK && !o->json && !o->summary)
        print_table(exe, chip, precision);
    if (status == STATUS_OK && !o->json)
        print_total(exe, chip, precision, model);
    exe_free(exe);
    graph_free(graph);
    return status;
}

static int predict_main(int word_count, char **words, const void *values)
{
    const struct predict_options *o = values;
    const struct chip *chip = find_chip(o->on);
    struct error err = {0};
    enum precision precision;
    enum status status = precision_from_name(o->model.precision, &precision, &err);
    if (status == STATUS_OK && !chip)
        status = FAIL(&err, STATUS_FAILED, "--on \"%s\" is not a100, h100, h200 or b200", o->on);
    if (status == STATUS_OK && precision_floats(precision) == DTYPE_F32 &&
        precision != PRECISION_F32 && precision != PRECISION_TF32)
        status = FAIL(&err, STATUS_FAILED, "--precision \"%s\" is not f32, tf32, bf16 or f16",
                      o->model.precision);
    if (status == STATUS_OK && o->json && word_count > 1)
        status = FAIL(&err, STATUS_FAILED, "--json is for one model, not %d", word_count);
    if (status == STATUS_OK && o->json && o->summary)
        status =
            FAIL(&err, STATUS_FAILED, "only one of --json, which has every node, and --summary");
    for (int k = 0; k < word_count && status == STATUS_OK; k++)
        status = predict_model(words[k], o, chip, precision, &err);
    return status == STATUS_OK ? EXIT_FINE : command_fail(&err);
}

REGISTER(command, predict) = {
    .name = "predict",
    .summary = "show what every node should take on a GPU that is not there",
    .usage = "MODEL... [options]",
    .help =
        "Per node: work, streamed bytes, the time that the chip's data sheet allows at best, and\n"
        "the time to be expected: 80 % of the peak in f32, 60 % of tensor cores', 85 % of the\n"
        "memory's rate, no more multiprocessors than a product has tiles for (64 x 64 results,\n"
        "256 of depth), and 2 us a node. To be compared with what `ridge explain --device cuda` "
        "measures.",
    .options = options,
    .values_size = sizeof(struct predict_options),
    .words_min = 1,
    .main = predict_main,
};
