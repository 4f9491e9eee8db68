/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks cuDNN itself, without a GPU, whether it has engines for what the workloads need: every
 * distinct convolution, pooling, normalisation and attention of every workload, after the passes,
 * in f32 with images plain and channels-last, and channels-last in tf32, bf16 and f16, for three
 * chips. Fails when one has none and is not listed below as work for a kernel of our own. --all:
 * also with plain images in tf32, bf16 and f16, which the compiler does not make; there engines may
 * lack.
 *
 * Engines that are compiled at run time are offered only where a libcuda.so.1 can be opened; the
 * toolkit's stub is enough (tests/gpu/cudnn_support.sh). --plans makes the first plan of each, too:
 * with the stub, compiled code cannot be loaded, which is as far as one gets without a device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/options.h"
#include "engine/kernels/cudnn/lib/state.h"
#include "tests/gpu/chips.h"
#include "tests/gpu/hooks.h"
#include "tests/lib/lowered.h"
#include "tests/lib/op_case.h"
#include "workloads/workload.h"

enum { SIGNATURES_MAX = 8192, REASON = 120 };

#define X(name) extern const struct kernel kernel_cudnn_##name;
#include "cudnn_list.inc"
#undef X

static const struct kernel *const kernels[] = {
#define X(name) &kernel_cudnn_##name,
#include "cudnn_list.inc"
#undef X
};

static const char *const wanted_ops[] = {
    "Conv",
    "ConvTranspose",
    "MaxPool",
    "AveragePool",
    "GlobalMaxPool",
    "GlobalAveragePool",
    "BatchNormalization",
    "LayerNormalization",
    "RMSNormalization",
    "InstanceNormalization",
    "GroupNormalization",
    "Attention",
    "MatMul",
    "Gemm",
};

/* In what a network is compiled. */
static const struct form {
    const char *name;
    enum precision precision;
    enum dtype floats;
    enum images images;
    bool all; /* with --all only: nothing need be supported */
} forms[] = {
    {"f32", PRECISION_F32, DTYPE_F32, IMAGES_PLAIN, false},
    {"f32last", PRECISION_F32, DTYPE_F32, IMAGES_LAST, false},
    {"tf32", PRECISION_TF32, DTYPE_F32, IMAGES_LAST, false},
    {"bf16", PRECISION_BF16, DTYPE_BF16, IMAGES_LAST, false},
    {"f16", PRECISION_F16, DTYPE_F16, IMAGES_LAST, false},
    {"tf32pln", PRECISION_TF32, DTYPE_F32, IMAGES_PLAIN, true},
    {"bf16pln", PRECISION_BF16, DTYPE_BF16, IMAGES_PLAIN, true},
    {"f16pln", PRECISION_F16, DTYPE_F16, IMAGES_PLAIN, true},
};

enum { FORM_PLAIN, FORM_LAST, FORM_BF16 = 3, FORMS = ARRAY_COUNT(forms) };

/* What cuDNN does not have, by operator, type (NONE: any) and a part of its reason. */
struct exception {
    const char *op;
    enum dtype type;
    const char *reason;
    const char *instead;
    bool plain; /* with plain images only */
};

#define OWN_OR_LAST "own kernel; channels-last, which is compiled too, cuDNN has one"
#define OWN_POOL    "own kernel: cuDNN's for f16 and bf16 reads outside of its image"

static const struct exception exceptions[] = {
    {"Attention", DTYPE_F32, "", "own kernel: cuDNN's attention is for f16 and bf16", false},
    {"Attention", DTYPE_NONE, "causal, or heads",
     "own kernel: cuDNN's graph here has neither masks that are not read nor shared heads", false},
    {"MaxPool", DTYPE_NONE, "is compiled already", OWN_POOL, false},
    {"AveragePool", DTYPE_NONE, "is compiled already", OWN_POOL, false},
    {"GlobalMaxPool", DTYPE_NONE, "is compiled already", OWN_POOL, false},
    {"GlobalAveragePool", DTYPE_NONE, "is compiled already", OWN_POOL, false},
    {"MatMul", DTYPE_F32, "not constant", "cuBLASLt: cuDNN's products round to tf32", false},
    {"Gemm", DTYPE_F32, "not constant", "cuBLASLt: cuDNN's products round to tf32", false},
    {"MatMul", DTYPE_F32, "more than one product", "cuBLASLt: cuDNN's products round to tf32",
     false},
    {"Conv", DTYPE_F32, "", OWN_OR_LAST, true},
    {"ConvTranspose", DTYPE_F32, "", OWN_OR_LAST, true},
    {"GlobalAveragePool", DTYPE_F32, "", OWN_OR_LAST, true},
    {"BatchNormalization", DTYPE_F32, "", OWN_OR_LAST, true},
};

