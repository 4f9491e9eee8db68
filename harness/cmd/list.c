/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge list: the catalogues, which are the folders of the source tree. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text/json.h"
#include "base/text/table.h"
#include "collective/algorithm.h"
#include "engine/graph/kernel.h"
#include "engine/graph/op.h"
#include "engine/run/device.h"
#include "engine/run/kernels.h"
#include "engine/run/plugin.h"
#include "harness/cli/command.h"
#include "harness/compare/list_stored.h"
#include "profilers/lib/profiler.h"
#include "results/format.h"
#include "results/store.h"
#include "workloads/data/data.h"
#include "workloads/workload.h"

struct list_options {
    bool json;
    const char *db;
};

static const struct option options[] = {
    {"db", 'd', OPTION_TEXT, offsetof(struct list_options, db), "FILE",
     "of runs and baselines: the database (default " STORE_DEFAULT ")"},
    {"json", 0, OPTION_FLAG, offsetof(struct list_options, json), NULL, "machine-readable"},
    {.name = NULL},
};

/* ---- workloads ---- */

/* precision: on some device; precision_cpu: here, on CPUs. */
static void workload_precisions(struct json *json, const struct workload *w, bool host)
{
    json_open(json, host ? "precision_cpu" : "precision", '[');
    for (int p = 0; p < PRECISION_COUNT; p++)
        if (workload_has_precision(w, (enum precision)p, host))
            json_text(json, NULL, precision_name((enum precision)p));
    json_close(json);
}

static void workloads_json(struct json *json)
{
    for (int k = 0; k < workload_count(); k++) {
        const struct workload *w = workload_at(k);
        json_open(json, NULL, '{');
        json_text(json, "name", w->name);
        json_text(json, "domain", w->domain);
        json_text(json, "task", w->task);
        json_text(json, "summary", w->summary);
        json_text(json, "source", w->source);
        json_int(json, "batch", w->batch);
        if (w->table1_batch)
            json_int(json, "table1_batch", w->table1_batch);
        else
            json_null(json, "table1_batch");
        workload_precisions(json, w, false);
        workload_precisions(json, w, true);
        json_open(json, "modes", '[');
        json_text(json, NULL, "inference");
        if (w->training)
            json_text(json, NULL, "training");
        json_close(json);
        json_open(json, "params", '[');
        for (const struct param *p = w->params; p && p->name; p++) {
            json_open(json, NULL, '{');
            json_text(json, "name", p->name);
            json_text(json, "default", p->value);
            json_open(json, "choices", '[');
            for (const char *const *choice = p->choices; choice && *choice; choice++)
                json_text(json, NULL, *choice);
            json_close(json);
            json_text(json, "help", p->help);
            json_close(json);
        }
        json_close(json);
        json_close(json);
    }
}

static void workloads_table(struct table *t)
{
    table_column(t, "workload", TABLE_LEFT);
    table_column(t, "domain", TABLE_LEFT);
    table_column(t, "batch", TABLE_RIGHT);
    table_column(t, "Table I", TABLE_RIGHT);
    table_column(t, "parameters", TABLE_LEFT);
    table_column(t, "what", TABLE_LEFT);
    for (int k = 0; k < workload_count(); k++) {
        const struct workload *w = workload_at(k);
        char text[256] = "";
        size_t used = 0;
        for (const struct param *p = w->params; p && p->name && used < sizeof(text); p++)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s=%s", used ? "," : ":",
                                     p->name, p->value);
        table_cell(t, "%s", w->name);
        table_cell(t, "%s", w->domain);
        table_cell(t, "%lld", (long long)w->batch);
        if (w->table1_batch)
            table_cell(t, "%lld", (long long)w->table1_batch);
        else
            table_cell(t, "-");
        table_cell(t, "%s", text);
        table_cell(t, "%s", w->summary);
    }
}

/* ---- operators ---- */

static int kernels_of(const struct op *op)
{
    int count = 0;
    for (int k = 0; k < kernel_count(); k++)
        count += !kernel_is_reference(kernel_at(k)) && kernel_computes(kernel_at(k), op);
    return count;
}

