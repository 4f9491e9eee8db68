/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/recurrence.h"

#include <string.h>

static const struct {
    const char *name;
    int gates;
} cells[CELL_COUNT] = {[CELL_RNN] = {"rnn", 1},
                       [CELL_LSTM] = {"lstm", 4},
                       [CELL_GRU] = {"gru", 3},
                       [CELL_AUGRU] = {"augru", 3}};

const char *cell_name(enum cell cell)
{
    return cells[cell].name;
}

int cell_gates(enum cell cell)
{
    return cells[cell].gates;
}

enum status recurrence_from(const struct node *node, const struct shape *a,
                            struct recurrence *recurrence, struct error *err)
{
    const char *name = node_string(node, "cell", "");
    char text[96];
    int cell = 0;
    while (cell < CELL_COUNT && strcmp(cells[cell].name, name) != 0)
        cell++;
    if (cell == CELL_COUNT)
        return FAIL(err, STATUS_FAILED, "%s: there is no cell \"%s\"", node->op->name, name);
    if (a->rank != 3 || a->dim[2] % cells[cell].gates != 0)
        return FAIL(err, STATUS_FAILED, "%s: %s are no sums of the %d gates of %s", node->op->name,
                    shape_text(a, text), cells[cell].gates, name);
    *recurrence = (struct recurrence){.cell = (enum cell)cell,
                                      .steps = a->dim[0],
                                      .batch = a->dim[1],
                                      .hidden = a->dim[2] / cells[cell].gates,
                                      .width = a->dim[2],
                                      .reverse = node_int(node, "reverse", 0) != 0,
                                      .linear = node_int(node, "linear_before_reset", 0) != 0,
                                      .relu = node_int(node, "relu", 0) != 0};
    return STATUS_OK;
}
