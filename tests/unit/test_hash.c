/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/numbers/random.h"
#include "base/system/hash.h"
#include "tests/lib/unit.h"

/* Databases keep these values: a change here orphans them. */
TEST(values_are_for_ever)
{
    char text[HASH64_TEXT];
    hash64_hex(hash64_text("workload=resnet50 batch=32"), text);
    assert_string_equal(text, "6cd8097933c9b498");
    hash64_hex(hash64_text(""), text);
    assert_string_equal(text, "ba106e90e2da079d");
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* 200 000 texts that differ in a digit or two: 2^64 leaves no room for two equal hashes, and the
 * upper half alone collides about 200000^2 / 2^33 = 4.7 times. */
TEST(similar_texts_differ)
{
    enum { COUNT = 200000 };
    uint64_t *hashes = malloc(COUNT * sizeof(*hashes));
    assert_non_null(hashes);
    for (int k = 0; k < COUNT; k++) {
        char text[64];
        snprintf(text, sizeof(text), "batch=%d threads=%d", k / 100, k % 100);
        hashes[k] = hash64_text(text);
    }
    qsort(hashes, COUNT, sizeof(*hashes), by_value);
    int same_half = 0;
    for (int k = 1; k < COUNT; k++) {
        assert_true(hashes[k] != hashes[k - 1]);
        same_half += hashes[k] >> 32 == hashes[k - 1] >> 32;
    }
    assert_true(same_half < 20);
    free(hashes);
}

/* Each bit of the input flips each bit of the hash in half of all cases. */
TEST(every_bit_counts)
{
    enum { BYTES = 21, TRIALS = 2000 };
    for (int bit = 0; bit < BYTES * 8; bit++) {
        int flips[64] = {0};
        for (int t = 0; t < TRIALS; t++) {
            unsigned char data[BYTES];
            for (int k = 0; k < BYTES; k++)
                data[k] = (unsigned char)(random_uniform(5, (uint64_t)(t * BYTES + k)) * 256);
            uint64_t before = hash64_more(0, data, BYTES);
            data[bit / 8] ^= (unsigned char)(1 << bit % 8);
            uint64_t changed = before ^ hash64_more(0, data, BYTES);
            for (int k = 0; k < 64; k++)
                flips[k] += (int)(changed >> k & 1);
        }
        for (int k = 0; k < 64; k++) /* standard deviation 22: ten of them */
            assert_true(abs(flips[k] - TRIALS / 2) < 224 / 2);
    }
}

TEST(cuts_and_order_count)
{
    uint64_t ab_c = hash64_more(hash64_more(0, "ab", 2), "c", 1);
    uint64_t a_bc = hash64_more(hash64_more(0, "a", 1), "bc", 2);
    assert_true(ab_c != a_bc && ab_c != hash64_text("abc"));
    assert_true(hash64_text("a") != hash64_more(0, "a\0", 2)); /* padding is not contents */
    assert_true(hash64_more(0, "", 0) != 0);
}

TEST(files_hash_like_their_contents)
{
    char path[] = "/tmp/ridge-hash-XXXXXX";
    uint64_t hash = 0;
    int file = mkstemp(path);
    assert_true(file >= 0 && write(file, "some words", 10) == 10);
    close(file);
    MUST(hash64_file, path, &hash);
    assert_true(hash == hash64_text("some words"));
    unlink(path);
    FAILS(STATUS_FAILED, path, hash64_file, path, &hash);
}

TEST(names_hash_by_fnv1a)
{
    assert_true(hash_fnv1a("") == 0xcbf29ce484222325u);
    assert_true(hash_fnv1a("a") == 0xaf63dc4c8601ec8cu); /* its authors' test vectors */
    assert_true(hash_fnv1a("foobar") == 0x85944171f73967e8u);
}
