/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/model/model_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/output.h"
#include "engine/compile/compile.h"
#include "engine/run/device.h"
#include "engine/run/provider.h"
#include "harness/model/admission.h"
#include "workloads/training.h"
#include "workloads/workload.h"

const char *tuner_cache_path(char *path, size_t size)
{
    const char *named = getenv("RIDGE_CACHE"), *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (named)
        snprintf(path, size, "%s", named);
    else if (cache)
        snprintf(path, size, "%s/ridge/tuner.txt", cache);
    else
        snprintf(path, size, "%s/.cache/ridge/tuner.txt", home ? home : ".");
    return path;
}

static enum status isa_wanted(const char *name, enum isa *isa, struct error *err)
{
    *isa = isa_detect();
    if (name)
        for (int k = 0; k < ISA_COUNT; k++) {
            if (strcmp(name, isa_name((enum isa)k)) != 0)
                continue;
            if (k > (int)*isa)
                return FAIL(err, STATUS_FAILED, "this CPU has no %s, only %s", name,
                            isa_name(*isa));
            *isa = (enum isa)k;
            return STATUS_OK;
        }
    return name ? FAIL(err, STATUS_FAILED, "--isa \"%s\" is not scalar, avx2 or avx512", name)
                : STATUS_OK;
}

bool model_tunes_quickly(const struct model_options *m)
{
    return m->quick_tune && !m->no_tune;
}

enum status model_exe_options(const struct model_options *m, struct exe_options *options,
                              char *path, size_t path_size, struct error *err)
{
    *options =
        (struct exe_options){.threads = (int)m->threads,
                             .providers = m->providers,
                             .cache = m->cache ? m->cache : tuner_cache_path(path, path_size),
                             .retune = m->retune,
                             .no_tune = m->no_tune,
                             .quick_tune = model_tunes_quickly(m),
                             .no_fuse = m->no_fuse,
                             .max_error = m->no_winograd ? 1e-5 : m->max_error,
                             .only_variant = NONE,
                             .device = m->device,
                             .no_capture = m->no_capture,
                             .comm = m->comm};
    if (m->batch < 0 || m->threads < 0)
        return FAIL(err, STATUS_FAILED, "--batch and --threads must be positive");
    if (m->no_winograd && m->max_error > 0)
        return FAIL(err, STATUS_FAILED,
                    "--no-winograd is the same as --max-error 1e-5, and --max-error says %g",
                    m->max_error);
    if (m->cache)
        TRY(output_check(m->cache, err));
    TRY(precision_from_name(m->precision, &options->precision, err));
    return isa_wanted(m->isa, &options->isa, err);
}

enum status model_code_choice(const struct model_options *m, struct code_choice *choice,
                              struct error *err)
{
    struct exe_options options;
    char path[512];
    TRY(model_exe_options(m, &options, path, sizeof(path), err));
    if (m->retune && m->no_tune)
        return FAIL(err, STATUS_FAILED, "--retune times all kernels, and --no-tune none");
    *choice =
        (struct code_choice){.isa = options.isa == isa_detect() ? NULL : isa_name(options.isa),
                             .max_error = options.max_error,
                             .no_tune = options.no_tune,
                             .no_fuse = options.no_fuse,
                             .no_capture = options.no_capture};
    return STATUS_OK;
}

enum status model_precision(const char *spec, const struct model_options *m,
                            enum precision *precision, struct error *err)
{
    char name[DEVICE_NAME_SIZE];
    device_canonical(m->device, name);
    bool host = strcmp(name, "cpu") == 0;
    TRY(precision_from_name(m->precision, precision, err));
    if (workload_has_precision(workload_of(spec), *precision, host))
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "precision \"%s\": %s cannot run in it on %s",
                precision_name(*precision), spec, host ? "the CPU" : name);
}

enum status model_graph_precision(const char *spec, const char *name, enum precision *precision,
                                  struct error *err)
{
    TRY(precision_from_name(name, precision, err));
    const struct workload *w = workload_of(spec);
    if (workload_builds_in(w, *precision) || (!w && !workload_is_file(spec)))
        return STATUS_OK; /* no such model: its opening says so */
    return FAIL(err, STATUS_FAILED, "precision \"%s\": the graph of %s is not built in it%s", name,
                spec,
                w && workload_has_precision(w, *precision, false)
                    ? " but in f32; compilation for a device narrows it"
                    : "");
}

enum status model_mode(const char *name, bool *training, struct error *err)
{
    *training = name && strcmp(name, "training") == 0;
    if (*training || !name || strcmp(name, "inference") == 0)
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "--mode \"%s\" is not inference or training", name);
}

enum status model_train_options(const struct model_options *m, struct train_options *options,
                                struct error *err)
{
    *options = (struct train_options){.recompute = m->recompute, .segments = (int)m->segments};
    if (m->segments && !m->recompute)
        return FAIL(err, STATUS_FAILED, "--segments belongs to --recompute");
    if (m->segments == 1)
        return FAIL(err, STATUS_FAILED,
                    "--segments 1: of a single segment nothing is computed again; take 2 or more");
    return STATUS_OK;
}

static enum status open_graph(const char *spec, const struct model_options *m,
                              enum precision precision, bool bare, struct graph **graph,
                              struct error *err)
{
    const struct training *training;
    struct train_options options;
    bool trains;
    *graph = NULL;
    TRY(model_mode(m->mode, &trains, err));
    TRY(model_train_options(m, &options, err));
    if (!trains && m->recompute)
        return FAIL(err, STATUS_FAILED, "--recompute needs --mode training");
    if (!trains)
        return workload_open(spec, m->batch, precision, graph, err);
    if (precision != PRECISION_F32)
        return UNSUPPORTED(err, "precision \"%s\": training is in f32", precision_name(precision));
    if (bare)
        return workload_open_step(spec, m->batch, &options, graph, &training, err);
    return workload_open_training(spec, m->batch, &options, graph, &training, err);
}

enum status model_graph(const char *spec, const struct model_options *m, enum precision precision,
                        struct graph **graph, struct error *err)
{
    return open_graph(spec, m, precision, false, graph, err);
}

enum status model_graph_bare(const char *spec, const struct model_options *m,
                             enum precision precision, struct graph **graph, struct error *err)
{
    return open_graph(spec, m, precision, true, graph, err);
}

enum status model_admits(const struct graph *graph, const struct model_options *m,
                         struct error *err)
{
    char path[512];
    struct exe_options options;
    if (m->no_memory_check)
        return STATUS_OK;
    TRY(model_exe_options(m, &options, path, sizeof(path), err));
    return admission_check(graph, &options, m->verifies, err);
}

enum status model_compile(const struct graph *graph, const struct model_options *m,
                          struct exe **exe, struct error *err)
{
    char path[512];
    struct exe_options options;
    *exe = NULL;
    TRY(model_exe_options(m, &options, path, sizeof(path), err));
    if (!m->no_memory_check)
        TRY(admission_check(graph, &options, m->verifies, err));
    return exe_new(graph, &options, exe, err);
}

enum status model_open(const char *spec, const struct model_options *m, struct graph **graph,
                       struct exe **exe, struct error *err)
{
    enum precision precision;
    *graph = NULL;
    *exe = NULL;
    TRY(model_precision(spec, m, &precision, err));
    TRY(providers_check(m->providers, err));
    TRY(model_graph(spec, m, precision, graph, err));
    enum status status = providers_load(m->providers, err);
    if (status == STATUS_OK)
        status = model_compile(*graph, m, exe, err);
    if (status != STATUS_OK) {
        graph_free(*graph);
        *graph = NULL;
    }
    return status;
}
