/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/unit.h"
#include "workloads/data/cora.h"

/* Four papers, five words, two subjects. */
static const char four[] = "31336\t0\t1\t0\t0\t1\tTheory\n"
                           "1061127\t1\t0\t0\t0\t0\tCase_Based\n"
                           "35\t0\t0\t0\t0\t0\tTheory\n"
                           "1106406 0 1 1 1 1 Theory\r\n";

static enum status parse(struct arena *arena, const char *content, const char *cites,
                         struct cora *c, struct error *err)
{
    struct cora_text a = {"x.content", content, strlen(content)};
    struct cora_text b = {"x.cites", cites, strlen(cites)};
    memset(err, 0, sizeof(*err));
    return cora_parse(arena, &a, &b, c, err);
}

static void near(float got, double wanted)
{
    assert_true(fabs((double)got - wanted) < 1e-6);
}

TEST(reads_papers_words_and_subjects)
{
    static const int32_t offsets[] = {0, 2, 3, 3, 7}, columns[] = {1, 4, 0, 1, 2, 3, 4};
    static const int64_t subjects[] = {1, 0, 1, 1};
    struct arena arena = {0};
    struct cora c;
    MUST(parse, &arena, four, "", &c);
    assert_int_equal(c.size.papers, 4);
    assert_int_equal(c.size.words, 5);
    assert_int_equal(c.size.word_entries, 7);
    assert_int_equal(c.size.classes, 2);
    assert_int_equal(c.size.links, 0);
    assert_memory_equal(c.words.offsets, offsets, sizeof(offsets));
    assert_memory_equal(c.words.column, columns, sizeof(columns));
    assert_memory_equal(c.subjects, subjects, sizeof(subjects));
    assert_string_equal(c.names[0], "Case_Based");
    assert_string_equal(c.names[1], "Theory");
    near(c.words.value[0], 0.5);
    near(c.words.value[2], 1);
    near(c.words.value[3], 0.25);
    near(c.adjacency.value[2], 1); /* no links: the diagonal alone */
    arena_release(&arena);
}

/* 31336 - 1061127 is there three times, both ways; 35 cites itself. */
TEST(counts_a_link_once)
{
    static const int32_t offsets[] = {0, 2, 5, 6, 8}, columns[] = {0, 1, 0, 1, 3, 2, 1, 3};
    struct arena arena = {0};
    struct cora c;
    MUST(parse, &arena, four,
         "31336\t1061127\n1061127 31336\n\n31336 1061127\n35 35\n"
         "1061127\t1106406",
         &c);
    assert_int_equal(c.size.links, 2);
    assert_int_equal(c.adjacency.entries, 8);
    assert_memory_equal(c.adjacency.offsets, offsets, sizeof(offsets));
    assert_memory_equal(c.adjacency.column, columns, sizeof(columns));
    near(c.adjacency.value[0], 1.0 / 2);         /* degree 2 and 2 */
    near(c.adjacency.value[1], 1 / sqrt(2 * 3)); /* 31336 - 1061127 */
    near(c.adjacency.value[2], 1 / sqrt(2 * 3));
    near(c.adjacency.value[4], 1 / sqrt(2 * 3)); /* 1061127 - 1106406 */
    near(c.adjacency.value[5], 1);
    arena_release(&arena);
}

struct bad {
    const char *content, *cites, *says;
};

TEST(says_what_is_wrong_and_where)
{
    static const struct bad files[] = {
        {"", "", "x.content: no paper with a word"},
        {"a 0 x\n", "", "x.content: no paper with a word"},
        {"a\n", "", "x.content:1: a line must have"},
        {"a 1 x\nb y\n", "", "x.content:2: a line must have"},
        {"a 1 1 x\n\nb 0 y\n", "", "x.content:3: 1 words, but the first paper has 2"},
        {"a 1 2 x\n", "", "x.content:1: word 2 is \"2\"; it must be 0 or 1"},
        {"a 1 10 x\n", "", "word 2 is \"10\""},
        {"a 1 x\nb 1 y\na 0 x\n", "", "paper \"a\" is there twice"},
        {"a 1 x\nb 1 y\n", "a b\na\n", "x.cites:2: a line must name two papers"},
        {"a 1 x\nb 1 y\n", "a b b\n", "x.cites:1: a line must name two papers"},
        {"a 1 x\nb 1 y\n", "a b\nb aa\n", "x.cites:2: paper \"aa\" is not among the contents"},
    };
    for (int k = 0; k < ARRAY_COUNT(files); k++) {
        struct arena arena = {0};
        struct cora c;
        FAILS(STATUS_FAILED, files[k].says, parse, &arena, files[k].content, files[k].cites, &c);
        arena_release(&arena);
    }
}
