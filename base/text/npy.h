/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays in numpy's .npy files. Reads versions 1 to 3 in C or Fortran order, little-endian; writes
 * version 1 in C order. Format: numpy.lib.format. bfloat16 is kind 'V' of two bytes, f8 of one,
 * which is what numpy writes for it. Checked by tests/unit/test_npy.c and tests/fuzz/fuzz_npy.c.
 */
#ifndef BASE_TEXT_NPY_H
#define BASE_TEXT_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { NPY_RANK_MAX = 8 };

struct npy {
    char kind;         /* 'f' float, 'i' signed, 'u' unsigned, 'b' bool, 'V' opaque */
    size_t item_bytes; /* f: 2, 4, 8; i, u: 1 to 8; b: 1; V: 2 */
    int rank;
    int64_t dim[NPY_RANK_MAX];
    void *data; /* row-major; owned after npy_load and npy_parse */
};

size_t npy_bytes(const struct npy *array); /* of its contents */

/* name is for messages. Release with npy_release. */
enum status npy_load(const char *path, struct npy *array, struct error *err);
enum status npy_parse(const void *bytes, size_t size, const char *name, struct npy *array,
                      struct error *err);
enum status npy_save(const char *path, const struct npy *array, struct error *err);
void npy_release(struct npy *array);

#endif
