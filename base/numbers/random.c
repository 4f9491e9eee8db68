/* SPDX-License-Identifier: Apache-2.0 */
#include "base/numbers/random.h"

#include <math.h>
#include <string.h>

#include "base/clones.h"

enum { ROUNDS = 10, LANES = 8 };

void random_words(uint64_t seed, uint64_t i, uint32_t word[4])
{
    uint32_t c[4] = {(uint32_t)i, (uint32_t)(i >> 32), 0, 0};
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0];
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t next0 = (uint32_t)(p1 >> 32) ^ c[1] ^ key0;
        uint32_t next2 = (uint32_t)(p0 >> 32) ^ c[3] ^ key1;
        c[1] = (uint32_t)p1;
        c[3] = (uint32_t)p0;
        c[0] = next0;
        c[2] = next2;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    for (int k = 0; k < 4; k++)
        word[k] = c[k];
}

/* Words in the low halves of lanes, so that their products have room. */
typedef uint64_t lanes __attribute__((vector_size(LANES * sizeof(uint64_t)), aligned(8)));

/* What random_words does, for LANES counters at once. */
VECTOR_CLONES static void words_of_lanes(uint64_t seed, uint64_t first, uint32_t *words)
{
    const uint64_t low = 0xffffffffu;
    lanes i, c0, c1, c2 = {0}, c3 = {0};
    for (uint64_t l = 0; l < LANES; l++)
        i[l] = first + l;
    c0 = i & low;
    c1 = i >> 32;
    uint64_t key0 = seed & low, key1 = seed >> 32;
    for (int round = 0; round < ROUNDS; round++) {
        lanes p0 = c0 * 0xD2511F53u, p1 = c2 * 0xCD9E8D57u;
        c0 = (p1 >> 32) ^ c1 ^ key0;
        c2 = (p0 >> 32) ^ c3 ^ key1;
        c1 = p1 & low;
        c3 = p0 & low;
        key0 = (key0 + 0x9E3779B9u) & low;
        key1 = (key1 + 0xBB67AE85u) & low;
    }
    lanes even = c0 | c1 << 32, odd = c2 | c3 << 32;
    for (int l = 0; l < LANES; l++) {
        memcpy(words + 4 * l, &(uint64_t){even[l]}, sizeof(uint64_t));
        memcpy(words + 4 * l + 2, &(uint64_t){odd[l]}, sizeof(uint64_t));
    }
}

void random_words_run(uint64_t seed, uint64_t first, int64_t count, uint32_t *words)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        words_of_lanes(seed, first + (uint64_t)i, words + 4 * i);
    for (; i < count; i++)
        random_words(seed, first + (uint64_t)i, words + 4 * i);
}

double random_uniform(uint64_t seed, uint64_t i)
{
    uint32_t word[4];
    random_words(seed, i >> 1, word);
    int k = (int)(i & 1) * 2;
    uint64_t bits = ((uint64_t)word[k] << 32 | word[k + 1]) >> 11;
    return (double)bits * 0x1p-53;
}

double random_normal(uint64_t seed, uint64_t i)
{
    uint32_t word[4];
    random_words(seed, i >> 1, word);
    double u = ((double)word[0] + 1.0) * 0x1p-32;
    double angle = 6.283185307179586 * (double)word[1] * 0x1p-32;
    double radius = sqrt(-2.0 * log(u));
    return radius * (i & 1 ? sin(angle) : cos(angle));
}
