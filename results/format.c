/* SPDX-License-Identifier: Apache-2.0 */
#include "results/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define X(name) extern const struct format format_##name;
#include "format_list.inc"
#undef X

static const struct format *const formats[] = {
#define X(name) &format_##name,
#include "format_list.inc"
#undef X
};

int format_count(void)
{
    return ARRAY_COUNT(formats);
}

const struct format *format_at(int index)
{
    return formats[index];
}

const struct format *format_find(const char *name)
{
    for (int k = 0; k < format_count(); k++)
        if (strcmp(formats[k]->name, name) == 0)
            return formats[k];
    return NULL;
}

int64_t *format_samples(const char *text, int *count)
{
    int commas = 0;
    *count = 0;
    for (const char *at = text; *at; at++)
        commas += *at == ',';
    int64_t *values = calloc((size_t)commas + 2, sizeof(*values));
    const char *at = *text == '[' ? text + 1 : text;
    while (values && *at && *at != ']' && *count <= commas) {
        char *end;
        long long value = strtoll(at, &end, 10);
        if (end == at)
            break;
        values[(*count)++] = value;
        at = *end == ',' ? end + 1 : end;
    }
    return values;
}

const char *format_rare_words(const struct grid *grid, int64_t row)
{
    const char *providers = strstr(grid_text(grid, row, "canonical"), " providers=");
    const char *rest = providers ? strchr(providers + 1, ' ') : NULL;
    return rest ? rest : "";
}

bool format_starts_result(const struct grid *grid, int64_t row)
{
    return row == 0 || strcmp(grid_text(grid, row, "run"), grid_text(grid, row - 1, "run")) != 0 ||
           strcmp(grid_text(grid, row, "sequence"), grid_text(grid, row - 1, "sequence")) != 0;
}

enum status format_flush(FILE *stream, struct error *err)
{
    if (fflush(stream) || ferror(stream))
        return FAIL(err, STATUS_FAILED, "the output could not be written: %s", strerror(errno));
    return STATUS_OK;
}
