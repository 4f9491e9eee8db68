/* SPDX-License-Identifier: Apache-2.0
 * Det: determinants of square matrices, by elimination with partial pivoting. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/graph/op.h"

static enum status infer(const struct infer *c, struct error *err)
{
    const struct shape *x = &c->in[0]->shape;
    if (x->rank < 2 || x->dim[x->rank - 1] != x->dim[x->rank - 2])
        return FAIL(err, STATUS_FAILED, "Det takes square matrices");
    struct shape y = shape_from(x->rank - 2, x->dim);
    infer_set(c, 0, c->in[0]->dtype, &y);
    return STATUS_OK;
}

/* Subtracts multiples of row k from the rows below it, after the largest has come up. */
static double eliminate(double *a, int64_t n, int64_t k)
{
    int64_t pivot = k;
    for (int64_t row = k + 1; row < n; row++)
        if (fabs(a[row * n + k]) > fabs(a[pivot * n + k]))
            pivot = row;
    double head = a[pivot * n + k];
    if (head == 0)
        return 0;
    for (int64_t column = 0; column < n; column++) {
        double swap = a[k * n + column];
        a[k * n + column] = a[pivot * n + column];
        a[pivot * n + column] = swap;
    }
    for (int64_t row = k + 1; row < n; row++) {
        double factor = a[row * n + k] / head;
        for (int64_t column = k; column < n; column++)
            a[row * n + column] -= factor * a[k * n + column];
    }
    return pivot == k ? head : -head;
}

static enum status reference(const struct ref_call *call, struct error *err)
{
    const struct ref_tensor *x = call->in[0], *y = call->out[0];
    int64_t n = x->shape.dim[x->shape.rank - 1];
    double *a = malloc((size_t)(n * n + 1) * sizeof(*a));
    if (!a)
        return FAIL_NO_MEMORY(err);
    for (int64_t m = 0; m < y->count; m++) {
        memcpy(a, x->f + m * n * n, (size_t)(n * n) * sizeof(*a));
        y->f[m] = 1;
        for (int64_t k = 0; k < n && y->f[m] != 0; k++)
            y->f[m] *= eliminate(a, n, k);
    }
    free(a);
    return STATUS_OK;
}

/* 2/3 n^3 for each matrix. */
static void cost(const struct infer *c, struct cost *cost)
{
    const struct shape *x = &c->in[0]->shape;
    cost->elementwise += (double)shape_count(x) * (double)x->dim[x->rank - 1] * 2 / 3;
}

static const struct op_case cases[] = {
    {.name = "one", .inputs = "f32[4,4]"},
    {.name = "batch", .inputs = "f32[2,3,5,5]"},
    {.name = "singular", .inputs = "f32[3,3]=1,2,3,2,4,6,0,1,5"},
};

REGISTER(op, det) = {
    .name = "Det",
    .inputs_min = 1,
    .infer = infer,
    .cost = cost,
    .reference = reference,
    .no_gradient = "only foreign files use it",
    OP_CASES(cases),
};