static void ops_json(struct json *json)
{
    for (int k = 0; k < op_count(); k++) {
        const struct op *op = op_at(k);
        json_open(json, NULL, '{');
        json_text(json, "name", op->name);
        json_text(json, "domain", op->domain ? op->domain : "ai.onnx");
        json_int(json, "inputs_min", op->inputs_min);
        json_int(json, "inputs_max", op_inputs_max(op));
        json_open(json, "attributes", '[');
        for (const char *const *name = op->attrs; name && *name; name++)
            json_text(json, NULL, *name);
        json_close(json);
        json_int(json, "kernels", kernels_of(op));
        json_int(json, "cases", op->case_count);
        json_bool(json, "gradient", op->gradient);
        json_close(json);
    }
}

static void ops_table(struct table *t)
{
    table_column(t, "operator", TABLE_LEFT);
    table_column(t, "domain", TABLE_LEFT);
    table_column(t, "kernels", TABLE_RIGHT);
    table_column(t, "cases", TABLE_RIGHT);
    table_column(t, "attributes", TABLE_LEFT);
    for (int k = 0; k < op_count(); k++) {
        const struct op *op = op_at(k);
        char text[256] = "";
        size_t used = 0;
        for (const char *const *name = op->attrs; name && *name && used < sizeof(text); name++)
            used +=
                (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "", *name);
        table_cell(t, "%s", op->name);
        table_cell(t, "%s", op->domain ? op->domain : "onnx");
        table_cell(t, "%d", kernels_of(op));
        table_cell(t, "%d", op->case_count);
        table_cell(t, "%s", text);
    }
}

/* ---- kernels ---- */

static void kernels_json(struct json *json)
{
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        json_open(json, NULL, '{');
        json_text(json, "name", kernel->name);
        json_text(json, "provider", kernel->provider);
        json_text(json, "device", kernel->device ? kernel->device : "cpu");
        json_text(json, "isa", isa_name(kernel->isa));
        json_open(json, "ops", '[');
        for (int i = 0; i < op_count() && !kernel_is_reference(kernel); i++)
            if (kernel_computes(kernel, op_at(i)))
                json_text(json, NULL, op_at(i)->name);
        json_close(json);
        if (kernel->rel_error > 0)
            json_number(json, "rel_error", kernel->rel_error);
        else
            json_null(json, "rel_error");
        json_close(json);
    }
}

static void kernels_table(struct table *t)
{
    table_column(t, "kernel", TABLE_LEFT);
    table_column(t, "provider", TABLE_LEFT);
    table_column(t, "isa", TABLE_LEFT);
    table_column(t, "operators", TABLE_LEFT);
    for (int k = 0; k < kernel_count(); k++) {
        const struct kernel *kernel = kernel_at(k);
        char text[512] = "";
        size_t used = 0;
        for (int i = 0; i < op_count() && used < sizeof(text); i++)
            if (kernel_computes(kernel, op_at(i)))
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "",
                                         op_at(i)->name);
        table_cell(t, "%s", kernel->name);
        table_cell(t, "%s", kernel->provider);
        table_cell(t, "%s", isa_name(kernel->isa));
        table_cell(t, "%s", kernel_is_reference(kernel) ? "all" : text);
    }
}

/* ---- plug-ins ---- */

static const char *state_name(enum plugin_state state)
{
    static const char *const names[] = {"loaded", "refused", "absent"};
    return names[state];
}

static void plugins_json(struct json *json)
{
    for (int k = 0; k < plugin_info_count(); k++) {
        const struct plugin_info *info = plugin_info_at(k);
        json_open(json, NULL, '{');
        json_text(json, "name", info->name);
        json_text(json, "state", state_name(info->state));
        json_text(json, "version", info->state == PLUGIN_LOADED ? info->version : NULL);
        json_text(json, "path", info->path);
        json_text(json, "reason", info->state == PLUGIN_LOADED ? NULL : info->reason);
        json_close(json);
    }
}

static void plugins_table(struct table *t)
{
    table_column(t, "plug-in", TABLE_LEFT);
    table_column(t, "state", TABLE_LEFT);
    table_column(t, "version, or why not", TABLE_LEFT);
    for (int k = 0; k < plugin_info_count(); k++) {
        const struct plugin_info *info = plugin_info_at(k);
        table_cell(t, "%s", info->name);
        table_cell(t, "%s", state_name(info->state));
        table_cell(t, "%s", info->state == PLUGIN_LOADED ? info->version : info->reason);
    }
}

/* ---- formats of data ---- */

