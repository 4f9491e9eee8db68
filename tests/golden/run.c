/* SPDX-License-Identifier: Apache-2.0
 *
 * What every workload comes to before anything is timed, held against the files of this folder: the
 * id of its point, what it costs, the ONNX file it is exported as, its nodes, and after the passes
 * and the lowering its steps with the first kernel that accepts each, and the memory plan. A change
 * of the house that should change nothing leaves all of it as it was; one that should shows which
 * lines changed.
 *
 *   run                  all workloads against tests/golden/NAME.txt
 *   run ncf gcn          these
 *   run --update [...]   writes the files anew
 *
 * Steps and memory are those of native kernels up to AVX2 with one thread, so that they are the
 * same on every x86 machine; on other machines they are left out of the comparison. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/registry.h"
#include "base/system/file.h"
#include "base/system/hash.h"
#include "engine/graph/cost.h"
#include "engine/graph/kernel.h"
#include "engine/run/kernels.h"
#include "harness/cli/graph_text.h"
#include "harness/suite/plan.h"
#include "tests/lib/lowered.h"
#include "workloads/onnx/onnx.h"
#include "workloads/workload.h"

/* Parameters that bring other operators or other graphs than the default ones do. */
static const char *const variants[] = {
    "active:kind=Sigmoid",  "active:kind=Softmax",   "faster_rcnn:body=zf",  "googlenet:form=bvlc",
    "llama3:phase=prefill", "mixtral:phase=prefill", "ncf:embedding=gather", "nmt:beam=10",
    "norm:kind=lrn",        "pool:kind=average",     "resnet50:version=1.5", "rnn:cell=GRU",
    "rnn:cell=RNN",         "synnet:form=published"};

#if defined(__x86_64__)
static const bool has_steps = true;
#else
static const bool has_steps = false;
#endif
static const char steps_begin[] = "\nsteps\n";

struct replay {
    FILE *out;
    const char *spec;
    char scratch[256]; /* an ONNX file */
};

/* ---- the graph ---- */

static void print_names(FILE *out, const struct graph *g, const int *values, int count)
{
    for (int k = 0; k < count; k++)
        fprintf(out, "%s%s", k ? ", " : "", values[k] == NONE ? "-" : g->values[values[k]].name);
}

static void print_value(FILE *out, const struct value *value)
{
    static const char *const kinds[] = {"input", "param", "state", "const", "result"};
    static const char *const fills[] = {
        [FILL_CONST] = "all",   [FILL_UNIFORM] = "uniform", [FILL_NORMAL] = "normal",
        [FILL_INDEX] = "index", [FILL_ZIPF] = "zipf",       [FILL_MASK] = "mask",
        [FILL_IMAGE] = "image", [FILL_NIBBLES] = "nibbles"};
    char shape[96];
    fprintf(out, "%s %s %s%s", kinds[value->kind], value->name, dtype_name(value->dtype),
            shape_text(&value->shape, shape));
    if (value->fill.kind != FILL_NONE)
        fprintf(out, " %s %.9g %.9g %llx", fills[value->fill.kind], value->fill.a, value->fill.b,
                (unsigned long long)value->fill.seed);
    if (value->data) {
        size_t size = value_size(value);
        fprintf(out, " data %016llx", (unsigned long long)hash64_more(0, value->data, size));
    }
    fprintf(out, "\n");
}

static void print_node(FILE *out, const struct graph *g, int n)
{
    const struct node *node = &g->nodes[n];
    struct node_cost cost;
    char shape[96];
    node_cost(g, n, &cost);
    fprintf(out, "%s %s(", node->name, node->op->name);
    print_names(out, g, node->inputs, node->input_count);
    fprintf(out, ")");
    for (int k = 0; k < node->attr_count; k++)
        graph_print_attr(out, &node->attrs[k]);
    fprintf(out, " ->");
    for (int k = 0; k < node->output_count; k++) {
        const struct value *value = node->outputs[k] == NONE ? NULL : &g->values[node->outputs[k]];
        fprintf(out, " %s%s", value ? dtype_name(value->dtype) : "-",
                value ? shape_text(&value->shape, shape) : "");
    }
    fprintf(out, " flops %.0f bytes %.0f\n", cost.flops, cost.bytes_read + cost.bytes_written);
}

