/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/compute/sort.h"

#include <string.h>

/* Merges the sorted from[low .. middle) and from[middle .. high) into to[low .. high). */
static void merge(const int64_t *from, int64_t *to, const int64_t bounds[3], sort_before *before,
                  const void *context)
{
    int64_t left = bounds[0], right = bounds[1];
    for (int64_t k = bounds[0]; k < bounds[2]; k++) {
        bool take_right =
            left >= bounds[1] || (right < bounds[2] && before(context, from[right], from[left]));
        to[k] = from[take_right ? right++ : left++];
    }
}

void sort_indices(int64_t *index, int64_t count, int64_t *scratch, sort_before *before,
                  const void *context)
{
    int64_t *from = index, *to = scratch;
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t low = 0; low < count; low += 2 * width) {
            int64_t middle = low + width < count ? low + width : count;
            int64_t high = low + 2 * width < count ? low + 2 * width : count;
            merge(from, to, (int64_t[]){low, middle, high}, before, context);
        }
        int64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != index && count > 0)
        memcpy(index, from, (size_t)count * sizeof(*index));
}
