/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/clones.h"
#include "base/numbers/integers.h"
#include "base/system/pool.h"
#include "engine/reference/reference.h"

/* Eight maxima side by side stay in vectors; a comparison with NaN is false. */
enum { LANES = 8 };

VECTOR_CLONES static double largest_of(const double *b, int64_t count)
{
    double maximum[LANES] = {0};
    for (int64_t k = 0; k + LANES <= count; k += LANES)
        for (int j = 0; j < LANES; j++) {
            double size = fabs(b[k + j]);
            maximum[j] = size > maximum[j] && size <= DBL_MAX ? size : maximum[j];
        }
    for (int64_t k = count / LANES * LANES; k < count; k++)
        if (isfinite(b[k]))
            maximum[0] = fmax(maximum[0], fabs(b[k]));
    for (int j = 1; j < LANES; j++)
        maximum[0] = fmax(maximum[0], maximum[j]);
    return maximum[0];
}

/* Largest difference; both NaN or both the same infinity are none. */
VECTOR_CLONES static double largest_difference(const double *a, const double *b, int64_t count)
{
    double maximum[LANES] = {0};
    int64_t even = count / LANES * LANES;
    for (int64_t k = 0; k < count; k += LANES)
        for (int j = 0; j < (k < even ? LANES : (int)(count - even)); j++) {
            double x = a[k + j], y = b[k + j], d = fabs(x - y);
            bool same = x == y || (x != x && y != y);
            d = d <= 1e300 ? d : (double)INFINITY;
            maximum[j] = !same && d > maximum[j] ? d : maximum[j];
        }
    for (int j = 1; j < LANES; j++)
        maximum[0] = fmax(maximum[0], maximum[j]);
    return maximum[0];
}

double ref_rel_error(const struct ref_tensor *a, const struct ref_tensor *b)
{
    if (a->count != b->count)
        return INFINITY;
    for (int64_t k = 0; (a->i || b->i) && k < a->count; k++)
        if (a->i && b->i ? a->i[k] != b->i[k] : ref_get(a, k) != ref_get(b, k))
            return 1; /* integers beyond 2^53 as they are */
    if (a->i || b->i)
        return 0;
    double worst = largest_difference(a->f, b->f, a->count);
    return worst > 0 ? worst / fmax(largest_of(b->f, b->count), 1e-30) : 0;
}

/* ---- native memory, by tiles ---- */

struct comparison {
    const struct ref_tensor *expected;
    enum dtype dtype;
    const char *data;
    const bool *looked_at;
    double *differences, *largest; /* per tile */
};

static void compare_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct comparison *c = context;
    int64_t first = tile * REF_TILE, left = c->expected->count - first;
    int64_t count = left < REF_TILE ? left : REF_TILE;
    double got[REF_TILE];
    c->largest[tile] = largest_of(c->expected->f + first, count);
    c->differences[tile] = 0;
    if (c->looked_at && !c->looked_at[tile])
        return;
    struct shape line = {.rank = 1, .dim = {count}};
    struct ref_tensor part = {.dtype = c->dtype, .shape = line, .count = count, .f = got};
    struct desc desc = desc_dense(c->dtype, &line, LAYOUT_PLAIN);
    ref_load(&part, &desc, c->data + (size_t)first * dtype_size(c->dtype));
    c->differences[tile] = largest_difference(got, c->expected->f + first, count);
}

double ref_native_error(struct pool *pool, enum dtype dtype, const void *data,
                        const struct ref_tensor *expected, const bool *looked_at)
{
    int64_t tiles = divide_up(expected->count, REF_TILE);
    double worst = 0, largest = 0;
    double *of_tiles = malloc((size_t)(2 * tiles + 1) * sizeof(*of_tiles));
    if (!of_tiles)
        return NAN;
    struct comparison c = {.expected = expected,
                           .dtype = dtype,
                           .data = data,
                           .looked_at = looked_at,
                           .differences = of_tiles,
                           .largest = of_tiles + tiles};
    pool_run(pool, tiles, compare_tile, &c);
    for (int64_t k = 0; k < tiles; k++) {
        worst = fmax(worst, c.differences[k]);
        largest = fmax(largest, c.largest[k]);
    }
    free(of_tiles);
    return worst > 0 ? worst / fmax(largest, 1e-30) : 0;
}