struct answer {
    int engines;      /* some, or with --verbose how many */
    size_t workspace; /* of the first engine: the least of all kernels */
    bool ill_formed;  /* a question that makes no sense to cuDNN, whatever else was answered */
    char reason[REASON];
};

struct signature {
    char *key;
    char text[160];
    const char *op, *workload;
    int form; /* of forms */
    struct answer answers[CHIP_COUNT];
};

struct settings {
    const char *workload, *chip;
    bool cases, plans, all, verbose, help;
};

struct survey {
    struct settings settings;
    struct device chips[CHIP_COUNT];
    int asked[CHIP_COUNT], asked_count; /* those of them that cuDNN is asked about */
    struct arena arena;
    struct signature *signatures;
    int count, nodes, failed, excused;
    int alike; /* most variants of one engine, of a convolution in bf16 on an H200 */
};

static const struct option table[] = {
    {"workload", 'w', OPTION_TEXT, offsetof(struct settings, workload), "NAME", "only this one"},
    {"chip", '\0', OPTION_TEXT, offsetof(struct settings, chip), "NAME", "only this one: sm_90"},
    {"cases", 'c', OPTION_FLAG, offsetof(struct settings, cases), NULL,
     "the operators' test cases instead of workloads; they need not be supported"},
    {"plans", 'p', OPTION_FLAG, offsetof(struct settings, plans), NULL,
     "make the first plan of each"},
    {"all", 'a', OPTION_FLAG, offsetof(struct settings, all), NULL,
     "in layouts that the compiler does not make, too"},
    {"verbose", 'v', OPTION_FLAG, offsetof(struct settings, verbose), NULL,
     "one line per signature, with the number of engines that the tuner would try"},
    {"help", 'h', OPTION_FLAG, offsetof(struct settings, help), NULL, "print this"},
    {.name = NULL},
};

/* ---- one node ---- */

/* A plan that fails only because the stub cannot load code is as good as one can be here. */
static enum status first_plan(const struct kernel *kernel, const struct kernel_query *q,
                              struct error *why)
{
    struct kernel_state *state;
    size_t bytes;
    TRY(kernel_plan(kernel, q, 0, &state, why));
    enum status status = kernel_prepare(kernel, q, state, &bytes, why);
    kernel_release(kernel, state);
    bool compiled = strstr(why->message, "cuLibraryLoadData") != NULL;
    bool no_device = strstr(why->message, "cudnnCreate") || strstr(why->message, NO_MEMORY_HERE);
    return compiled || no_device ? STATUS_OK : status;
}

static enum status first_workspace(const struct kernel *kernel, const struct kernel_query *q,
                                   size_t *bytes, struct error *why)
{
    struct kernel_state *state;
    TRY(kernel_plan(kernel, q, 0, &state, why));
    *bytes = kernel_workspace(kernel, state);
    kernel_release(kernel, state);
    return STATUS_OK;
}

static void ask(const struct survey *survey, const struct kernel_query *q, struct answer *answer)
{
    snprintf(answer->reason, sizeof(answer->reason), "no kernel of this plug-in");
    for (int k = 0; k < ARRAY_COUNT(kernels); k++) {
        struct error why = {0};
        if (!kernel_computes(kernels[k], q->node->op))
            continue;
        size_t bytes = 0;
        enum status status = first_workspace(kernels[k], q, &bytes, &why);
        if (status == STATUS_OK && survey->settings.plans)
            status = first_plan(kernels[k], q, &why);
        if (status == STATUS_OK) {
            answer->workspace =
                answer->engines && answer->workspace < bytes ? answer->workspace : bytes;
            answer->engines += survey->settings.verbose ? hooks_variants(kernels[k], q) : 1;
            continue;
        }
        answer->ill_formed = answer->ill_formed || strstr(why.message, "CUDNN_STATUS_BAD_PARAM");
        size_t length = strlen(why.message);
        length = length < REASON - 1 ? length : REASON - 1;
        memcpy(answer->reason, why.message, length);
        answer->reason[length] = 0;
    }
}

