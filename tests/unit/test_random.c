/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdbool.h>

#include "base/numbers/random.h"
#include "tests/lib/unit.h"

/* Known answers of Philox 4x32-10 from the Random123 distribution (kat_vectors): counter and key
 * all zero; all ones is not reachable here, since counter words 2 and 3 are always zero. */
TEST(matches_the_known_answer)
{
    uint32_t word[4];
    random_words(0, 0, word);
    assert_int_equal(word[0], 0x6627e8d5u);
    assert_int_equal(word[1], 0xe169c58du);
    assert_int_equal(word[2], 0xbc57ac4cu);
    assert_int_equal(word[3], 0x9b00dbd8u);
}

TEST(runs_are_the_same_words)
{
    enum { COUNT = 43 };
    static const uint64_t firsts[] = {0, 5, 0xfffffffdu, 0xffffffff0000000cu};
    for (int f = 0; f < 4; f++) {
        uint32_t words[4 * COUNT], word[4];
        random_words_run(0x123456789abcdefu, firsts[f], COUNT, words);
        for (uint64_t k = 0; k < COUNT; k++) {
            random_words(0x123456789abcdefu, firsts[f] + k, word);
            assert_memory_equal(words + 4 * k, word, sizeof(word));
        }
    }
}

TEST(numbers_depend_on_seed_and_index_alone)
{
    double forward[64], same = 0;
    for (int k = 0; k < 64; k++)
        forward[k] = random_uniform(5, (uint64_t)k);
    for (int k = 63; k >= 0; k--)
        assert_true(random_uniform(5, (uint64_t)k) == forward[k]);
    for (int k = 0; k < 64; k++)
        same += random_uniform(6, (uint64_t)k) == forward[k];
    assert_true(same < 1);
    assert_true(random_uniform(5, 1ull << 40) != random_uniform(5, 0));
}

struct moments {
    double mean, variance, correlation, low, high;
};

static struct moments moments_of(double (*draw)(uint64_t, uint64_t), uint64_t seed)
{
    enum { COUNT = 200000 };
    struct moments m = {.low = INFINITY, .high = -INFINITY};
    double last = 0, sum = 0, squares = 0, products = 0;
    for (uint64_t k = 0; k < COUNT; k++) {
        double x = draw(seed, k);
        sum += x;
        squares += x * x;
        products += x * last;
        last = x;
        m.low = x < m.low ? x : m.low;
        m.high = x > m.high ? x : m.high;
    }
    m.mean = sum / COUNT;
    m.variance = squares / COUNT - m.mean * m.mean;
    m.correlation = (products / COUNT - m.mean * m.mean) / m.variance;
    return m;
}

/* Bounds are five standard errors of 200 000 draws. */
TEST(uniform_is_uniform)
{
    struct moments m = moments_of(random_uniform, 42);
    assert_true(m.low >= 0 && m.high < 1);
    assert_true(m.low < 1e-4 && m.high > 1 - 1e-4);
    assert_true(fabs(m.mean - 0.5) < 5 * 0.2887 / 447.2);
    assert_true(fabs(m.variance - 1.0 / 12) < 5 * 0.0745 / 447.2);
    assert_true(fabs(m.correlation) < 5 / 447.2);
}

TEST(normal_is_normal)
{
    struct moments m = moments_of(random_normal, 43);
    assert_true(fabs(m.mean) < 5 / 447.2);
    assert_true(fabs(m.variance - 1) < 5 * 1.4142 / 447.2);
    assert_true(fabs(m.correlation) < 5 / 447.2);
    assert_true(m.high > 3.5 && m.high < 7);
    assert_true(isfinite(m.low) && isfinite(m.high));
}
