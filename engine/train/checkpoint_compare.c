/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/train/checkpoint_compare.h"

#include <math.h>
#include <string.h>

#include "engine/graph/ref_tensor.h"

enum { BLOCK = 4096, ELEMENT_MAX = 8 };

/* Elements of a tensor as doubles, block by block; what lies in the file may have any alignment. */
struct reader {
    struct ref_tensor block;
    const unsigned char *data;
    size_t size; /* of an element */
    int64_t count;
    int64_t aligned[BLOCK * ELEMENT_MAX / sizeof(int64_t)];
};

static enum status reader_open(struct reader *r, const struct safetensor *t, struct error *err)
{
    enum dtype dtype = checkpoint_dtype(t);
    struct shape shape = shape_of(BLOCK);
    memset(&r->block, 0, sizeof(r->block));
    if (dtype == DTYPE_NONE)
        return UNSUPPORTED(err, "\"%s\" is of type %s, which ridge does not compute with", t->name,
                           t->type);
    r->data = t->data;
    r->size = dtype_size(dtype);
    r->count = (int64_t)(t->bytes / r->size);
    return ref_alloc(&r->block, dtype, &shape, err);
}

/* Elements from `first` on; how many there are. */
static int64_t reader_read(struct reader *r, int64_t first)
{
    int64_t count = r->count - first < BLOCK ? r->count - first : BLOCK;
    memcpy(r->aligned, r->data + (size_t)first * r->size, (size_t)count * r->size);
    ref_load_part(&r->block, 0, count, r->aligned);
    return count;
}

enum status tensor_summarise(const struct safetensor *tensor, struct tensor_summary *summary,
                             struct error *err)
{
    struct reader r;
    double sum = 0, squares = 0;
    *summary = (struct tensor_summary){0};
    TRY(reader_open(&r, tensor, err));
    summary->elements = r.count;
    for (int64_t first = 0, count = 0; first < r.count; first += count) {
        count = reader_read(&r, first);
        for (int64_t k = 0; k < count; k++) {
            double value = ref_get(&r.block, k);
            if (!isfinite(value)) {
                summary->odd++;
                continue;
            }
            sum += value;
            squares += value * value;
            summary->largest = fmax(summary->largest, fabs(value));
        }
    }
    double count = (double)(r.count - summary->odd);
    if (count > 0) {
        summary->mean = sum / count;
        summary->deviation = sqrt(fmax(0, squares / count - summary->mean * summary->mean));
    }
    ref_release(&r.block);
    return STATUS_OK;
}

bool tensors_are_alike(const struct safetensor *a, const struct safetensor *b)
{
    return strcmp(a->type, b->type) == 0 && a->rank == b->rank &&
           memcmp(a->dim, b->dim, (size_t)a->rank * sizeof(a->dim[0])) == 0;
}

/* |a - b|; infinite where one of them alone is no number, or they are different infinities. */
static double distance(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b) ? 0 : INFINITY;
    if (isinf(a) || isinf(b))
        return isinf(a) && isinf(b) && (a > 0) == (b > 0) ? 0 : INFINITY;
    return fabs(a - b);
}

struct sums {
    double largest, squares, off; /* |b|, b^2, (a - b)^2 */
};

static void compare_block(const struct reader *a, const struct reader *b, int64_t count,
                          struct tensor_difference *d, struct sums *sums)
{
    const unsigned char *p = (const unsigned char *)a->aligned;
    const unsigned char *q = (const unsigned char *)b->aligned;
    for (int64_t k = 0; k < count; k++) {
        size_t at = (size_t)k * a->size;
        double other = ref_get(&b->block, k);
        d->different += memcmp(p + at, q + at, a->size) != 0;
        double off = distance(ref_get(&a->block, k), other);
        d->largest = fmax(d->largest, off);
        sums->off += off * off;
        if (!isfinite(other))
            continue;
        sums->largest = fmax(sums->largest, fabs(other));
        sums->squares += other * other;
    }
}

enum status tensor_compare(const struct safetensor *a, const struct safetensor *b,
                           struct tensor_difference *difference, struct error *err)
{
    struct reader left, right;
    struct sums sums = {0};
    *difference = (struct tensor_difference){0};
    TRY(reader_open(&left, a, err));
    enum status status = reader_open(&right, b, err);
    difference->elements = left.count;
    for (int64_t first = 0, count = 0; status == STATUS_OK && first < left.count; first += count) {
        count = reader_read(&left, first);
        reader_read(&right, first);
        compare_block(&left, &right, count, difference, &sums);
    }
    if (difference->largest > 0)
        difference->relative = sums.largest > 0 ? difference->largest / sums.largest : INFINITY;
    difference->off = sqrt(sums.off);
    difference->norm = sqrt(sums.squares);
    ref_release(&left.block);
    ref_release(&right.block);
    return status;
}