/* How many variants are configurations of the engine that most of them are of, distinguished by
 * knobs in their texts; 0 where the kernel is not for it. */
static int alike(const struct kernel *kernel, const struct kernel_query *q)
{
    static char texts[ENGINES_MAX][ENGINE_TEXT];
    if (kernel_accepts(kernel, q, NULL) != STATUS_OK)
        return 0;
    int count = hooks_variants(kernel, q), largest = 0;
    for (int v = 0; v < count && v < ENGINES_MAX; v++) {
        int same = 1;
        hooks_describe(kernel, q, v, texts[v], ENGINE_TEXT);
        size_t id = strlen("engine ") + strspn(texts[v] + strlen("engine "), "0123456789");
        for (int w = 0; w < v; w++)
            same += texts[v][id] == ' ' && strncmp(texts[w], texts[v], id + 1) == 0 &&
                    strcmp(texts[w], texts[v]) != 0;
        largest = same > largest ? same : largest;
    }
    return largest;
}

static void ask_all(const struct survey *survey, const struct step *step, struct signature *s)
{
    struct kernel_query q = step->query;
    for (int a = 0; a < survey->asked_count; a++) {
        int c = survey->asked[a];
        q.device = &survey->chips[c];
        ask(survey, &q, &s->answers[c]);
    }
}

/* ---- signatures ---- */

static void describe(const struct step *step, struct signature *s)
{
    char shape[96];
    const struct node *node = step->query.node;
    int length = snprintf(s->text, sizeof(s->text), "%s", s->op);
    for (int k = 0; k < step->query.in_count && k < 2; k++)
        if (step->query.in[k].dtype != DTYPE_NONE)
            length += snprintf(s->text + length, sizeof(s->text) - (size_t)length, " %s%s",
                               shape_text(&step->query.in[k].shape, shape),
                               desc_is_nhwc(&step->query.in[k]) ? "nhwc" : "");
    length += snprintf(s->text + length, sizeof(s->text) - (size_t)length, " -> %s",
                       shape_text(&step->query.out[0].shape, shape));
    for (int k = 0; k < node->post_count && length < 130; k++)
        length += snprintf(s->text + length, sizeof(s->text) - (size_t)length, " %s%d",
                           node->posts[k].kind == POST_ACT   ? "act"
                           : node->posts[k].kind == POST_ADD ? "add"
                                                             : "mul",
                           (int)node->posts[k].act);
}

static bool is_wanted(const char *op)
{
    for (int k = 0; k < ARRAY_COUNT(wanted_ops); k++)
        if (strcmp(op, wanted_ops[k]) == 0)
            return true;
    return false;
}

static enum status survey_step(struct survey *survey, const struct lowered *lowered, int index,
                               int form, const char *workload, struct error *err)
{
    const struct step *step = lowered_step(lowered, index);
    const char *op = step->query.node->op->name;
    if (!is_wanted(op))
        return STATUS_OK;
    survey->nodes++;
    char *key = step_signature(&lowered->exe, step, &survey->arena);
    if (!key)
        return FAIL_NO_MEMORY(err);
    for (int k = 0; k < survey->count; k++)
        if (strcmp(survey->signatures[k].key, key) == 0 &&
            forms[survey->signatures[k].form].precision == forms[form].precision)
            return STATUS_OK;
    if (survey->count == SIGNATURES_MAX)
        return FAIL(err, STATUS_FAILED, "more than %d signatures", SIGNATURES_MAX);
    struct signature *s = &survey->signatures[survey->count++];
    *s = (struct signature){.key = key, .op = op, .workload = workload, .form = form};
    describe(step, s);
    ask_all(survey, step, s);
    if (form == FORM_BF16 && strcmp(op, "Conv") == 0 && survey->alike < 2) {
        struct kernel_query q = step->query;
        q.device = &survey->chips[CHIP_H200];
        int same = alike(&kernel_cudnn_conv, &q);
        survey->alike = same > survey->alike ? same : survey->alike;
    }
    return STATUS_OK;
}

