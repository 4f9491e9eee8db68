/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "engine/reference/reference.h"

struct pairing {
    const struct ref_tensor *a, *b;
    int64_t rows, columns;
    double *largest; /* |b| per column */
    bool *taken;     /* per row of b */
};

static double distance(const struct pairing *p, int64_t row_a, int64_t row_b)
{
    double worst = 0;
    for (int64_t k = 0; k < p->columns; k++) {
        double a = ref_get(p->a, row_a * p->columns + k), b = ref_get(p->b, row_b * p->columns + k);
        bool same = a == b || (isnan(a) && isnan(b));
        double error = same ? 0 : fabs(a - b) / fmax(p->largest[k], 1e-30);
        worst = error <= worst ? worst : isnan(error) ? INFINITY : error;
    }
    return worst;
}

/* Distance to the nearest free row of b, which is taken. */
static double take_nearest(struct pairing *p, int64_t row)
{
    double least = INFINITY;
    int64_t nearest = 0;
    /* Sets differ little in order: the row's own place is looked at first. */
    for (int64_t k = 0; k < p->rows && least > 0; k++) {
        int64_t at = (row + k) % p->rows;
        double d = p->taken[at] ? INFINITY : distance(p, row, at);
        if (d < least) {
            least = d;
            nearest = at;
        }
    }
    p->taken[nearest] = true;
    return least;
}

double ref_set_error(const struct ref_tensor *a, const struct ref_tensor *b)
{
    struct pairing p = {.a = a, .b = b, .columns = 1};
    if (b->shape.rank)
        p.columns = b->shape.dim[b->shape.rank - 1];
    if (!shape_equal(&a->shape, &b->shape))
        return INFINITY;
    if (b->count == 0)
        return 0;
    double worst = 0;
    p.rows = b->count / p.columns;
    p.largest = calloc((size_t)p.columns, sizeof(*p.largest));
    p.taken = calloc((size_t)p.rows, sizeof(*p.taken));
    for (int64_t k = 0; p.largest && p.taken && k < b->count; k++)
        if (isfinite(ref_get(b, k))) /* an infinity would hide every difference in its column */
            p.largest[k % p.columns] = fmax(p.largest[k % p.columns], fabs(ref_get(b, k)));
    for (int64_t k = 0; p.largest && p.taken && k < p.rows; k++)
        worst = fmax(worst, take_nearest(&p, k));
    if (!p.largest || !p.taken)
        worst = INFINITY; /* out of memory proves nothing */
    free(p.largest);
    free(p.taken);
    return worst;
}
