/* SPDX-License-Identifier: Apache-2.0
 *
 * Words are multiplied and rotated into the state; the end is the finaliser of MurmurHash3
 * (A. Appleby, public domain), whose every input bit flips every output bit with probability 1/2
 * within 0.5 %. tests/unit/test_hash.c measures that of the whole. */
#include "base/system/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/system/file.h"

static const uint64_t odd1 = 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio */
static const uint64_t odd2 = 0xbf58476d1ce4e5b9u;

static uint64_t finish(uint64_t x)
{
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
    return x ^ (x >> 33);
}

static uint64_t step(uint64_t hash, uint64_t word)
{
    word *= odd1;
    hash ^= word ^ (word >> 32);
    return ((hash << 27) | (hash >> 37)) * odd2 + odd1;
}

uint64_t hash64_more(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *at = data;
    size_t left = size;
    uint64_t word;
    for (; left >= sizeof(word); left -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        hash = step(hash, word);
    }
    word = 0;
    if (left)
        memcpy(&word, at, left);
    return finish(step(step(hash, word), size));
}

uint64_t hash64_text(const char *text)
{
    return hash64_more(0, text, strlen(text));
}

enum status hash64_file(const char *path, uint64_t *hash, struct error *err)
{
    struct file file;
    TRY(file_map(path, &file, err));
    *hash = hash64_more(0, file.data, file.size);
    file_unmap(&file);
    return STATUS_OK;
}

uint64_t hash_fnv1a(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

void hash64_hex(uint64_t hash, char text[HASH64_TEXT])
{
    snprintf(text, HASH64_TEXT, "%016" PRIx64, hash);
}
