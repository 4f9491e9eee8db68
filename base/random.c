/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <math.h>

void random_words(uint64_t seed, uint64_t i, uint32_t word[4])
{
    uint32_t c[4] = {(uint32_t)i, (uint32_t)(i >> 32), 0, 0};
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
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

uint64_t random_hash(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}