static void print_graph(FILE *out, const struct graph *g)
{
    struct graph_cost cost;
    graph_cost(g, &cost);
    fprintf(out,
            "batch %lld\nparameters %.0f\nbuffers %.0f\nmacs %.0f\nelementwise %.0f\n"
            "transcendentals %.0f\nflops %.0f\nbytes compulsory %.0f\nbytes streamed %.0f\n",
            (long long)cost.batch, cost.params, cost.buffers, cost.work.macs, cost.work.elementwise,
            cost.work.transcendentals, cost.flops, cost.bytes_compulsory, cost.bytes_streamed);
    fprintf(out, "\nvalues\n");
    for (int v = 0; v < g->value_count; v++)
        if (g->values[v].kind != VALUE_RESULT)
            print_value(out, &g->values[v]);
    fprintf(out, "\nnodes\n");
    for (int n = 0; n < g->node_count; n++)
        if (!g->nodes[n].dead)
            print_node(out, g, n);
    fprintf(out, "outputs ");
    print_names(out, g, g->outputs, g->output_count);
    fprintf(out, "\n");
}

/* ---- the point and the ONNX file ---- */

static enum status print_point(struct replay *r, struct error *err)
{
    struct plan_overrides overrides = {.threads = "2"};
    char word[128], *words[] = {word};
    struct plan plan;
    snprintf(word, sizeof(word), "%s", r->spec);
    TRY(plan_from_words(words, 1, &overrides, &plan, err));
    fprintf(r->out, "point %s %s\n", plan.points[0].id, plan.points[0].canonical);
    plan_release(&plan);
    return STATUS_OK;
}

/* Large weights become inputs: what is in them is known by their fills, and need not be written. */
static enum status print_onnx(struct replay *r, const struct graph *g, struct error *err)
{
    enum { LARGE_BYTES = 4096 };
    uint64_t hash = 0;
    struct graph *copy = graph_copy(g);
    if (!copy)
        return FAIL_NO_MEMORY(err);
    for (int v = 0; v < copy->value_count; v++) {
        struct value *value = &copy->values[v];
        int64_t bytes = (int64_t)value_size(value);
        if (value_is_fixed(value) && !value->data && bytes >= LARGE_BYTES)
            graph_make_input(copy, v, value->fill);
    }
    enum status status = onnx_export(copy, r->scratch, NULL, err);
    if (status == STATUS_OK)
        status = hash64_file(r->scratch, &hash, err);
    fprintf(r->out, "onnx %016llx\n", (unsigned long long)hash);
    unlink(r->scratch);
    graph_free(copy);
    return status;
}

/* ---- steps ---- */

static bool is_native(const struct kernel *kernel)
{
    return !kernel->device &&
           (strcmp(kernel->provider, "native") == 0 || strcmp(kernel->provider, "reference") == 0);
}

static const struct kernel *first_kernel(const struct kernel_query *q)
{
    struct error why;
    for (int isa = ISA_AVX2; isa >= ISA_SCALAR; isa--)
        for (int k = 0; k < kernel_count(); k++) {
            const struct kernel *kernel = kernel_at(k);
            if ((int)kernel->isa == isa && is_native(kernel) &&
                kernel_computes(kernel, q->node->op) &&
                kernel_accepts(kernel, q, &why) == STATUS_OK)
                return kernel;
        }
    return NULL;
}

static void print_desc(FILE *out, const struct desc *desc)
{
    static const char *const layouts[] = {[LAYOUT_PLAIN] = "", [LAYOUT_NHWC] = " nhwc"};
    char shape[96];
    if (desc->dtype == DTYPE_NONE)
        fprintf(out, " -");
    else
        fprintf(out, " %s%s%s", dtype_name(desc->dtype), shape_text(&desc->shape, shape),
                layouts[desc->layout]);
}

