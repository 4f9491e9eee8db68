/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/graph_text.h"

#include <inttypes.h>

void graph_print_attr(FILE *stream, const struct attr *attr)
{
    char shape[96];
    fprintf(stream, " %s=", attr->name);
    switch (attr->kind) {
    case ATTR_INT:
        fprintf(stream, "%" PRId64, attr->i);
        break;
    case ATTR_FLOAT:
        fprintf(stream, "%.9g", attr->f);
        break;
    case ATTR_STRING:
        fprintf(stream, "\"%s\"", attr->s);
        break;
    case ATTR_INTS:
        for (int k = 0; k < attr->count; k++)
            fprintf(stream, "%s%" PRId64, k ? "," : "[", attr->ints[k]);
        fprintf(stream, "%s", attr->count ? "]" : "[]");
        break;
    case ATTR_FLOATS:
        for (int k = 0; k < attr->count; k++)
            fprintf(stream, "%s%.9g", k ? "," : "[", attr->floats[k]);
        fprintf(stream, "%s", attr->count ? "]" : "[]");
        break;
    case ATTR_STRINGS:
        for (int k = 0; k < attr->count; k++)
            fprintf(stream, "%s\"%s\"", k ? "," : "[", attr->strings[k]);
        fprintf(stream, "%s", attr->count ? "]" : "[]");
        break;
    case ATTR_TENSOR:
        fprintf(stream, "%s%s", dtype_name(attr->desc.dtype), shape_text(&attr->desc.shape, shape));
        break;
    case ATTR_GRAPH:
        fprintf(stream, "graph");
        break;
    }
}
