/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/numbers/random.h"
#include "tests/lib/unit.h"

TEST(pieces_are_zero_aligned_and_apart)
{
    enum { PIECES = 2000 };
    struct arena arena = {0};
    unsigned char *piece[PIECES];
    size_t size[PIECES];
    for (int k = 0; k < PIECES; k++) {
        size[k] = 1 + (size_t)(random_uniform(1, (uint64_t)k) * (k % 50 ? 200 : 100000));
        piece[k] = arena_alloc(&arena, size[k]);
        assert_non_null(piece[k]);
        assert_int_equal((uintptr_t)piece[k] % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < size[k]; i++)
            assert_int_equal(piece[k][i], 0);
        memset(piece[k], k & 0xFF, size[k]);
    }
    for (int k = 0; k < PIECES; k++) /* nobody wrote into a neighbour */
        for (size_t i = 0; i < size[k]; i++)
            assert_int_equal(piece[k][i], k & 0xFF);
    arena_release(&arena);
    assert_null(arena.head);
    assert_int_equal(arena.size_bytes, 0);
    assert_non_null(arena_alloc(&arena, 8)); /* usable again */
    arena_release(&arena);
    arena_release(&arena); /* harmless */
}

TEST(overflow_gives_null)
{
    struct arena arena = {0};
    assert_null(arena_array(&arena, SIZE_MAX / 2, 4));
    assert_null(arena_array(&arena, 4, SIZE_MAX / 2));
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_alloc(&arena, SIZE_MAX - 8));
    assert_non_null(arena_array(&arena, 0, 8));
    arena_release(&arena);
}

TEST(arrays_grow_and_keep_their_items)
{
    struct arena arena = {0};
    int *items = NULL;
    size_t capacity = 0;
    for (int k = 0; k < 10000; k++) {
        items = arena_grow(&arena, items, &capacity, (size_t)k + 1, sizeof(*items));
        assert_non_null(items);
        assert_true(capacity > (size_t)k);
        items[k] = k;
    }
    for (int k = 0; k < 10000; k++)
        assert_int_equal(items[k], k);
    assert_null(arena_grow(&arena, items, &capacity, SIZE_MAX / 2, sizeof(*items)));
    arena_release(&arena);
}

TEST(text_of_any_length)
{
    struct arena arena = {0};
    char longer[5000];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_string_equal(arena_printf(&arena, "%d-%s", 7, "a"), "7-a");
    assert_int_equal(strlen(arena_printf(&arena, "%s%s", longer, longer)), 2 * 4999);
    const char *copy = arena_strdup(&arena, longer);
    assert_ptr_not_equal(copy, longer);
    assert_string_equal(copy, longer);
    assert_non_null(arena_copy(&arena, NULL, 0));
    arena_release(&arena);
}