static void print_step(FILE *out, const struct step *step)
{
    static const char *const posts[] = {[POST_ACT] = "act", [POST_ADD] = "add", [POST_MUL] = "mul"};
    const struct node *node = step->query.node;
    fprintf(out, "%s %s", node->name, node->op->name);
    for (int k = 0; k < step->query.in_count; k++)
        print_desc(out, &step->query.in[k]);
    fprintf(out, " ->");
    for (int k = 0; k < step->query.out_count; k++)
        print_desc(out, &step->query.out[k]);
    for (int k = 0; k < node->post_count; k++) {
        fprintf(out, " +%s", posts[node->posts[k].kind]);
        if (node->posts[k].kind == POST_ACT)
            fprintf(out, " %s %g %g", function_info(node->posts[k].act)->name, node->posts[k].a,
                    node->posts[k].b);
    }
    fprintf(out, " by %s, workspace %zu, flops %.0f, bytes %.0f\n", step->kernel->name,
            step->workspace_bytes, 2 * step->cost.macs + step->cost.elementwise,
            step->bytes_in + step->bytes_out);
}

static enum status print_steps(FILE *out, struct lowered *l, double of_graph, struct error *err)
{
    double flops = 0, bytes = 0, changed = 0;
    for (int s = 0; s < l->exe.step_count; s++) {
        struct step *step = &l->exe.steps[s];
        step->kernel = first_kernel(&step->query);
        if (!step->kernel)
            return FAIL(err, STATUS_FAILED, "no kernel accepts \"%s\"", step->query.node->name);
        TRY(kernel_plan(step->kernel, &step->query, 0, &step->state, err));
        step->workspace_bytes = kernel_workspace(step->kernel, step->state);
        kernel_release(step->kernel, step->state);
        step->state = NULL;
        print_step(out, step);
        flops += 2 * step->cost.macs + step->cost.elementwise;
        bytes += step->bytes_in + step->bytes_out;
    }
    TRY(memory_plan(&l->exe, err));
    for (int k = 0; k < l->exe.passes.count; k++) {
        fprintf(out, "pass %s changes flops by %.0f\n", l->exe.passes.changes[k].pass,
                l->exe.passes.changes[k].flops);
        changed += l->exe.passes.changes[k].flops;
    }
    if (flops != of_graph + changed)
        return FAIL(err, STATUS_FAILED, "the steps have %.0f FLOPs, the graph and its passes %.0f",
                    flops, of_graph + changed);
    fprintf(out, "sum flops %.0f bytes %.0f\narena %zu unshared %zu\n", flops, bytes,
            (size_t)l->exe.sizes.arena_bytes, (size_t)l->exe.sizes.unshared_bytes);
    return STATUS_OK;
}

static double sum_of_steps(const struct lowered *l)
{
    double flops = 0;
    for (int s = 0; s < lowered_count(l); s++)
        flops += 2 * lowered_step(l, s)->cost.macs + lowered_step(l, s)->cost.elementwise;
    return flops;
}

/* Steps of the graph as it is have its FLOPs; with the passes, what these changed comes on top. */
static enum status check_flops(const struct graph *graph, struct error *err)
{
    struct exe_options options = {.threads = 1, .no_fuse = true};
    struct graph *copy = graph_copy(graph);
    struct lowered l;
    if (!copy)
        return FAIL_NO_MEMORY(err);
    enum status status = lowered_open_with(&l, copy, &options, err);
    if (status == STATUS_OK && sum_of_steps(&l) != graph_flops(graph))
        status =
            FAIL(err, STATUS_FAILED, "without passes the steps have %.0f FLOPs, the graph %.0f",
                 sum_of_steps(&l), graph_flops(graph));
    lowered_close(&l);
    return status;
}

static enum status print_lowered(struct replay *r, struct graph *graph, struct error *err)
{
    double of_graph = graph_flops(graph);
    struct lowered lowered;
    fprintf(r->out, "%s", steps_begin);
    enum status status = lowered_open(&lowered, graph, PRECISION_F32, err);
    if (status == STATUS_OK)
        status = print_steps(r->out, &lowered, of_graph, err);
    lowered_close(&lowered);
    return status;
}

static enum status print_all(struct replay *r, struct error *err)
{
    struct graph *graph;
    fprintf(r->out, "workload %s\n", r->spec);
    TRY(print_point(r, err));
    TRY(workload_open(r->spec, 0, PRECISION_F32, &graph, err));
    enum status status = print_onnx(r, graph, err);
    if (status == STATUS_OK)
        status = check_flops(graph, err);
    if (status == STATUS_OK)
        print_graph(r->out, graph);
    if (status != STATUS_OK || !has_steps) {
        graph_free(graph);
        return status;
    }
    return print_lowered(r, graph, err);
}

