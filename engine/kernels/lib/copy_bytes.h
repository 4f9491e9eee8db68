/* SPDX-License-Identifier: Apache-2.0
 *
 * Short and long copies of bytes that do not overlap, inlined: calls of memcpy cost more than the
 * copy for the runs of 4 to 256 bytes that tensors are made of.
 */
#ifndef ENGINE_KERNELS_LIB_COPY_BYTES_H
#define ENGINE_KERNELS_LIB_COPY_BYTES_H

#include "engine/kernels/lib/simd.h"

enum { LINE_BYTES = 64, STREAM_BYTES = 16 << 20 };

/* Fixed sizes: one or two vector moves each. */
#define COPY_FIXED(bytes)                                                                          \
    SIMD_INLINE void copy_##bytes(char *dst, const char *src)                                      \
    {                                                                                              \
        memcpy(dst, src, bytes);                                                                   \
    }
COPY_FIXED(2)
COPY_FIXED(4)
COPY_FIXED(8)
COPY_FIXED(16)
COPY_FIXED(32)
COPY_FIXED(64)

/* n < 64. Two moves that overlap instead of a loop over the rest. */
SIMD_INLINE void copy_tail(char *dst, const char *src, int64_t n)
{
    if (n >= 32) {
        copy_32(dst, src);
        copy_32(dst + n - 32, src + n - 32);
    } else if (n >= 16) {
        copy_16(dst, src);
        copy_16(dst + n - 16, src + n - 16);
    } else if (n >= 8) {
        copy_8(dst, src);
        copy_8(dst + n - 8, src + n - 8);
    } else if (n >= 4) {
        copy_4(dst, src);
        copy_4(dst + n - 4, src + n - 4);
    } else if (n >= 2) {
        copy_2(dst, src);
        copy_2(dst + n - 2, src + n - 2);
    } else if (n) {
        *dst = *src;
    }
}

SIMD_INLINE void copy_run(char *dst, const char *src, int64_t n)
{
    int64_t k = 0;
    for (; k + 256 <= n; k += 256) {
        copy_64(dst + k, src + k);
        copy_64(dst + k + 64, src + k + 64);
        copy_64(dst + k + 128, src + k + 128);
        copy_64(dst + k + 192, src + k + 192);
    }
    for (; k + 64 <= n; k += 64)
        copy_64(dst + k, src + k);
    copy_tail(dst + k, src + k, n - k);
}

/* Past the caches where whole lines are written; simd_fence when all is done. */
SIMD_INLINE void copy_run_stream(char *dst, const char *src, int64_t n)
{
    int64_t head = (int64_t)(-(uintptr_t)dst & (LINE_BYTES - 1));
    if (VL == 1 || n < head + LINE_BYTES) {
        copy_run(dst, src, n);
        return;
    }
    copy_tail(dst, src, head);
    int64_t k = head;
    for (; k + LINE_BYTES <= n; k += LINE_BYTES)
        for (int j = 0; j < LINE_BYTES / 4; j += VL)
            vf_stream((float *)(void *)(dst + k) + j,
                      vf_load((const float *)(const void *)(src + k) + j));
    copy_tail(dst + k, src + k, n - k);
}

/* A line full of one element of `elem` bytes. */
SIMD_INLINE void copy_pattern(char line[LINE_BYTES], const char *value, int elem)
{
    for (int j = 0; j < LINE_BYTES; j += elem)
        memcpy(line + j, value, (size_t)elem);
}

/* n bytes of whole elements, from a pattern. */
SIMD_INLINE void copy_fill(char *dst, const char line[LINE_BYTES], int64_t n)
{
    int64_t k = 0;
    for (; k + LINE_BYTES <= n; k += LINE_BYTES)
        copy_64(dst + k, line);
    copy_tail(dst + k, line, n - k);
}

#endif
