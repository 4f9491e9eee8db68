/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/lib/citations.h"

#include <math.h>
#include <string.h>

#include "base/numbers/random.h"

enum { SEED_LINKS = 11, SEED_WORDS = 12, SEED_PAPERS = 13, SEED_ORDER = 14 };

/* A bit per place of a matrix: how it is made up before its size per row is known. */
struct bits {
    int32_t rows, columns;
    int64_t stride; /* words of a row */
    uint64_t *word;
};

static bool bits_make(struct arena *arena, int32_t rows, int32_t columns, struct bits *bits)
{
    *bits = (struct bits){.rows = rows, .columns = columns, .stride = (columns + 63) / 64};
    bits->word = arena_array(arena, (size_t)(rows * bits->stride) + 1, sizeof(uint64_t));
    return bits->word;
}

static bool bits_test(const struct bits *b, int32_t row, int32_t column)
{
    return b->word[row * b->stride + column / 64] >> (column % 64) & 1;
}

static void bits_set(struct bits *b, int32_t row, int32_t column)
{
    b->word[row * b->stride + column / 64] |= UINT64_C(1) << (column % 64);
}

static bool csr_from(struct arena *arena, const struct bits *b, struct csr *m)
{
    int32_t entries = 0;
    for (int64_t k = 0; k < b->rows * b->stride; k++)
        entries += __builtin_popcountll(b->word[k]);
    *m = (struct csr){.rows = b->rows, .columns = b->columns, .entries = entries};
    m->offsets = arena_array(arena, (size_t)b->rows + 1, sizeof(int32_t));
    m->column = arena_array(arena, (size_t)entries + 1, sizeof(int32_t));
    m->value = arena_array(arena, (size_t)entries + 1, sizeof(float));
    if (!m->offsets || !m->column || !m->value)
        return false;
    int32_t at = 0;
    for (int32_t r = 0; r < b->rows; r++) {
        for (int32_t c = 0; c < b->columns; c++)
            if (bits_test(b, r, c))
                m->column[at++] = c;
        m->offsets[r + 1] = at;
    }
    return true;
}

/* Numbers 0 ... count - 1 by their weights. */
struct urn {
    int32_t count;
    double *sums; /* of the weights up to and with each */
};

/* Weights 1 / (k + shift)^exponent. */
static bool urn_make(struct arena *arena, int32_t count, double shift, double exponent,
                     struct urn *urn)
{
    double sum = 0;
    urn->count = count;
    urn->sums = arena_array(arena, (size_t)count + 1, sizeof(double));
    if (urn->sums)
        for (int32_t k = 0; k < count; k++)
            urn->sums[k] = sum += pow(k + shift, -exponent);
    return urn->sums;
}

static int32_t urn_draw(const struct urn *urn, double uniform)
{
    double wanted = uniform * urn->sums[urn->count - 1];
    int32_t low = 0, high = urn->count - 1;
    while (low < high) {
        int32_t middle = (low + high) / 2;
        if (urn->sums[middle] <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Papers in an order that has nothing to do with how much they are cited. */
static int32_t *shuffled(struct arena *arena, int32_t count)
{
    int32_t *order = arena_array(arena, (size_t)count + 1, sizeof(*order));
    if (order)
        for (int32_t k = 0; k < count; k++) {
            int32_t other = (int32_t)(random_uniform(SEED_ORDER, (uint64_t)k) * (k + 1));
            order[k] = order[other];
            order[other] = k;
        }
    return order;
}

/* Every paper has a link; the other ends, and the links beyond that, fall on papers by weight. */
static bool make_links(struct arena *arena, const struct citations_size *size, struct csr *m)
{
    struct bits bits;
    struct urn urn;
    int32_t *order = shuffled(arena, size->papers), links = 0;
    if (!order || !bits_make(arena, size->papers, size->papers, &bits) ||
        !urn_make(arena, size->papers, 3, 0.75, &urn))
        return false;
    uint64_t draw = 0, limit = 1000 * (uint64_t)size->links;
    for (int32_t k = 0; k < size->papers; k++)
        bits_set(&bits, k, k);
    for (int32_t from = 0; links < size->links && draw < limit;) {
        bool first = from < size->papers;
        int32_t a = first ? order[from] : order[urn_draw(&urn, random_uniform(SEED_LINKS, draw++))];
        int32_t b = order[urn_draw(&urn, random_uniform(SEED_LINKS, draw++))];
        if (first && a != b)
            from++;
        if (bits_test(&bits, a, b))
            continue;
        bits_set(&bits, a, b);
        bits_set(&bits, b, a);
        links++;
    }
    return links == size->links && csr_from(arena, &bits, m);
}

/* Every paper has a word; the others fall on papers at random. */
static bool make_words(struct arena *arena, const struct citations_size *size, struct csr *m)
{
    struct bits bits;
    struct urn urn;
    uint64_t draw = 0, limit = 1000 * (uint64_t)size->word_entries;
    if (!bits_make(arena, size->papers, size->words, &bits) ||
        !urn_make(arena, size->words, 20, 0.9, &urn))
        return false;
    int32_t made = 0;
    for (; made < size->word_entries && draw < limit; draw++) {
        int32_t word = urn_draw(&urn, random_uniform(SEED_WORDS, draw));
        int32_t paper = made < size->papers
                            ? made
                            : (int32_t)(random_uniform(SEED_PAPERS, draw) * size->papers);
        if (bits_test(&bits, paper, word))
            continue;
        bits_set(&bits, paper, word);
        made++;
    }
    return made == size->word_entries && csr_from(arena, &bits, m);
}

void citations_normalise(struct csr *words, struct csr *adjacency)
{
    for (int32_t r = 0; r < words->rows; r++) {
        int32_t degree = adjacency->offsets[r + 1] - adjacency->offsets[r];
        int32_t count = words->offsets[r + 1] - words->offsets[r];
        for (int32_t z = words->offsets[r]; z < words->offsets[r + 1]; z++)
            words->value[z] = 1 / (float)count;
        for (int32_t z = adjacency->offsets[r]; z < adjacency->offsets[r + 1]; z++) {
            const int32_t *other = adjacency->offsets + adjacency->column[z];
            adjacency->value[z] = 1 / sqrtf((float)degree * (float)(other[1] - other[0]));
        }
    }
}

bool citations_make(struct arena *arena, const struct citations_size *size, struct csr *words,
                    struct csr *adjacency)
{
    if (!make_links(arena, size, adjacency) || !make_words(arena, size, words))
        return false;
    citations_normalise(words, adjacency);
    return true;
}