static void data_json(struct json *json)
{
    for (int k = 0; k < data_format_count(); k++) {
        json_open(json, NULL, '{');
        json_text(json, "name", data_format_at(k)->name);
        json_text(json, "files", data_format_at(k)->summary);
        json_close(json);
    }
}

static void data_table(struct table *t)
{
    table_column(t, "format", TABLE_LEFT);
    table_column(t, "files", TABLE_LEFT);
    for (int k = 0; k < data_format_count(); k++) {
        table_cell(t, "%s", data_format_at(k)->name);
        table_cell(t, "%s", data_format_at(k)->summary);
    }
}

/* ---- profilers ---- */

static void profilers_json(struct json *json)
{
    char reason[400];
    for (int k = 0; k < profiler_count(); k++) {
        const struct profiler *profiler = profiler_at(k);
        bool available = profiler->available(reason, sizeof(reason));
        json_open(json, NULL, '{');
        json_text(json, "name", profiler->name);
        json_text(json, "summary", profiler->summary);
        json_bool(json, "always", profiler->always);
        json_bool(json, "available", available);
        json_text(json, "reason", available ? NULL : reason);
        json_close(json);
    }
}

static void profilers_table(struct table *t)
{
    char reason[400];
    table_column(t, "profiler", TABLE_LEFT);
    table_column(t, "here", TABLE_LEFT);
    table_column(t, "what, or why not", TABLE_LEFT);
    for (int k = 0; k < profiler_count(); k++) {
        const struct profiler *profiler = profiler_at(k);
        bool available = profiler->available(reason, sizeof(reason));
        table_cell(t, "%s", profiler->name);
        table_cell(t, "%s", available ? "yes" : "no");
        table_cell(t, "%s", available ? profiler->summary : reason);
    }
}

/* ---- algorithms between ranks ---- */

static void algorithms_json(struct json *json)
{
    for (int k = 0; k < algorithm_count(); k++) {
        const struct algorithm *algorithm = algorithm_at(k);
        json_open(json, NULL, '{');
        json_text(json, "name", algorithm->name);
        json_text(json, "summary", algorithm->summary);
        json_bool(json, "of_library", algorithm->own != OWN_NONE);
        json_open(json, "operations", '[');
        for (int o = 0; o < COMM_OPERATION_COUNT; o++)
            if (algorithm->operations & OPERATION_BIT(o))
                json_text(json, NULL, operation_name((enum comm_operation)o));
        json_close(json);
        json_close(json);
    }
}

static void algorithms_table(struct table *t)
{
    table_column(t, "algorithm", TABLE_LEFT);
    table_column(t, "operations", TABLE_LEFT);
    table_column(t, "what", TABLE_LEFT);
    for (int k = 0; k < algorithm_count(); k++) {
        const struct algorithm *algorithm = algorithm_at(k);
        char text[160] = "";
        size_t used = 0;
        for (int o = 0; o < COMM_OPERATION_COUNT && used < sizeof(text); o++)
            if (algorithm->operations & OPERATION_BIT(o))
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "",
                                         operation_name((enum comm_operation)o));
        table_cell(t, "%s", algorithm->name);
        table_cell(t, "%s", algorithm->own == OWN_NONE ? text : "the library's own");
        table_cell(t, "%s", algorithm->summary);
    }
}

/* ---- formats of results ---- */

static void formats_json(struct json *json)
{
    for (int k = 0; k < format_count(); k++) {
        json_open(json, NULL, '{');
        json_text(json, "name", format_at(k)->name);
        json_text(json, "extension", format_at(k)->extension);
        json_text(json, "summary", format_at(k)->summary);
        json_close(json);
    }
}

static void formats_table(struct table *t)
{
    table_column(t, "format", TABLE_LEFT);
    table_column(t, "files", TABLE_LEFT);
    table_column(t, "what", TABLE_LEFT);
    for (int k = 0; k < format_count(); k++) {
        table_cell(t, "%s", format_at(k)->name);
        table_cell(t, ".%s", format_at(k)->extension);
        table_cell(t, "%s", format_at(k)->summary);
    }
}

/* ---- devices ---- */

/* How many there are of a kind; 0 with the reason. */
static int devices_of(const struct device_kind *kind, struct error *why)
{
    *why = (struct error){.message = "it gave no reason"};
    int count = kind->count(why);
    return count > 0 ? count : 0;
}

