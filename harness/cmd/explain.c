/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge explain: what the compiler decided for every node, and why other kernels were not chosen.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean.h"
#include "base/registry.h"
#include "base/text/json.h"
#include "base/text/table.h"
#include "harness/campaign/phase_split.h"
#include "harness/cli/command.h"
#include "harness/model/model_options.h"
#include "harness/roofs/peak.h"

enum { REPEATS = 9 };

struct explain_options {
    struct model_options model;
    bool json, all;
};

static const struct option options[] = {
    MODEL_OPTIONS(struct explain_options),
    MODE_OPTION(struct explain_options, model.mode),
    RECOMPUTE_OPTIONS(struct explain_options),
    {"all", 'a', OPTION_FLAG, offsetof(struct explain_options, all), NULL,
     "every candidate's time and every refusal; implies --retune"},
    {"json", 0, OPTION_FLAG, offsetof(struct explain_options, json), NULL, "machine-readable"},
    {.name = NULL},
};

static double flops_of(const struct exe_step *step)
{
    return 2 * step->cost.macs + step->cost.elementwise;
}

static void describe(const struct exe_step *step, char *text, size_t size)
{
    text[0] = 0;
    for (int k = 0; k < step->candidate_count; k++)
        if (step->candidates[k].chosen)
            snprintf(text, size, "%s", step->candidates[k].text);
}

static void print_candidates(const struct exe_step *step)
{
    for (int k = 0; k < step->candidate_count; k++) {
        const struct candidate *c = &step->candidates[k];
        if (c->reason[0])
            printf("      - %-28s %s\n", c->kernel->name, c->reason);
        else if (c->time_ns > 0)
            printf("      %c %-28s %-18s %10.1f us%s%s\n", c->chosen ? '*' : ' ', c->kernel->name,
                   c->text, c->time_ns * 1e-3, c->note[0] ? "  " : "", c->note);
        else
            printf("      %c %-28s %-18s not timed\n", c->chosen ? '*' : ' ', c->kernel->name,
                   c->text);
    }
}

static const struct {
    const char *title;
    enum table_align align;
} columns[] = {
    {"step", TABLE_LEFT},  {"operator", TABLE_LEFT}, {"result", TABLE_LEFT},
    {"us", TABLE_RIGHT},   {"of all", TABLE_RIGHT},  {"GFLOP/s", TABLE_RIGHT},
    {"peak", TABLE_RIGHT}, {"GB/s", TABLE_RIGHT},    {"kernel", TABLE_LEFT},
};

static void put_row(struct table *table, const struct exe_step *step, double ns, double total,
                    double peak)
{
    char text[128], shape[96], name[40], posts[96] = "";
    double flops = flops_of(step), bytes = step->bytes_in + step->bytes_out;
    size_t used = 0;
    describe(step, text, sizeof(text));
    for (int p = 0; p < step->node->post_count && used < sizeof(posts); p++)
        used += (size_t)snprintf(posts + used, sizeof(posts) - used, " +%s",
                                 step->node->posts[p].kind == POST_ACT   ? "act"
                                 : step->node->posts[p].kind == POST_ADD ? "add"
                                                                         : "mul");
    table_cell(table, "%s", clean_copy(name, sizeof(name), step->node->name));
    table_cell(table, "%s", step->node->op->name);
    table_cell(table, "%s", shape_text(&step->query->out[0].shape, shape));
    table_cell(table, "%.1f", ns * 1e-3);
    table_cell(table, "%.1f %%", 100 * ns / total);
    table_cell(table, "%.1f", flops / ns);
    if (isnan(peak))
        table_cell(table, "-");
    else
        table_cell(table, "%.1f %%", 100 * flops / ns * 1e9 / peak);
    table_cell(table, "%.1f", bytes / ns);
    table_cell(table, "%s%s%s%s", step->kernel->name, text[0] ? " " : "", text, posts);
}

/* Rates of arithmetic that shares are of; NAN: not known. */
struct peaks {
    double usual, bytes; /* of the precision; of products of bytes, where some are among others */
};

