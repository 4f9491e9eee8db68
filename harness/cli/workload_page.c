/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/cli/workload_page.h"

#include <stdio.h>

#include "base/embedded.h"
#include "engine/graph/cost.h"

static enum status cost_of(const char *spec, int64_t batch, struct graph_cost *cost,
                           struct error *err)
{
    struct graph *graph;
    TRY(workload_open(spec, batch, PRECISION_F32, &graph, err));
    graph_cost(graph, cost);
    graph_free(graph);
    return STATUS_OK;
}

static void print_numbers(int64_t batch, const struct graph_cost *cost, FILE *stream)
{
    fprintf(stream, "| %lld | %.0f | %.4g | %.4g | %.4g | %.4g |\n", (long long)batch, cost->params,
            cost->work.macs * 1e-9, cost->flops * 1e-9, cost->bytes_compulsory * 1e-6,
            cost->bytes_streamed * 1e-6);
}

static void print_params(const struct workload *w, FILE *stream)
{
    for (const struct param *p = w->params; p && p->name; p++)
        fprintf(stream, "%s`%s=%s` %s\n",
                p == w->params ? "\nParameters, with their defaults:\n\n- " : "- ", p->name,
                p->value, p->help);
}

enum status workload_page_print(const struct workload *w, const char *spec, FILE *stream,
                                struct error *err)
{
    bool two = w->table1_batch && w->table1_batch != w->batch;
    struct graph_cost cost, cost_table1;
    char path[128];
    TRY(cost_of(spec, w->batch, &cost, err)); /* before anything is printed */
    if (two)
        TRY(cost_of(spec, w->table1_batch, &cost_table1, err));
    snprintf(path, sizeof(path), "docs/workloads/%s.md", w->name);
    const struct embedded *page = embedded_find(path);
    if (page)
        fprintf(stream, "%s\n", page->text);
    else
        fprintf(stream, "# %s\n\n%s. %s. Source: %s.\n\n", w->name, w->task, w->summary, w->source);
    fprintf(stream, "| batch | parameters | GMAC | GFLOP | compulsory MB | streamed MB |\n"
                    "|---|---|---|---|---|---|\n");
    print_numbers(w->batch, &cost, stream);
    if (two)
        print_numbers(w->table1_batch, &cost_table1, stream);
    print_params(w, stream);
    return STATUS_OK;
}
