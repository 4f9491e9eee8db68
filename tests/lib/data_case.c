/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/data_case.h"

#include <stdlib.h>
#include <string.h>

struct graph *data_case_images(int64_t batch, int64_t side, int64_t classes)
{
    struct graph *g = graph_new("classifier");
    graph_input(g, "image", DTYPE_F32, shape_of(batch, 3, side, side),
                (struct fill){.kind = FILL_CONST});
    graph_input(g, "label", DTYPE_I64, shape_of(batch),
                (struct fill){.kind = FILL_INDEX, .a = 0, .b = (double)classes});
    return g;
}

struct graph *data_case_graph(const char *spec, int64_t batch)
{
    const struct training *training;
    struct graph *g;
    struct error err;
    if (workload_open_loss(spec, batch, &g, &training, &err) != STATUS_OK)
        abort();
    return g;
}

static enum status open_set(struct data_case *c, const char *name, const struct data_text *texts,
                            int count, struct error *err)
{
    struct data_place place;
    if (!texts) {
        TRY(data_find(name, &place, err));
        return data_open(&place, c->graph, &c->set, err);
    }
    for (int k = 0; k < data_format_count(); k++)
        if (strcmp(data_format_at(k)->name, name) == 0)
            return data_open_texts(data_format_at(k), texts, count, c->graph, &c->set, err);
    return FAIL(err, STATUS_FAILED, "no format %s", name);
}

enum status data_case_open(struct data_case *c, const char *name, const struct data_text *texts,
                           int count, struct graph *graph, struct error *err)
{
    *c = (struct data_case){.graph = graph};
    void **data = calloc((size_t)graph->input_count + 1, sizeof(*data));
    if (!data)
        abort();
    for (int k = 0; k < graph->input_count; k++) {
        const struct value *value = &graph->values[graph->inputs[k]];
        data[k] = calloc((size_t)shape_count(&value->shape) + 1, dtype_size(value->dtype));
    }
    c->batch = (struct batch){.graph = graph, .data = data, .seed = 1};
    c->batch.size = graph->values[graph->inputs[0]].shape.dim[0];
    return open_set(c, name, texts, count, err);
}

enum status data_case_read(struct data_case *c, bool held_out, int64_t first, struct error *err)
{
    int64_t bytes = 0;
    c->batch.held_out = held_out;
    c->batch.first = first;
    return data_fill(&c->set, &c->batch, 0, c->batch.size, &bytes, err);
}

void data_case_close(struct data_case *c)
{
    data_close(&c->set);
    void **data = (void **)(uintptr_t)c->batch.data;
    for (int k = 0; k < c->graph->input_count; k++)
        free(data[k]);
    free(data);
    graph_free(c->graph);
}

void data_case_try(const char *name, const struct data_text *texts, int count, struct graph *graph)
{
    struct data_case c;
    struct error err = {STATUS_OK, NULL, 0, ""};
    if (data_case_open(&c, name, texts, count, graph, &err) == STATUS_OK) {
        if (data_case_read(&c, false, 0, &err) != STATUS_OK ||
            data_case_read(&c, true, 3, &err) != STATUS_OK)
            abort(); /* what is in memory was checked when it was opened */
    } else if (!err.message[0]) {
        abort();
    }
    data_case_close(&c);
}
