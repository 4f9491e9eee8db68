/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>

#include "engine/exe.h"
#include "engine/ref_loops.h"

/* Eight maxima side by side stay in vectors; a comparison with NaN is false. */
enum { LANES = 8 };

REF_CLONES static double largest_of(const double *b, int64_t count)
{
    double most[LANES] = {0};
    for (int64_t k = 0; k + LANES <= count; k += LANES)
        for (int j = 0; j < LANES; j++) {
            double size = fabs(b[k + j]);
            most[j] = size > most[j] && size <= DBL_MAX ? size : most[j];
        }
    for (int64_t k = count / LANES * LANES; k < count; k++)
        if (isfinite(b[k]))
            most[0] = fmax(most[0], fabs(b[k]));
    for (int j = 1; j < LANES; j++)
        most[0] = fmax(most[0], most[j]);
    return most[0];
}

/* Largest difference; both NaN or both the same infinity are none. */
REF_CLONES static double largest_difference(const double *a, const double *b, int64_t count)
{
    double most[LANES] = {0};
    int64_t even = count / LANES * LANES;
    for (int64_t k = 0; k < count; k += LANES)
        for (int j = 0; j < (k < even ? LANES : (int)(count - even)); j++) {
            double x = a[k + j], y = b[k + j], d = fabs(x - y);
            bool same = x == y || (x != x && y != y);
            d = d <= 1e300 ? d : (double)INFINITY;
            most[j] = !same && d > most[j] ? d : most[j];
        }
    for (int j = 1; j < LANES; j++)
        most[0] = fmax(most[0], most[j]);
    return most[0];
}

double ref_rel_error(const struct ref_tensor *a, const struct ref_tensor *b)
{
    if (a->count != b->count)
        return INFINITY;
    for (int64_t k = 0; (a->i || b->i) && k < a->count; k++)
        if (ref_get(a, k) != ref_get(b, k))
            return 1;
    if (a->i || b->i)
        return 0;
    double worst = largest_difference(a->f, b->f, a->count);
    return worst > 0 ? worst / fmax(largest_of(b->f, b->count), 1e-30) : 0;
}
