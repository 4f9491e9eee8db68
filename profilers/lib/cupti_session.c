/* SPDX-License-Identifier: Apache-2.0 */
#include "profilers/lib/cupti_session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/plugin_open.h"

static const struct cupti_backend *find_backend(char *reason, size_t size)
{
    static const struct plugin_wanted plugin = {"profilers", "cupti", "ridge_cupti", "libcupti",
                                                "install CUPTI, then make"};
    ridge_cupti_entry *entry;
    void *symbol = plugin_open(&plugin, reason, size);
    if (!symbol)
        return NULL;
    memcpy(&entry, &symbol, sizeof(entry)); /* POSIX's way round ISO C's rule on casts */
    const struct cupti_backend *backend = entry();
    if (backend->abi == CUPTI_BACKEND_ABI)
        return backend;
    snprintf(reason, size, "plugins/profilers/cupti.so was built for another ridge: make");
    return NULL;
}

static struct cupti_files files_of_environment(void)
{
    return (struct cupti_files){.cupti = getenv("RIDGE_CUPTI"), .driver = getenv("RIDGE_LIBCUDA")};
}

void cupti_session_versions(int *built, int *opened)
{
    char reason[CUPTI_REASON] = "";
    const struct cupti_files files = files_of_environment();
    const struct cupti_backend *backend = find_backend(reason, sizeof(reason));
    struct cupti *cupti = backend ? backend->open(&files, reason) : NULL;
    *built = backend ? backend->built : 0;
    *opened = cupti ? backend->version(cupti) : 0;
    if (cupti)
        backend->close(cupti);
}

bool cupti_session_available(enum cupti_use use, char *reason, size_t size)
{
    char why[CUPTI_REASON] = "";
    const struct cupti_files files = files_of_environment();
    snprintf(reason, size, "%s", "");
    const struct cupti_backend *backend = find_backend(reason, size);
    struct cupti *cupti = backend ? backend->open(&files, why) : NULL;
    bool ready = cupti && backend->ready(cupti, use, why);
    if (cupti)
        backend->close(cupti);
    if (backend)
        snprintf(reason, size, "%s", ready ? "" : why);
    return ready;
}

enum status cupti_session_attach(const struct profiler_model *model, enum cupti_use use,
                                 struct cupti_session *s, struct error *err)
{
    char reason[CUPTI_REASON] = "";
    const struct cupti_files files = files_of_environment();
    s->backend = find_backend(reason, sizeof(reason));
    s->cupti = s->backend ? s->backend->open(&files, reason) : NULL;
    if (!s->cupti || !s->backend->ready(s->cupti, use, reason))
        return UNSUPPORTED(err, "%s", reason);
    int device = profiler_cuda_index(model ? model->device : NULL);
    if (device < 0)
        return UNSUPPORTED(err, "it counts on NVIDIA GPUs, and this ran on %s: --device cuda",
                           model && model->device ? model->device : "the CPU");
    if (!s->backend->attach(s->cupti, device, use, s->chip, reason))
        return UNSUPPORTED(err, "%s", reason);
    return STATUS_OK;
}

void cupti_session_detach(struct cupti_session *s)
{
    if (s->cupti)
        s->backend->close(s->cupti);
    arena_release(&s->arena);
}

/* What is not known may be anything. */
static void set_known(const struct profiler_model *model, struct gpu_counting_setup *setup)
{
    const char *p = model->precision;
    setup->halves = !p || strcmp(p, "bf16") == 0 || strcmp(p, "f16") == 0;
    setup->tensor_cores = !p || strcmp(p, "f32") != 0 || model->tensor_cores;
}

static enum status start(const struct profiler_model *model, enum cupti_use use,
                         struct cupti_session *s, struct error *err)
{
    static const struct profiler_model nothing = {0};
    struct gpu_counting_setup setup = {.use = use};
    model = model ? model : &nothing;
    if (!s->cupti)
        TRY(cupti_session_attach(model, use, s, err));
    TRY(group_read_all(&s->arena, &setup.groups, &setup.group_count, err));
    setup.backend = s->backend;
    setup.cupti = s->cupti;
    setup.chip = s->chip;
    set_known(model, &setup);
    setup.steps = model->steps;
    setup.on_host = model->on_host;
    setup.pass_s = model->pass_s;
    s->flops = model->flops;
    return gpu_counting_open(&setup, &s->counting, err);
}

enum status cupti_session_open(const struct profiler_model *model, enum cupti_use use,
                               void **session, struct error *err)
{
    struct cupti_session *s = model && model->attached ? model->attached : calloc(1, sizeof(*s));
    if (!s)
        return FAIL_NO_MEMORY(err);
    enum status status = start(model, use, s, err);
    if (status != STATUS_OK)
        cupti_session_close(s);
    else
        *session = s;
    return status;
}

/* ---- before anything is loaded ---- */

enum status cupti_session_hold(const char *device, void **attached, struct error *err)
{
    const struct profiler_model model = {.device = device};
    char reason[CUPTI_REASON] = "";
    struct cupti_session *s = calloc(1, sizeof(*s));
    if (!s)
        return FAIL_NO_MEMORY(err);
    enum status status = cupti_session_attach(&model, CUPTI_RANGES, s, err);
    if (status == STATUS_OK && !s->backend->hold(s->cupti, reason))
        status = UNSUPPORTED(err, "%s", reason);
    if (status != STATUS_OK)
        cupti_session_close(s);
    else
        *attached = s;
    return status;
}

bool cupti_session_missed(const void *session)
{
    const struct cupti_session *s = session;
    return s->saw_none || gpu_counting_saw_no_kernel(s->counting);
}

/* ---- passes ---- */

int cupti_session_passes(const void *session)
{
    const struct cupti_session *s = session;
    return gpu_counting_passes(s->counting);
}

enum status cupti_session_begin(void *session, int pass, struct error *err)
{
    struct cupti_session *s = session;
    (void)pass; /* they are made in their order */
    return gpu_counting_begin(s->counting, err);
}

enum status cupti_session_end(void *session, int pass, int64_t executions, struct error *err)
{
    struct cupti_session *s = session;
    (void)pass;
    return gpu_counting_end(s->counting, executions, err);
}

int cupti_session_read(void *session, struct profiler_metric *metrics)
{
    struct cupti_session *s = session;
    int count = gpu_counting_read(s->counting, metrics);
    for (int k = 0; k < count; k++)
        if (strcmp(metrics[k].name, "flops") == 0)
            s->saw_none = metrics[k].value <= 0 && s->flops > 0;
    return cupti_session_doubt(s, metrics, count);
}

static bool counts_operations(const char *name)
{
    return strncmp(name, "flops", strlen("flops")) == 0 ||
           strncmp(name, "tensor_ops", strlen("tensor_ops")) == 0;
}

int cupti_session_doubt(const struct cupti_session *s, struct profiler_metric *metrics, int count)
{
    for (int k = 0; k < count && s->saw_none; k++)
        if (counts_operations(metrics[k].name) && !isnan(metrics[k].value)) {
            metrics[k].value = NAN;
            metrics[k].reason = "CUPTI saw not one operation, so its patches did not reach the "
                                "kernels: RIDGE_COUNT_FIRST=1, or CUDA_MODULE_LOADING=EAGER, may "
                                "help";
        }
    return count;
}

void cupti_session_close(void *session)
{
    struct cupti_session *s = session;
    if (s->counting)
        gpu_counting_close(s->counting);
    cupti_session_detach(s);
    free(s);
}
