/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/suite/point_label.h"

#include <string.h>

#include "results/format.h"

const char *point_label(struct arena *arena, const struct grid *g, int64_t row)
{
    static const struct {
        const char *column, *usual;
    } rest[] = {{"mode", "inference"},         {"device", "cpu"}, {"precision", "f32"},
                {"scenario", "single_stream"}, {"cache", "warm"}, {"providers", ""}};
    const char *params = grid_text(g, row, "params");
    char *label = arena_printf(arena, "%s%s%s batch=%.0f threads=%.0f",
                               grid_text(g, row, "workload"), *params ? ":" : "", params,
                               grid_number(g, row, "batch"), grid_number(g, row, "threads"));
    for (size_t k = 0; label && k < sizeof(rest) / sizeof(*rest); k++) {
        const char *value = grid_text(g, row, rest[k].column);
        if (strcmp(value, rest[k].usual) != 0)
            label = arena_printf(arena, "%s %s", label, value);
    }
    return label ? arena_printf(arena, "%s%s", label, format_rare_words(g, row)) : NULL;
}
