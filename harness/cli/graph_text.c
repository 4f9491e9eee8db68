/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/cli/graph_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/clean.h"

void graph_print_quoted(FILE *stream, const char *text)
{
    fputc('"', stream);
    while (*text) {
        char piece[5] = "";
        int length = utf8_length(text);
        memcpy(piece, text, length ? (size_t)length : 1);
        if (*text == '"' || *text == '\\')
            fputc('\\', stream);
        clean_put(stream, piece);
        text += length ? length : 1;
    }
    fputc('"', stream);
}

void graph_print_attr(FILE *stream, const struct attr *attr)
{
    char shape[96];
    fputc(' ', stream);
    clean_put(stream, attr->name);
    fputc('=', stream);
    switch (attr->kind) {
    case ATTR_INT:
        fprintf(stream, "%" PRId64, attr->i);
        break;
    case ATTR_FLOAT:
        fprintf(stream, "%.9g", attr->f);
        break;
    case ATTR_STRING:
        graph_print_quoted(stream, attr->s);
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
        for (int k = 0; k < attr->count; k++) {
            fputc(k ? ',' : '[', stream);
            graph_print_quoted(stream, attr->strings[k]);
        }
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
