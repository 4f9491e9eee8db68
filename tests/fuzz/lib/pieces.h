/* SPDX-License-Identifier: Apache-2.0
 *
 * Several files in one input: they are cut where a line is one dash. */
#ifndef TESTS_FUZZ_LIB_PIECES_H
#define TESTS_FUZZ_LIB_PIECES_H

#include <string.h>

#include "workloads/data/data.h"

/* texts[k] gets names[k]; pieces that are missing are empty. */
static inline void pieces_cut(const uint8_t *data, size_t size, const char *const *names, int count,
                              struct data_text *texts)
{
    size_t from = 0;
    for (int k = 0; k < count; k++) {
        size_t end = from;
        while (end + 2 < size && memcmp(data + end, "\n-\n", 3) != 0)
            end++;
        bool cut = end + 2 < size && k < count - 1;
        end = cut ? end : size;
        texts[k] = (struct data_text){names[k], data + from, end - from};
        from = cut ? end + 3 : size;
    }
}

#endif
