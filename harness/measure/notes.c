/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/measure/notes.h"

#include <string.h>

const char *record_next_note(const struct record *record, int *next)
{
    const size_t length = strlen(RECORD_NOTE);
    while (*next < record->metric_count) {
        const struct metric_record *metric = &record->metrics[(*next)++];
        if (strncmp(metric->formula, RECORD_NOTE, length) == 0)
            return metric->formula + length;
    }
    return NULL;
}
