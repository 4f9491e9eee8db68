/* SPDX-License-Identifier: Apache-2.0
 *
 * half_to_float and half_from_float of engine/graph/tensor.h, and the same for bf16, without
 * branches on the value, so that loops over them become vectors. */
#ifndef COLLECTIVE_HALF_H
#define COLLECTIVE_HALF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t all_if(bool condition)
{
    return 0u - condition;
}

static inline float f16_widen(uint16_t half)
{
    uint32_t size = (uint32_t)(half & 0x7fffu) << 13, word;
    float scaled;
    memcpy(&scaled, &size, sizeof(scaled));
    scaled *= 0x1p112f; /* exact, also for subnormals */
    memcpy(&word, &scaled, sizeof(word));
    word |= 0x7f800000u & all_if(size >= 0x0f800000u); /* infinities and NaNs */
    word |= (uint32_t)(half & 0x8000u) << 16;
    memcpy(&scaled, &word, sizeof(scaled));
    return scaled;
}

static inline uint16_t f16_narrow(float value)
{
    uint32_t word, small;
    memcpy(&word, &value, sizeof(word));
    uint32_t sign = word >> 16 & 0x8000u, size = word & 0x7fffffffu;
    float magnitude;
    memcpy(&magnitude, &size, sizeof(magnitude));
    magnitude += 0.5f; /* its last bit is that of the smallest half */
    memcpy(&small, &magnitude, sizeof(small));
    small -= 0x3f000000u;
    uint32_t normal = (size - 0x38000000u + 0xfffu + (size >> 13 & 1)) >> 13;
    uint32_t half = normal ^ ((normal ^ small) & all_if(size < 0x38800000u));
    half ^= (half ^ 0x7c00u) & all_if(size >= 0x477ff000u);
    half ^= (half ^ 0x7e00u) & all_if(size > 0x7f800000u);
    return (uint16_t)(half | sign);
}

static inline float bf16_widen(uint16_t bits)
{
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof(value));
    return value;
}

static inline uint16_t bf16_narrow(float value)
{
    uint32_t word;
    memcpy(&word, &value, sizeof(word));
    uint32_t rounded = (word + 0x7fffu + (word >> 16 & 1)) >> 16;
    uint32_t quiet = word >> 16 | 0x40u; /* a NaN stays one */
    return (uint16_t)((word & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

#endif
