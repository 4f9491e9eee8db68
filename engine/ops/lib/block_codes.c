/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/ops/lib/block_codes.h"

enum { BLOCK_MIN = 16, BYTE_BITS = 8 };

enum status block_codes_from(const struct node *node, int64_t rows, int64_t k,
                             struct block_codes *codes, struct error *err)
{
    const char *op = node->op->name;
    int64_t bits = node_int(node, "bits", BLOCK_CODES_BITS);
    int64_t block = node_int(node, "block_size", BLOCK_CODES_SIZE);
    if (bits != 4 && bits != BYTE_BITS)
        return UNSUPPORTED(err, "%s: weights of %lld bits; 4 and 8 are supported", op,
                           (long long)bits);
    if (block < BLOCK_MIN || (block & (block - 1)))
        return FAIL(err, STATUS_FAILED, "%s: block_size is %lld, no power of 2 from %d on", op,
                    (long long)block, BLOCK_MIN);
    if (rows < 1 || k < 1 || rows > INT32_MAX || k > INT32_MAX || block > INT32_MAX)
        return FAIL(err, STATUS_FAILED, "%s: %lld rows of %lld elements", op, (long long)rows,
                    (long long)k);
    *codes = block_codes_of(bits, block, rows, k);
    return STATUS_OK;
}

static enum status check_count(const struct infer *c, int input, const char *what, int64_t count,
                               struct error *err)
{
    char text[96];
    if (shape_count(&c->in[input]->shape) == count)
        return STATUS_OK;
    return FAIL(err, STATUS_FAILED, "%s: %s are %s, not %lld numbers", c->node->op->name, what,
                shape_text(&c->in[input]->shape, text), (long long)count);
}

enum status block_codes_check(const struct block_codes *codes, const struct infer *c, int scales,
                              int zeros, struct error *err)
{
    const char *op = c->node->op->name;
    enum dtype type = c->in[scales]->dtype;
    if (!dtype_is_float(type))
        return FAIL(err, STATUS_FAILED, "%s: scales of type %s", op, dtype_name(type));
    TRY(check_count(c, scales, "scales", codes->rows * codes->blocks, err));
    if (!infer_has(c, zeros))
        return STATUS_OK;
    if (c->in[zeros]->dtype != DTYPE_U8)
        return UNSUPPORTED(err, "%s: zero points of type %s; u8 is supported", op,
                           dtype_name(c->in[zeros]->dtype));
    return check_count(c, zeros, "zero points", codes->rows * codes->zero_bytes, err);
}

static int64_t code_at(const struct block_codes *c, const struct ref_tensor *t, int64_t row_bytes,
                       int64_t row, int64_t k)
{
    if (c->bits == BYTE_BITS)
        return t->i[row * row_bytes + k];
    return t->i[row * row_bytes + k / 2] >> 4 * (k & 1) & 15;
}

double block_codes_value(const struct block_codes *c, const struct block_code_tensors *in,
                         int64_t row, int64_t k)
{
    int64_t code = code_at(c, in->codes, c->row_bytes, row, k), block = k / c->block;
    int64_t zero = in->zeros ? code_at(c, in->zeros, c->zero_bytes, row, block) : c->zero;
    return (double)(code - zero) * in->scales->f[row * c->blocks + block];
}
