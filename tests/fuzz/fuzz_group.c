/* SPDX-License-Identifier: Apache-2.0
 * Counter groups, and the formulas in them, on any bytes. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profilers/lib/formula.h"
#include "profilers/lib/group.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void evaluate_all(const struct group *group)
{
    struct formula_value values[GROUP_VALUES_MAX];
    double result;
    int count = 0;
    for (int k = 0; k < group->event_count; k++, count++)
        values[count] = (struct formula_value){group->events[k].id, k + 1.0};
    for (int k = 0; k < group->use_count; k++, count++)
        values[count] = (struct formula_value){group->uses[k], k + 1.0};
    count = group_add_known(group, true, false, values, count);
    for (int k = 0; k < group->metric_count; k++)
        if (group->metrics[k].formula &&
            formula_evaluate(group->metrics[k].formula, values, count, &result, NULL) != STATUS_OK)
            abort(); /* it was accepted when the group was read */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct group group;
    struct error err;
    const struct formula_value values[] = {{"a", 2}, {"ops", NAN}};
    double result;
    if (group_read("fuzz", (const char *)data, size, &arena, &group, &err) == STATUS_OK)
        evaluate_all(&group);
    char *text = malloc(size + 1); /* the exact size: a read past the end is found */
    if (!text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    formula_evaluate(text, values, 2, &result, &err);
    formula_uses(text, "ops");
    cpu_identity_parse(text, &(struct cpu_identity){.family = 0});
    free(text);
    arena_release(&arena);
    return 0;
}
