/* SPDX-License-Identifier: Apache-2.0
 *
 * ridge verify: the compiled network against the float64 reference, on the same weights and
 * inputs. The error is norm-wise: max |y - r| / max |r| over each output. --all takes every
 * workload of the list with its default parameters; one that fails does not stop the others. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/text/json.h"
#include "engine/run/device.h"
#include "harness/cli/command.h"
#include "harness/model/model_options.h"
#include "harness/model/verify.h"
#include "harness/model/verify_training.h"
#include "workloads/workload.h"

struct verify_options {
    struct model_options model;
    const char *domain;
    bool all, json;
};

static const struct option options[] = {
    MODEL_OPTIONS(struct verify_options),
    MODE_OPTION(struct verify_options, model.mode),
    RECOMPUTE_OPTIONS(struct verify_options),
    {"all", 0, OPTION_FLAG, offsetof(struct verify_options, all), NULL, "every workload"},
    {"domain", 0, OPTION_TEXT, offsetof(struct verify_options, domain), "NAME",
     "with --all: those of one domain"},
    {"json", 0, OPTION_FLAG, offsetof(struct verify_options, json), NULL, "machine-readable"},
    {.name = NULL},
};

struct outcome {
    const char *spec, *precision;
    char device[DEVICE_NAME_SIZE];
    struct verification v;
    struct error err;
    double seconds;
    enum status status;
};

static bool is_right(const struct outcome *r)
{
    return r->status == STATUS_OK && r->v.error <= r->v.bound;
}

static const char *verdict_of(const struct outcome *r)
{
    return is_right(r) ? "ok" : r->status == STATUS_OK ? "wrong" : "failed";
}

static enum status verify_inference(const char *spec, const struct model_options *model,
                                    struct outcome *r)
{
    struct graph *graph;
    struct exe *exe;
    TRY(model_open(spec, model, &graph, &exe, &r->err));
    enum status status = verify_exe(graph, exe, &r->v, &r->err);
    exe_free(exe);
    graph_free(graph);
    return status;
}

static struct outcome verify(const char *spec, const struct verify_options *o)
{
    struct outcome r = {.spec = spec,
                        .precision = o->model.precision ? o->model.precision : "f32",
                        .v = {.error = NAN, .bound = NAN, .how = ""}};
    uint64_t begin = clock_now_ns();
    struct model_options model = o->model;
    bool trains = false;
    model.verifies = true;
    device_canonical(model.device, r.device);
    r.status = model_mode(model.mode, &trains, &r.err);
    if (r.status == STATUS_OK && trains)
        r.status = verify_training(spec, &model, NULL, &r.v, &r.err);
    else if (r.status == STATUS_OK)
        r.status = verify_inference(spec, &model, &r);
    r.seconds = (double)(clock_now_ns() - begin) * 1e-9;
    return r;
}

static void print_json(struct json *json, const struct outcome *r)
{
    json_open(json, NULL, '{');
    json_text(json, "workload", r->spec);
    json_text(json, "device", r->device);
    json_text(json, "precision", r->precision);
    json_number(json, "max_rel_error", r->v.error);
    json_number(json, "bound", r->v.bound);
    json_text(json, "status", verdict_of(r));
    json_text(json, "reason",
              r->status != STATUS_OK ? r->err.message
              : r->v.odd[0]          ? r->v.odd
                                     : NULL);
    json_text(json, "note", r->v.note[0] ? r->v.note : NULL);
    json_close(json);
}

/* As many digits as tell the error from the bound, three at least. */
static void print_error(double error, double bound)
{
    char texts[2][40];
    int digits = 3;
    do {
        snprintf(texts[0], sizeof(texts[0]), "%.*g", digits, error);
        snprintf(texts[1], sizeof(texts[1]), "%.*g", digits, bound);
    } while (error != bound && strcmp(texts[0], texts[1]) == 0 && digits++ < DBL_DECIMAL_DIG);
    printf("max relative error %s (bound %s)  ", texts[0], texts[1]);
}

static void print_line(const struct outcome *r)
{
    printf("%-24s %s %s  ", r->spec, r->device, r->precision);
    if (r->status == STATUS_OK)
        print_error(r->v.error, r->v.bound);
    printf("%s%s%s\n", verdict_of(r), r->v.odd[0] ? ": " : "", r->v.odd);
    if (r->v.note[0])
        printf("    note: %s\n", r->v.note);
}

static int verify_each(int count, const char *const *specs, const struct verify_options *o)
{
    struct json json;
    int exit_code = EXIT_FINE;
    if (o->json) {
        json_begin(&json, stdout);
        json_open(&json, NULL, '[');
    }
    for (int k = 0; k < count; k++) {
        if (o->all)
            fprintf(stderr, "[%2d/%d] %s ...\n", k + 1, count, specs[k]);
        struct outcome r = verify(specs[k], o);
        if (r.status != STATUS_OK)
            exit_code = command_fail(&r.err);
        if (!is_right(&r) && (o->all || r.status == STATUS_OK))
            exit_code = EXIT_WRONG;
        if (o->json)
            print_json(&json, &r);
        else
            print_line(&r);
        fflush(stdout);
        if (o->all)
            fprintf(stderr, "[%2d/%d] %s: %s, %.1f s\n", k + 1, count, specs[k], verdict_of(&r),
                    r.seconds);
    }
    if (o->json)
        json_close(&json);
    return exit_code;
}

/* Names of the workloads of a domain (NULL: of all) that have the mode; an unknown domain is none.
 */
static int names_of(const char *domain, bool trained, const char **names)
{
    int count = 0;
    for (int k = 0; k < workload_count(); k++) {
        const struct workload *w = workload_at(k);
        if ((!domain || strcmp(w->domain, domain) == 0) && (!trained || w->training))
            names[count++] = w->name;
    }
    return count;
}

static int verify_all(const struct verify_options *o)
{
    struct error err = {0};
    bool trained = false;
    int count = 0, exit_code;
    const char **names = calloc((size_t)workload_count(), sizeof(*names));
    enum status status = names ? model_mode(o->model.mode, &trained, &err) : FAIL_NO_MEMORY(&err);
    if (status == STATUS_OK)
        count = names_of(o->domain, trained, names);
    if (status == STATUS_OK && count == 0)
        FAIL(&err, STATUS_FAILED, "no workload%s is of the domain \"%s\"; see `ridge list`",
             trained ? " that is trained" : "", o->domain);
    exit_code = count ? verify_each(count, names, o) : command_fail(&err);
    free(names);
    return exit_code;
}

static int verify_main(int word_count, char **words, const void *values)
{
    const struct verify_options *o = values;
    if (!o->all && word_count && !o->domain)
        return verify_each(word_count, (const char *const *)words, o);
    if (!o->all || word_count) {
        fprintf(stderr, "usage: ridge verify MODEL... | --all [--domain NAME] (-h explains)\n");
        return EXIT_USAGE;
    }
    return verify_all(o);
}

REGISTER(command, verify) = {
    .name = "verify",
    .summary = "compare workloads with their float64 reference",
    .usage = "MODEL... | --all [options]",
    .help =
        "--all takes every workload that has the mode: with --mode training, those that learn.\n"
        "Exit code 3: a result is wrong or, with --all, could not be obtained.\n",
    .options = options,
    .values_size = sizeof(struct verify_options),
    .main = verify_main,
};
