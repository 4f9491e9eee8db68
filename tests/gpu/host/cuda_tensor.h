/* SPDX-License-Identifier: Apache-2.0
 *
 * What engine/kernels/cuda/lib/mma.h has as instructions. Lanes exchange through memory, behind a
 * barrier of their warp. Copies are made when they are waited for and not before, so that a stage
 * that is read too early has what nobody has written. Part of cuda_host.h; blocks have one
 * dimension. */
#ifndef TESTS_GPU_HOST_CUDA_TENSOR_H
#define TESTS_GPU_HOST_CUDA_TENSOR_H

#include "tests/gpu/host/cuda_arithmetic.h"
#include "tests/gpu/host/grid.h"

enum { HOST_COPIES = 128, HOST_WARPS = HOST_THREADS / 32 };

/* ---- copies ---- */

struct host_copies {
    struct {
        void *to;
        const void *from;
        unsigned bytes, size, group;
    } list[HOST_COPIES];
    unsigned count, group; /* the group that is being made */
};

UNWATCHED static inline struct host_copies *host_copies_now(void)
{
    static struct host_copies copies[HOST_THREADS];
    return &copies[host_thread_number()];
}

UNWATCHED static inline void host_copy_later(void *to, const void *from, unsigned bytes,
                                             unsigned size)
{
    struct host_copies *c = host_copies_now();
    if (c->count == HOST_COPIES || bytes > size || ((uintptr_t)to | (uintptr_t)from) % size)
        __builtin_trap();
    watch_access(from, bytes, WATCH_READ);
    watch_access(to, size, WATCH_WRITE); /* at any time from now on */
    c->list[c->count++] = {to, from, bytes, size, c->group};
}

UNWATCHED static inline void host_copies_end_group(void)
{
    host_copies_now()->group++;
}

UNWATCHED static inline void host_copies_wait(unsigned pending)
{
    struct host_copies *c = host_copies_now();
    unsigned left = 0;
    for (unsigned k = 0; k < c->count; k++) {
        if (c->group - c->list[k].group <= pending) {
            c->list[left++] = c->list[k];
            continue;
        }
        memset(c->list[k].to, 0, c->list[k].size);
        memcpy(c->list[k].to, c->list[k].from, c->list[k].bytes);
        watch_access(c->list[k].to, c->list[k].size, WATCH_WRITE);
    }
    c->count = left;
}

/* ---- factors ---- */

/* Calls take turns with two places to exchange by: who is in the next but one has seen all leave
 * this one. */
UNWATCHED static inline unsigned host_turn(void)
{
    static unsigned turns[HOST_THREADS];
    return turns[host_thread_number()]++ % 2;
}

UNWATCHED static inline void host_matrices_load(const void *row, unsigned r[4], bool turned)
{
    static const uint16_t *places[2][HOST_WARPS][32];
    unsigned lane = (unsigned)host_lane();
    const uint16_t **rows = places[host_turn()][host_thread_number() / 32];
    if ((uintptr_t)row % 16)
        __builtin_trap();
    watch_access(row, 16, WATCH_READ);
    rows[lane] = (const uint16_t *)row;
    host_meet_warp(0xffffffffu);
    for (unsigned m = 0; m < 4; m++) {
        const uint16_t *const *matrix = &rows[8 * m];
        unsigned line = lane / 4, at = lane % 4 * 2;
        unsigned low = turned ? matrix[at][line] : matrix[line][at];
        unsigned high = turned ? matrix[at + 1][line] : matrix[line][at + 1];
        r[m] = low | high << 16;
    }
}

/* To nearest, ties away from 0. */
static inline unsigned host_tf32(unsigned bits)
{
    bool finite = (bits & 0x7f800000u) != 0x7f800000u;
    return finite ? (bits + 0x1000u) & 0xffffe000u : bits;
}

/* ---- products ---- */

enum host_mma_kind { HOST_MMA_F16, HOST_MMA_BF16, HOST_MMA_TF32 };

struct host_factors {
    float a[16][16], b[8][16]; /* rows, columns by depth */
};

/* The 4 bytes that a lane holds of a line, as numbers. */
UNWATCHED static inline void host_mma_put(enum host_mma_kind kind, float *line, unsigned bits)
{
    if (kind == HOST_MMA_TF32) {
        line[0] = __int_as_float((int)(bits & 0xffffe000u));
    } else if (kind == HOST_MMA_BF16) {
        line[0] = __int_as_float((int)(bits << 16));
        line[1] = __int_as_float((int)(bits & 0xffff0000u));
    } else {
        line[0] = half_bits_to_float((uint16_t)bits);
        line[1] = half_bits_to_float((uint16_t)(bits >> 16));
    }
}

UNWATCHED static inline void host_mma(enum host_mma_kind kind, float c[4], const unsigned a[4],
                                      const unsigned b[2])
{
    static struct host_factors places[2][HOST_WARPS];
    struct host_factors *f = &places[host_turn()][host_thread_number() / 32];
    unsigned lane = (unsigned)host_lane(), depth = kind == HOST_MMA_TF32 ? 8 : 16;
    unsigned at = lane % 4 * (depth / 8), half = depth / 2;
    for (unsigned k = 0; k < 4; k++)
        host_mma_put(kind, &f->a[lane / 4 + k % 2 * 8][at + k / 2 * half], a[k]);
    for (unsigned k = 0; k < 2; k++)
        host_mma_put(kind, &f->b[lane / 4][at + k * half], b[k]);
    host_meet_warp(0xffffffffu);
    for (unsigned n = 0; n < 4; n++) {
        const float *row = f->a[lane / 4 + n / 2 * 8], *column = f->b[lane % 4 * 2 + n % 2];
        for (unsigned k = 0; k < depth; k++)
            c[n] += row[k] * column[k];
    }
}

#endif
