/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/scale/rank_list.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 1024 };

static bool is_among(const int *ranks, int count, int number)
{
    for (int k = 0; k < count; k++)
        if (ranks[k] == number)
            return true;
    return false;
}

enum status rank_list_read(const char *list, const char *option, int *ranks, int *count,
                           struct error *err)
{
    const char *at = list;
    for (*count = 0; *count < RANK_LIST_MAX; at++) {
        char *end;
        long number = strtol(at, &end, 10);
        if (end == at || (*end && *end != ',') || number < 1 || number > RANKS_MAX)
            return FAIL(err, STATUS_FAILED, "%s \"%.40s\": take numbers from 1 to %d: 1,2,4",
                        option, list, RANKS_MAX);
        if (!is_among(ranks, *count, (int)number))
            ranks[(*count)++] = (int)number;
        at = end;
        if (!*end)
            return STATUS_OK;
    }
    return FAIL(err, STATUS_FAILED, "%s: at most %d numbers", option, RANK_LIST_MAX);
}

enum status rank_list_with_one(const char *list, const char *option, int *ranks, int *count,
                               struct error *err)
{
    TRY(rank_list_read(list, option, ranks, count, err));
    if (is_among(ranks, *count, 1))
        return STATUS_OK;
    memmove(ranks + 1, ranks, (size_t)*count * sizeof(*ranks));
    ranks[0] = 1;
    (*count)++;
    return STATUS_OK;
}
