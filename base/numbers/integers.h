/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of sizes and counts.
 */
#ifndef BASE_NUMBERS_INTEGERS_H
#define BASE_NUMBERS_INTEGERS_H

#include <stdint.h>

static inline int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t round_up(int64_t n, int64_t unit)
{
    return divide_up(n, unit) * unit;
}

static inline int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
