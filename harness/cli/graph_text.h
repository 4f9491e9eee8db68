/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a graph as text, the same on every machine, so that two dumps can be compared. */
#ifndef HARNESS_CLI_GRAPH_TEXT_H
#define HARNESS_CLI_GRAPH_TEXT_H

#include <stdio.h>

#include "engine/graph/graph.h"

/* " name=value"; of tensors only type and shape. */
void graph_print_attr(FILE *stream, const struct attr *attr);

/* In double quotes, as Graphviz reads them too, and fit to print. */
void graph_print_quoted(FILE *stream, const char *text);

#endif