/* Takes the graph. */
static enum status survey_graph(struct survey *survey, struct graph *graph, int form,
                                const char *name, struct error *err)
{
    struct lowered lowered;
    struct exe_options options = {.threads = 1,
                                  .precision = forms[form].precision,
                                  .images = forms[form].images,
                                  .device = "cuda"};
    enum status status = lowered_open_with(&lowered, graph, &options, err);
    for (int s = 0; status == STATUS_OK && s < lowered_count(&lowered); s++)
        status = survey_step(survey, &lowered, s, form, name, err);
    lowered_close(&lowered);
    return status == STATUS_OK ? STATUS_OK : error_context(err, "%s", name);
}

static enum status survey_workloads(struct survey *survey, struct error *err)
{
    for (int k = 0; k < workload_count(); k++) {
        const char *name = workload_at(k)->name, *only = survey->settings.workload;
        for (int f = 0; f < FORMS && (!only || strcmp(only, name) == 0); f++) {
            struct graph *graph;
            if (forms[f].all && !survey->settings.all)
                continue;
            TRY(workload_open(name, 0, PRECISION_F32, &graph, err));
            TRY(survey_graph(survey, graph, f, name, err));
        }
    }
    return STATUS_OK;
}

static enum status survey_cases(struct survey *survey, struct error *err)
{
    for (int k = 0; k < ARRAY_COUNT(wanted_ops); k++) {
        const struct op *op = op_named(wanted_ops[k]);
        for (int c = 0; op && c < op->case_count; c++) {
            struct graph *graph = op_case_graph(op, &op->cases[c], err);
            if (!graph)
                return err->code;
            TRY(survey_graph(survey, graph, FORM_LAST, op->cases[c].name, err));
        }
    }
    return STATUS_OK;
}

/* ---- the report ---- */

static const struct exception *exception_of(const struct signature *s, const char *reason)
{
    for (int k = 0; k < ARRAY_COUNT(exceptions); k++) {
        const struct exception *e = &exceptions[k];
        bool type = e->type == DTYPE_NONE || e->type == forms[s->form].floats;
        bool images = !e->plain || forms[s->form].images == IMAGES_PLAIN;
        if (strcmp(e->op, s->op) == 0 && type && images && strstr(reason, e->reason))
            return e;
    }
    return NULL;
}

static void report_signature(struct survey *survey, const struct signature *s)
{
    bool lacks = false;
    char line[96] = "";
    int length = 0;
    for (int a = 0; a < survey->asked_count; a++) {
        int c = survey->asked[a];
        lacks = lacks || !s->answers[c].engines;
        length += snprintf(line + length, sizeof(line) - (size_t)length, " %s %2d", chip_name(c),
                           s->answers[c].engines);
    }
    if (lacks || survey->settings.verbose)
        printf("# %-7s%s  %s (%s)\n", forms[s->form].name, line, s->text, s->workload);
    for (int a = 0; a < survey->asked_count; a++) {
        int c = survey->asked[a];
        const struct answer *answer = &s->answers[c];
        if (answer->ill_formed)
            printf("# ill-formed on %s: %s (%s)\n", chip_name(c), s->text, s->workload);
        survey->failed += answer->ill_formed;
        if (answer->engines)
            continue;
        const struct exception *e = exception_of(s, answer->reason);
        survey->failed += !e && !forms[s->form].all;
        survey->excused += e != NULL;
        if (!e || survey->settings.verbose)
            printf("#      %s: %s%s%s\n", chip_name(c), answer->reason, e ? " -> " : "",
                   e ? e->instead : "");
    }
}

/* How many of the forms are asked about. */
static int forms_of(const struct survey *survey)
{
    int count = 0;
    while (count < FORMS && (!forms[count].all || survey->settings.all))
        count++;
    return count;
}

static void report_op(const struct survey *survey, const char *op)
{
    int distinct[FORMS] = {0}, has[FORMS][CHIP_COUNT] = {{0}};
    for (int k = 0; k < survey->count; k++) {
        const struct signature *s = &survey->signatures[k];
        if (strcmp(s->op, op) != 0)
            continue;
        distinct[s->form]++;
        for (int c = 0; c < CHIP_COUNT; c++) /* none, where it was not asked */
            has[s->form][c] += s->answers[c].engines > 0;
    }
    if (!distinct[0])
        return;
    printf("# %-22s", op);
    for (int t = 0; t < forms_of(survey); t++) {
        printf(" %8d", distinct[t]);
        for (int c = 0; c < survey->asked_count; c++)
            printf(" %6d", has[t][survey->asked[c]]);
    }
    printf("\n");
}

