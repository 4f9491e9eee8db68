/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge verify: the compiled network against the float64 reference, on the same weights and
 * inputs. The error is norm-wise: max |y - r| / max |r| over each output. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "harness/command.h"
#include "harness/model_options.h"

struct verify_options {
    struct model_options model;
    bool json;
};

static const struct option options[] = {
    MODEL_OPTIONS(struct verify_options),
    {"json", 0, OPTION_FLAG, offsetof(struct verify_options, json), NULL, "machine-readable"},
    {.name = NULL},
};

/* Kernels may state a bound of their own (Winograd): the largest used counts. */
static double bound_of(const struct exe *exe)
{
    double bound = 1e-5;
    for (int s = 0; s < exe_step_count(exe); s++)
        bound = fmax(bound, exe_step_at(exe, s).kernel->rel_error);
    return bound;
}

static enum status compare(const struct graph *graph, const struct exe *exe,
                           const struct ref_tensor *expected, double *worst, struct error *err)
{
    *worst = 0;
    for (int k = 0; k < graph->output_count; k++) {
        const struct value *value = &graph->values[graph->outputs[k]];
        struct ref_tensor got;
        TRY(ref_from_data(&got, value->dtype, &value->shape, exe_output(exe, k), err));
        *worst = fmax(*worst, ref_rel_error(&got, &expected[k]));
        ref_release(&got);
    }
    return STATUS_OK;
}

static enum status verify(const char *spec, const struct verify_options *o, double *error,
                          double *bound, struct error *err)
{
    struct graph *graph;
    struct exe *exe;
    TRY(model_open(spec, &o->model, &graph, &exe, err));
    struct ref_tensor *expected = calloc((size_t)graph->output_count, sizeof(*expected));
    enum status status = expected ? STATUS_OK : FAIL_NO_MEMORY(err);
    exe_run(exe);
    exe_run(exe); /* the second run must give the same: nothing may depend on fresh memory */
    *bound = bound_of(exe);
    if (status == STATUS_OK)
        status = reference_run(graph, NULL, expected, exe_pool(exe), err);
    if (status == STATUS_OK)
        status = compare(graph, exe, expected, error, err);
    for (int k = 0; expected && k < graph->output_count; k++)
        ref_release(&expected[k]);
    free(expected);
    exe_free(exe);
    graph_free(graph);
    return status;
}

static void print_json(struct json *json, const char *spec, double error, const char *status)
{
    json_open(json, NULL, '{');
    json_text(json, "workload", spec);
    json_text(json, "device", "cpu");
    json_text(json, "precision", "f32");
    json_number(json, "max_rel_error", error);
    json_text(json, "status", status);
    json_close(json);
}

static int verify_main(int word_count, char **words, const void *values)
{
    const struct verify_options *o = values;
    struct json json;
    int exit_code = EXIT_FINE;
    if (o->json) {
        json_begin(&json, stdout);
        json_open(&json, NULL, '[');
    }
    for (int k = 0; k < word_count; k++) {
        struct error err = {0};
        double error = NAN, bound = NAN;
        enum status status = verify(words[k], o, &error, &bound, &err);
        bool right = status == STATUS_OK && error <= bound;
        const char *verdict = right ? "ok" : status == STATUS_OK ? "wrong" : "failed";
        if (status != STATUS_OK)
            exit_code = command_fail(&err);
        else if (!right)
            exit_code = EXIT_WRONG;
        if (o->json)
            print_json(&json, words[k], error, verdict);
        else
            printf("%-24s cpu f32  max relative error %.3g (bound %.1g)  %s\n", words[k], error,
                   bound, verdict);
        fflush(stdout);
    }
    if (o->json)
        json_close(&json);
    return exit_code;
}

REGISTER(command, verify) = {
    .name = "verify",
    .summary = "compare workloads with their float64 reference",
    .usage = "MODEL... [options]",
    .options = options,
    .values_size = sizeof(struct verify_options),
    .words_min = 1,
    .main = verify_main,
};
