/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/compare.h"

#include <math.h>
#include <stdlib.h>

static bool counts(const struct comparison *c, int64_t k)
{
    const struct shape *shape = &c->want->shape;
    if (c->axis == NONE)
        return true;
    return k / shape_span(shape, c->axis + 1, shape->rank) % shape->dim[c->axis] < c->rows;
}

/* The index of element k, as "[1,2,3]". */
static const char *index_text(const struct shape *shape, int64_t k, char text[96])
{
    struct shape index = {.rank = shape->rank};
    for (int d = shape->rank - 1; d >= 0; d--) {
        index.dim[d] = k % shape->dim[d];
        k /= shape->dim[d];
    }
    return shape_text(&index, text);
}

static enum status compare_integers(const struct comparison *c, struct error *err)
{
    char text[96];
    for (int64_t k = 0; k < c->want->count; k++)
        if (counts(c, k) && c->got->i[k] != c->want->i[k])
            return FAIL(err, STATUS_INVALID, "%lld instead of %lld at %s", (long long)c->got->i[k],
                        (long long)c->want->i[k], index_text(&c->want->shape, k, text));
    return STATUS_OK;
}

static bool same_kind(double got, double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    return (isfinite(got) && isfinite(want)) || got == want;
}

static enum status compare_floats(const struct comparison *c, double *error, struct error *err)
{
    char text[96];
    double largest = c->norm, worst = 0;
    int64_t worst_at = 0;
    for (int64_t k = 0; k < c->want->count; k++) {
        double got = c->got->f[k], want = c->want->f[k];
        if (!counts(c, k))
            continue;
        if (!same_kind(got, want))
            return FAIL(err, STATUS_INVALID, "%g instead of %g at %s", got, want,
                        index_text(&c->want->shape, k, text));
        if (!isfinite(want))
            continue;
        largest = fmax(largest, fabs(want));
        if (fabs(got - want) > worst) {
            worst = fabs(got - want);
            worst_at = k;
        }
    }
    *error = worst > 0 ? worst / fmax(largest, 1e-30) : 0;
    if (*error <= c->tolerance)
        return STATUS_OK;
    return FAIL(err, STATUS_INVALID, "relative error %.3g > %.3g: %.9g instead of %.9g at %s",
                *error, c->tolerance, c->got->f[worst_at], c->want->f[worst_at],
                index_text(&c->want->shape, worst_at, text));
}

enum status compare_tensors(const struct comparison *c, double *error, struct error *err)
{
    *error = 0;
    if (c->got->dtype != c->want->dtype || !shape_equal(&c->got->shape, &c->want->shape))
        return FAIL(err, STATUS_INVALID, "another type or shape than expected");
    return c->want->f ? compare_floats(c, error, err) : compare_integers(c, err);
}

enum status crop_tensor(const struct ref_tensor *from, const struct shape *shape,
                        struct ref_tensor *out, struct error *err)
{
    for (int d = 0; d < shape->rank; d++)
        if (shape->rank != from->shape.rank || shape->dim[d] > from->shape.dim[d])
            return FAIL(err, STATUS_INVALID, "another rank or larger than expected");
    *out = (struct ref_tensor){.dtype = from->dtype, .shape = *shape, .count = shape_count(shape)};
    void *memory = calloc((size_t)out->count + 1, 8);
    if (!memory)
        return FAIL_NO_MEMORY(err);
    out->f = from->f ? memory : NULL;
    out->i = from->f ? NULL : memory;
    for (int64_t k = 0; k < out->count; k++) {
        int64_t at = 0, stride = 1, rest = k;
        for (int d = shape->rank - 1; d >= 0; d--) {
            at += rest % shape->dim[d] * stride;
            rest /= shape->dim[d];
            stride *= from->shape.dim[d];
        }
        if (out->f)
            out->f[k] = from->f[at];
        else
            out->i[k] = from->i[at];
    }
    return STATUS_OK;
}
