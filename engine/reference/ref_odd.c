/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/reference/ref_odd.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static void note_first(struct ref_odd *odd, int64_t k)
{
    odd->first = odd->first < 0 ? k : odd->first;
}

static void count_float(struct ref_odd *odd, double got, double expected, int64_t k)
{
    bool nan = isnan(got) && !isnan(expected);
    bool infinite = isinf(got) && !isnan(expected) && got != expected;
    bool lost = (isfinite(got) && !isfinite(expected)) || (isinf(got) && isnan(expected));
    odd->both_nan += isnan(got) && isnan(expected);
    odd->nan += nan;
    odd->infinite += infinite;
    odd->lost += lost;
    if (nan || infinite || lost)
        note_first(odd, k);
}

static void count_integer(struct ref_odd *odd, int64_t got, int64_t expected, int64_t k)
{
    if (got == expected)
        return;
    if (!odd->integers++) {
        odd->got = got;
        odd->expected = expected;
    }
    note_first(odd, k);
}

/* Numbers of NaN and of infinities on both sides; the place is that of the first of ours. */
static void count_set(struct ref_odd *odd, const struct ref_tensor *got,
                      const struct ref_tensor *expected)
{
    int64_t nan[2] = {0}, infinite[2] = {0}, first_nan = -1, first_infinite = -1;
    for (int64_t k = 0; k < got->count; k++) {
        double x = ref_get(got, k), y = ref_get(expected, k);
        first_nan = isnan(x) && first_nan < 0 ? k : first_nan;
        first_infinite = isinf(x) && first_infinite < 0 ? k : first_infinite;
        nan[0] += isnan(x) != 0;
        nan[1] += isnan(y) != 0;
        infinite[0] += isinf(x) != 0;
        infinite[1] += isinf(y) != 0;
    }
    odd->both_nan = nan[0] < nan[1] ? nan[0] : nan[1];
    odd->nan = nan[0] - odd->both_nan;
    odd->infinite = infinite[0] > infinite[1] ? infinite[0] - infinite[1] : 0;
    odd->lost = nan[1] - odd->both_nan;
    odd->first = odd->nan ? first_nan : odd->infinite ? first_infinite : odd->lost ? 0 : -1;
}

void ref_odd_count(const struct ref_tensor *got, const struct ref_tensor *expected, bool is_set,
                   struct ref_odd *out)
{
    *out = (struct ref_odd){.first = -1};
    if (got->count != expected->count)
        return;
    if (is_set && got->f && expected->f) {
        count_set(out, got, expected);
        return;
    }
    for (int64_t k = 0; k < got->count; k++) {
        if (got->i && expected->i)
            count_integer(out, got->i[k], expected->i[k], k);
        else
            count_float(out, ref_get(got, k), ref_get(expected, k), k);
    }
}

bool ref_odd_is_wrong(const struct ref_odd *odd)
{
    return odd->nan || odd->infinite || odd->lost || odd->integers;
}

void ref_index_text(const struct shape *shape, int64_t k, char text[96])
{
    struct shape index = {.rank = shape->rank};
    for (int d = shape->rank - 1; d >= 0; d--) {
        int64_t size = shape->dim[d] > 0 ? shape->dim[d] : 1;
        index.dim[d] = k % size;
        k /= size;
    }
    shape_text(&index, text);
}

void ref_odd_text(const struct ref_odd *odd, const struct shape *shape, char *text, size_t size)
{
    char at[96];
    text[0] = '\0';
    if (!ref_odd_is_wrong(odd))
        return;
    ref_index_text(shape, odd->first, at);
    if (odd->integers)
        snprintf(text, size,
                 "%" PRId64 " integer%s, first %" PRId64 " instead of %" PRId64 " at %s",
                 odd->integers, odd->integers == 1 ? " differs" : "s differ", odd->got,
                 odd->expected, at);
    else if (odd->nan || odd->infinite)
        snprintf(text, size, "%" PRId64 " %s where the reference has numbers, first at %s",
                 odd->nan + odd->infinite,
                 !odd->infinite       ? "NaN"
                 : odd->nan           ? "NaN and infinities"
                 : odd->infinite == 1 ? "infinity"
                                      : "infinities",
                 at);
    else
        snprintf(text, size,
                 "%" PRId64 " number%s where the reference has NaN or infinities, first at %s",
                 odd->lost, odd->lost == 1 ? "" : "s", at);
}