static void devices_json(struct json *json)
{
    struct error why;
    for (int k = 0; k < device_kind_count(); k++) {
        int count = devices_of(device_kind_at(k), &why);
        json_open(json, NULL, '{');
        json_text(json, "name", device_kind_at(k)->name);
        json_int(json, "count", count);
        json_text(json, "reason", count ? NULL : why.message);
        json_close(json);
    }
}

static void devices_table(struct table *t)
{
    struct error why;
    table_column(t, "device", TABLE_LEFT);
    table_column(t, "here", TABLE_RIGHT);
    table_column(t, "why not", TABLE_LEFT);
    for (int k = 0; k < device_kind_count(); k++) {
        int count = devices_of(device_kind_at(k), &why);
        table_cell(t, "%s", device_kind_at(k)->name);
        table_cell(t, "%d", count);
        table_cell(t, "%s", count ? "" : why.message);
    }
}

/* ---- the command ---- */

struct catalogue {
    const char *name;
    void (*json)(struct json *json);
    void (*table)(struct table *table);
    bool of_plugins; /* which are opened for it */
};

static const struct catalogue catalogues[] = {
    {"workloads", workloads_json, workloads_table, false},
    {"ops", ops_json, ops_table, true},
    {"kernels", kernels_json, kernels_table, true},
    {"plugins", plugins_json, plugins_table, true},
    {"data", data_json, data_table, false},
    {"profilers", profilers_json, profilers_table, false},
    {"algorithms", algorithms_json, algorithms_table, false},
    {"formats", formats_json, formats_table, false},
    {"devices", devices_json, devices_table, true},
};

static const struct catalogue *catalogue_find(const char *name)
{
    for (int k = 0; k < ARRAY_COUNT(catalogues); k++)
        if (strcmp(catalogues[k].name, name) == 0)
            return &catalogues[k];
    return NULL;
}

static int list_main(int word_count, char **words, const void *values)
{
    const struct list_options *o = values;
    const char *word = word_count ? words[0] : "workloads";
    const struct catalogue *catalogue = catalogue_find(word);
    struct error err = {0};
    if (word_count == 1 && strcmp(word, "runs") == 0)
        return list_runs(o->db ? o->db : STORE_DEFAULT, o->json, &err) == STATUS_OK
                   ? EXIT_FINE
                   : command_fail(&err);
    if (word_count == 1 && strcmp(word, "baselines") == 0)
        return list_baselines(o->db ? o->db : STORE_DEFAULT, o->json, &err) == STATUS_OK
                   ? EXIT_FINE
                   : command_fail(&err);
    if (word_count == 1 && strcmp(word, "suites") == 0)
        return list_suites(o->json, &err) == STATUS_OK ? EXIT_FINE : command_fail(&err);
    if (!catalogue || word_count > 1) {
        fprintf(stderr,
                "ridge list: \"%s\" is none of workloads, suites, runs, baselines, ops, kernels, "
                "plugins, data, profilers, algorithms, formats, devices\n",
                words[word_count - 1]);
        return EXIT_USAGE;
    }
    if (catalogue->of_plugins)
        plugins_load(NULL);
    if (o->json) {
        struct json json;
        json_begin(&json, stdout);
        json_open(&json, NULL, '[');
        catalogue->json(&json);
        json_close(&json);
        return EXIT_FINE;
    }
    struct table table = {.column_count = 0};
    catalogue->table(&table);
    table_print(&table, stdout);
    table_release(&table);
    return EXIT_FINE;
}

REGISTER(command, list) = {
    .name = "list",
    .summary = "list workloads, suites, stored runs, operators, kernels, profilers and more",
    .usage = "[workloads|suites|runs|baselines|ops|kernels|plugins|data|profilers|algorithms|"
             "formats|devices] [--json]",
    .help =
        "A workload runs as NAME or with other parameters as NAME:param=value,param=value.\n"
        "\"Table I\" is the batch of that table in the AI Matrix paper, - where it has no row.\n"
        "JSON: precision lists what some device computes in, precision_cpu what CPUs compute in.\n"
        "Runs are those of the database, the latest first; the points of runs are listed by\n"
        "`ridge history`. Data are what `ridge train --data` reads, algorithms those of "
        "operations\n"
        "between ranks (`ridge bench collectives`), formats what `ridge export` writes. Of "
        "profilers\n"
        "and devices it says which can be used here, and why others cannot.\n",
    .options = options,
    .values_size = sizeof(struct list_options),
    .main = list_main,
};