/* What the first engines of all convolutions in exact f32 want, MB: where it is much, they
 * transpose images inside. Fails where that is not less with plain images. */
static void report_workspace(struct survey *survey)
{
    for (int a = 0; a < survey->asked_count; a++) {
        int c = survey->asked[a];
        double bytes[FORMS] = {0};
        for (int k = 0; k < survey->count; k++)
            if (strcmp(survey->signatures[k].op, "Conv") == 0)
                bytes[survey->signatures[k].form] +=
                    (double)survey->signatures[k].answers[c].workspace;
        printf("# %s: workspace of convolutions, MB:", chip_name(c));
        for (int t = 0; t < forms_of(survey); t++)
            printf(" %s %.0f", forms[t].name, bytes[t] * 1e-6);
        printf("\n");
        survey->failed += bytes[FORM_PLAIN] > 0 && bytes[FORM_PLAIN] >= bytes[FORM_LAST];
    }
}

static void report(struct survey *survey)
{
    for (int k = 0; k < survey->count; k++)
        report_signature(survey, &survey->signatures[k]);
    printf("#\n# %-22s", "with engines of cuDNN");
    for (int t = 0; t < forms_of(survey); t++) {
        printf(" %8s", forms[t].name);
        for (int c = 0; c < survey->asked_count; c++)
            printf(" %6s", chip_name(survey->asked[c]) + 3);
    }
    printf("\n");
    for (int k = 0; k < ARRAY_COUNT(wanted_ops); k++)
        report_op(survey, wanted_ops[k]);
    report_workspace(survey);
    printf("# %d configurations of one engine for a convolution in bf16 on %s\n", survey->alike,
           chip_name(CHIP_H200));
    printf("# %d nodes, %d distinct; %d questions, %d left to kernels of our own\n", survey->nodes,
           survey->count, survey->count * survey->asked_count, survey->excused);
}

static enum status run(struct survey *survey, struct error *err)
{
    cudnn_host = plugin_host();
    TRY(cudnn_api_open(&cudnn, err));
    /* Opens the compiler, as the plug-in does: else cuDNN opens and closes it with every question.
     */
    char version[64];
    cudnn_version_text(&cudnn, version, sizeof(version));
    printf("# cuDNN %s\n", version);
    chips_describe(survey->chips);
    for (int c = 0; c < CHIP_COUNT; c++) {
        char json[1024];
        chip_json(c, json, sizeof(json));
        TRY(device_chip_from_json(c, json, err));
        if (!survey->settings.chip || strcmp(survey->settings.chip, chip_name(c)) == 0)
            survey->asked[survey->asked_count++] = c;
    }
    if (survey->asked_count == 0)
        return FAIL(err, STATUS_FAILED, "no chip \"%s\"", survey->settings.chip);
    survey->signatures = arena_array(&survey->arena, SIGNATURES_MAX, sizeof(*survey->signatures));
    if (!survey->signatures)
        return FAIL_NO_MEMORY(err);
    TRY(survey->settings.cases ? survey_cases(survey, err) : survey_workloads(survey, err));
    report(survey);
    device_chips_release();
    return STATUS_OK;
}

int main(int argc, char **argv)
{
    struct survey survey = {.count = 0};
    struct error err = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    enum status status = options_parse(table, &argc, argv, &survey.settings, &err);
    if (status == STATUS_OK && survey.settings.help) {
        char text[1024];
        options_usage(table, text, sizeof(text));
        printf("usage: %s [options]\n%s", argv[0], text);
        return 0;
    }
    if (status == STATUS_OK)
        status = run(&survey, &err);
    arena_release(&survey.arena);
    if (status != STATUS_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], err.message);
        return 2;
    }
    if (survey.settings.cases)
        return 0;
    if (!survey.settings.workload && survey.alike < 2) {
        printf("# no engine with two configurations: knobs are not read\n");
        survey.failed++;
    }
    printf("%d passed, %d failed\n", survey.count * survey.asked_count - survey.failed,
           survey.failed);
    return survey.failed ? 1 : 0;
}
