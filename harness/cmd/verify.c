/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge verify: the compiled network against the float64 reference, on the same weights and
 * inputs. The error is norm-wise: max |y - r| / max |r| over each output. */
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "harness/command.h"
#include "harness/model_options.h"
#include "harness/verify.h"

struct verify_options {
    struct model_options model;
    bool json;
};

static const struct option options[] = {
    MODEL_OPTIONS(struct verify_options),
    {"json", 0, OPTION_FLAG, offsetof(struct verify_options, json), NULL, "machine-readable"},
    {.name = NULL},
};

static enum status verify(const char *spec, const struct verify_options *o,
                          struct verification *result, struct error *err)
{
    struct graph *graph;
    struct exe *exe;
    TRY(model_open(spec, &o->model, &graph, &exe, err));
    enum status status = verify_exe(graph, exe, result, err);
    exe_free(exe);
    graph_free(graph);
    return status;
}

struct verdict {
    const char *spec, *device, *precision, *status;
    double error;
};

static void print_json(struct json *json, const struct verdict *v)
{
    json_open(json, NULL, '{');
    json_text(json, "workload", v->spec);
    json_text(json, "device", v->device);
    json_text(json, "precision", v->precision);
    json_number(json, "max_rel_error", v->error);
    json_text(json, "status", v->status);
    json_close(json);
}

static int verify_main(int word_count, char **words, const void *values)
{
    const struct verify_options *o = values;
    const char *device = o->model.device ? o->model.device : "cpu";
    const char *precision = o->model.tf32 ? "tf32" : "f32";
    struct json json;
    int exit_code = EXIT_FINE;
    if (o->json) {
        json_begin(&json, stdout);
        json_open(&json, NULL, '[');
    }
    for (int k = 0; k < word_count; k++) {
        struct error err = {0};
        struct verification v = {NAN, NAN};
        enum status status = verify(words[k], o, &v, &err);
        bool right = status == STATUS_OK && v.error <= v.bound;
        const char *verdict = right ? "ok" : status == STATUS_OK ? "wrong" : "failed";
        if (status != STATUS_OK)
            exit_code = command_fail(&err);
        else if (!right)
            exit_code = EXIT_WRONG;
        if (o->json)
            print_json(&json, &(struct verdict){words[k], device, precision, verdict, v.error});
        else
            printf("%-24s %s %s  max relative error %.3g (bound %.1g)  %s\n", words[k], device,
                   precision, v.error, v.bound, verdict);
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