static struct peaks measure_peaks(struct exe *exe, enum precision precision)
{
    struct peaks peaks = {NAN, NAN};
    if (!exe_device(exe)->kind->is_host)
        return peaks;
    peaks.usual = peak_rate(exe_pool(exe), isa_detect(), precision, PEAK_BURSTS);
    if (precision != PRECISION_I8 && exe_byte_flops(exe) > 0)
        peaks.bytes = peak_rate(exe_pool(exe), isa_detect(), PRECISION_I8, PEAK_BURSTS);
    return peaks;
}

/* Of the step's own words. */
static double peak_of_step(const struct exe_step *step, const struct peaks *peaks)
{
    return exe_step_byte_flops(step) > 0 && !isnan(peaks->bytes) ? peaks->bytes : peaks->usual;
}

static void print_steps(struct exe *exe, const double *times, double total,
                        const struct peaks *peaks, bool all)
{
    struct table table = {0};
    for (int k = 0; k < ARRAY_COUNT(columns); k++)
        table_column(&table, columns[k].title, columns[k].align);
    for (int s = 0; s < exe_step_count(exe); s++) {
        struct exe_step step = exe_step_at(exe, s);
        put_row(&table, &step, times[s], total, peak_of_step(&step, peaks));
    }
    table_print_titles(&table, stdout);
    for (int s = 0; s < exe_step_count(exe); s++) {
        struct exe_step step = exe_step_at(exe, s);
        table_print_row(&table, (size_t)s, stdout);
        if (all)
            print_candidates(&step);
    }
    table_release(&table);
}

