/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices of numbers with 4 or 8 bits, as MatMulNBits and GatherBlockQuantized hold them: so many
 * elements of a row in turn, a block, share a factor. Element k of a row is
 * (code - zero) * factor of its block. Two codes of 4 bits are a byte, the first in its lower half;
 * a row ends with a whole block, whatever is in what k does not reach.
 */
#ifndef ENGINE_OPS_LIB_BLOCK_CODES_H
#define ENGINE_OPS_LIB_BLOCK_CODES_H

#include "base/numbers/integers.h"
#include "engine/graph/op.h"

struct block_codes {
    int bits;
    int64_t rows, k; /* elements of a row */
    int64_t block, blocks;
    int64_t row_bytes;
    int64_t zero_bytes; /* of a row's zero points, packed as the codes are */
    int zero;           /* of all blocks, where they have none of their own */
};

/* Of sizes that are right. */
static inline struct block_codes block_codes_of(int64_t bits, int64_t block, int64_t rows,
                                                int64_t k)
{
    struct block_codes c;
    c.bits = (int)bits;
    c.rows = rows;
    c.k = k;
    c.block = block;
    c.blocks = divide_up(k, block);
    c.row_bytes = c.blocks * (block * bits / 8);
    c.zero_bytes = divide_up(c.blocks * bits, 8);
    c.zero = 1 << (bits - 1);
    return c;
}

/* What the attributes are where they are not given. */
enum { BLOCK_CODES_BITS = 4, BLOCK_CODES_SIZE = 128 };
/* Up to so many rows a product is bound by reading the weights, and kernels read them as they are;
 * for more they are unpacked. */
enum { BLOCK_CODES_FEW_ROWS = 16 };

/* From attributes bits and block_size. FAILED or UNSUPPORTED where they are none that there are. */
enum status block_codes_from(const struct node *node, int64_t rows, int64_t k,
                             struct block_codes *codes, struct error *err);
/* FAILED unless the inputs of these numbers, zeros being absent or not, are what they should be. */
enum status block_codes_check(const struct block_codes *codes, const struct infer *c, int scales,
                              int zeros, struct error *err);

/* Number k of a row of codes or zero points. */
static inline int block_code(const uint8_t *row, int64_t k, int bits)
{
    return bits == 8 ? row[k] : row[k / 2] >> 4 * (k & 1) & 15;
}

/* The three inputs of a reference; zeros NULL: there are none. */
struct block_code_tensors {
    const struct ref_tensor *codes, *scales, *zeros;
};
double block_codes_value(const struct block_codes *codes, const struct block_code_tensors *in,
                         int64_t row, int64_t k);

#endif