/* ---- against the files ---- */

static void golden_path(const char *folder, const char *spec, char *path, size_t size)
{
    snprintf(path, size, "%s/%s.txt", folder, spec);
    for (char *at = path + strlen(folder) + 1; *at; at++)
        *at = strchr(":=,", *at) ? '-' : *at;
}

static bool write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    bool good = file && fputs(text, file) >= 0;
    return file && fclose(file) == 0 && good;
}

/* The number of the first line that differs, 0 when there is none, and where it begins in both. */
static int first_difference(const char **a, const char **b)
{
    for (int line = 1; **a || **b; line++) {
        size_t length = strcspn(*a, "\n");
        if (length != strcspn(*b, "\n") || strncmp(*a, *b, length) != 0)
            return line;
        *a += length + ((*a)[length] == '\n');
        *b += length + ((*b)[length] == '\n');
    }
    return 0;
}

/* NULL: *err says why. */
static char *read_text(const char *path, struct error *err)
{
    struct file file;
    if (file_map(path, &file, err) != STATUS_OK)
        return NULL;
    char *text = calloc(1, file.size + 1);
    if (!text)
        FAIL_NO_MEMORY(err);
    else if (file.size)
        memcpy(text, file.data, file.size);
    file_unmap(&file);
    return text;
}

static bool is_as_before(const char *spec, const char *now, const char *build)
{
    char path[256], made[256], folder[192];
    struct error err = {0};
    golden_path("tests/golden", spec, path, sizeof(path));
    char *before = read_text(path, &err);
    if (!before) {
        printf("not ok - %s: %s (of a new workload `make replay-update` writes it)\n", spec,
               err.message);
        return false;
    }
    if (!has_steps && strstr(before, steps_begin))
        strstr(before, steps_begin)[0] = '\0';
    const char *a = before, *b = now;
    int line = first_difference(&a, &b);
    if (line) {
        snprintf(folder, sizeof(folder), "%s/golden", build);
        mkdir(folder, 0777);
        golden_path(folder, spec, made, sizeof(made));
        write_text(made, now);
        printf("not ok - %s\n# line %d was: %.*s\n# line %d is:  %.*s\n# diff %s %s\n", spec, line,
               (int)strcspn(a, "\n"), a, line, (int)strcspn(b, "\n"), b, path, made);
    } else {
        printf("ok - %s\n", spec);
    }
    free(before);
    return !line;
}

static bool replay(const char *spec, bool update, const char *build)
{
    struct replay r = {.spec = spec};
    struct error err = {0};
    char *text = NULL, path[256];
    size_t size;
    snprintf(r.scratch, sizeof(r.scratch), "%s/replay.onnx", build);
    r.out = open_memstream(&text, &size);
    enum status status = r.out ? print_all(&r, &err) : FAIL_NO_MEMORY(&err);
    bool good = r.out && fclose(r.out) == 0 && status == STATUS_OK;
    if (!good) {
        printf("not ok - %s: %s\n", spec, err.message);
    } else if (update) {
        golden_path("tests/golden", spec, path, sizeof(path));
        good = write_text(path, text);
        printf("%s %s\n", good ? "wrote" : "could not write", path);
    } else {
        good = is_as_before(spec, text, build);
    }
    free(text);
    return good;
}

int main(int argc, char **argv)
{
    const char *build = getenv("RIDGE_BUILD");
    bool update = argc > 1 && strcmp(argv[1], "--update") == 0;
    int first = update ? 2 : 1, good = 0, bad = 0;
    build = build ? build : "build/release";
    for (int k = first; k < argc; k++)
        *(replay(argv[k], update, build) ? &good : &bad) += 1;
    for (int k = 0; first == argc && k < workload_count(); k++)
        *(replay(workload_at(k)->name, update, build) ? &good : &bad) += 1;
    for (int k = 0; first == argc && k < ARRAY_COUNT(variants); k++)
        *(replay(variants[k], update, build) ? &good : &bad) += 1;
    printf("%d passed, %d failed\n", good, bad);
    return bad > 0;
}