static void json_step(struct json *json, const struct exe_step *step, double ns)
{
    json_open(json, NULL, '{');
    json_text(json, "node", step->node->name);
    json_text(json, "op", step->node->op->name);
    json_text(json, "phase", phase_name(step->node->phase));
    json_text(json, "kernel", step->kernel->name);
    json_text(json, "provider", step->kernel->provider);
    json_int(json, "variant", step->variant);
    json_number(json, "time_us", ns * 1e-3);
    json_number(json, "flops", flops_of(step));
    json_number(json, "bytes", step->bytes_in + step->bytes_out);
    json_open(json, "candidates", '[');
    for (int k = 0; k < step->candidate_count; k++) {
        const struct candidate *c = &step->candidates[k];
        json_open(json, NULL, '{');
        json_text(json, "kernel", c->kernel->name);
        json_text(json, "variant", c->text);
        json_bool(json, "chosen", c->chosen);
        if (c->time_ns > 0)
            json_number(json, "time_us", c->time_ns * 1e-3);
        json_text(json, "refused", c->reason[0] ? c->reason : NULL);
        json_text(json, "note", c->note[0] ? c->note : NULL);
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

/* What runs on the host costs two copies and an idle device, beside its time. */
static void print_not_captured(const struct exe *exe)
{
    printf("\nEach run launches step by step: %s\n", exe_not_captured(exe));
    for (int s = 0; s < exe_step_count(exe); s++) {
        struct exe_step step = exe_step_at(exe, s);
        char name[64];
        if (!step.kernel->device || strcmp(step.kernel->device, "cpu") == 0)
            printf("  on the host: %-24s %-16s %s\n",
                   clean_copy(name, sizeof(name), step.node->name), step.node->op->name,
                   step.kernel->name);
    }
}

/* How the passes changed the graph's work; the steps above do what remains. */
static void print_passes(const struct exe *exe)
{
    const struct pass_log *log = exe_passes(exe);
    for (int k = 0; k < log->count; k++)
        printf("%s %s: %+.0f FLOPs against the graph\n",
               k ? "    " : "passes:", log->changes[k].pass, log->changes[k].flops);
}

/* Of a training step. */
static void print_phases(const struct exe *exe, const double *times)
{
    struct phase_sums sums;
    phase_split(exe, times, &sums);
    if (!sums.steps[PHASE_BACKWARD] && !sums.steps[PHASE_UPDATE])
        return;
    for (int p = 0; p < PHASE_COUNT; p++) {
        if (!sums.steps[p])
            continue;
        printf("%-8s %5d steps, %.3f ms, %.1f GFLOP/s, %.1f GB/s\n", phase_name((enum phase)p),
               sums.steps[p], sums.time_s[p] * 1e3, sums.flops[p] / sums.time_s[p] * 1e-9,
               sums.bytes[p] / sums.time_s[p] * 1e-9);
    }
    printf("%.1f MB of states, %.1f MB of gradients, %.1f MB of activations kept for backward\n",
           sums.state_bytes * 1e-6, sums.gradient_bytes * 1e-6, sums.activation_bytes * 1e-6);
}

/* What was decided for the whole, on a device. */
static void print_ways(const struct exe *exe)
{
    printf("images %s; ", exe_options(exe)->images == IMAGES_PLAIN ? "plain" : "channels-last");
    if (exe_streams(exe) > 1)
        printf("branches side by side, in up to %d streams\n", exe_streams(exe));
    else
        printf("one step after another\n");
}

static void print_json(struct exe *exe, const double *times)
{
    struct json json;
    json_begin(&json, stdout);
    json_open(&json, NULL, '[');
    for (int s = 0; s < exe_step_count(exe); s++) {
        struct exe_step step = exe_step_at(exe, s);
        json_step(&json, &step, times[s]);
    }
    json_close(&json);
}

static void print_all(struct exe *exe, const struct explain_options *o, const double *times)
{
    bool here = exe_device(exe)->kind->is_host;
    enum precision precision = PRECISION_F32;
    precision_from_name(o->model.precision, &precision, NULL); /* model_open has checked it */
    double total = 0;
    struct peaks peaks = measure_peaks(exe, precision);
    struct exe_memory memory = exe_memory(exe);
    int count = exe_step_count(exe);
    for (int s = 0; s < count; s++)
        total += times[s];
    print_steps(exe, times, total, &peaks, o->all);
    if (exe_not_captured(exe))
        print_not_captured(exe);
    printf("\n%d step%s, %.3f ms in all; ", count, count == 1 ? "" : "s", total * 1e-6);
    if (!isnan(peaks.usual))
        printf("peak of %s %.1f GFLOP/s\n", peak_name(isa_detect(), precision), peaks.usual * 1e-9);
    else
        printf("the peak of this %s not measured\n", here ? "precision" : "device");
    if (!isnan(peaks.bytes))
        printf("peak of %s, for products of bytes, %.1f GOP/s\n",
               peak_name(isa_detect(), PRECISION_I8), peaks.bytes * 1e-9);
    print_phases(exe, times);
    if (!here)
        print_ways(exe);
    print_passes(exe);
    printf(
        "memory: %.1f MB planned for activations and scratch (%.1f MB unshared), %.1f MB weights\n",
        (double)memory.arena_bytes * 1e-6, (double)memory.unshared_bytes * 1e-6,
        (double)memory.weight_bytes * 1e-6);
}

static int explain_main(int word_count, char **words, const void *values)
{
    struct explain_options o = *(const struct explain_options *)values;
    (void)word_count;
    o.model.retune = o.model.retune || o.all || o.json;
    struct error err = {0};
    struct graph *graph;
    struct exe *exe;
    if (model_open(words[0], &o.model, &graph, &exe, &err) != STATUS_OK)
        return command_fail(&err);
    double *times = calloc((size_t)exe_step_count(exe) + 1, sizeof(*times));
    if (times) {
        exe_run(exe);
        exe_time_steps(exe, REPEATS, times);
        if (o.json)
            print_json(exe, times);
        else
            print_all(exe, &o, times);
    }
    int code = exe_status(exe, &err) == STATUS_OK ? EXIT_FINE : command_fail(&err);
    free(times);
    exe_free(exe);
    graph_free(graph);
    return code;
}

REGISTER(command, explain) = {
    .name = "explain",
    .summary = "show the kernel of every node and why it was chosen",
    .usage = "MODEL [options]",
    .help = "Per node: time, share of the whole, rate, share of its precision's peak, streamed\n"
            "bytes per second, the chosen kernel with its variant, and what was fused into it.",
    .options = options,
    .values_size = sizeof(struct explain_options),
    .words_min = 1,
    .main = explain_main,
};
