/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing B where elements are shorter than a word: word w of column n holds elements w * per to
 * w * per + per - 1 of that column, the first one in the lowest bits, zeros after the last one. */
#include <string.h>

#include "engine/kernels/lib/copy_block.h"
#include "engine/kernels/lib/gemm.h"
#include "engine/kernels/lib/simd_dot.h"

enum { WORD = 4, SIGNS = (int)0x80808080 };

/* Columns [0, count) of one panel. */
struct panel {
    const struct gemm_source_words *from;
    const unsigned char *b; /* element (0, 0) */
    int64_t count, width;
    uint32_t *to; /* [words][width] */
};

#define JOIN(name, type, per, bits)                                                                \
    SIMD_INLINE void name(const struct panel *p, int64_t word, int64_t step)                       \
    {                                                                                              \
        const type *rows[per];                                                                     \
        int64_t k = word * (per), left = p->from->k - k;                                           \
        uint32_t *to = p->to + word * p->width;                                                    \
        for (int i = 0; i < (per); i++)                                                            \
            rows[i] = (const type *)(const void *)p->b + (k + (i < left ? i : 0)) * p->from->row;  \
        uint32_t mask = left >= (per) ? UINT32_MAX : (1u << (bits)*left) - 1u;                     \
        for (int64_t n = 0; n < p->count; n++) {                                                   \
            uint32_t joined = 0;                                                                   \
            for (int i = 0; i < (per); i++)                                                        \
                joined |= (uint32_t)rows[i][n * step] << (bits)*i;                                 \
            to[n] = joined & mask;                                                                 \
        }                                                                                          \
    }
JOIN(join_bytes, uint8_t, 4, 8)
JOIN(join_halves, uint16_t, 2, 16)

/* Words [first, last), any strides. */
static void join(const struct panel *p, int64_t first, int64_t last)
{
    int64_t step = p->from->column;
    for (int64_t w = first; w < last; w++) {
        if (p->from->element == 1 && step == 1)
            join_bytes(p, w, 1);
        else if (p->from->element == 1)
            join_bytes(p, w, step);
        else if (step == 1)
            join_halves(p, w, 1);
        else
            join_halves(p, w, step);
    }
}

/* Whether a column's elements lie one after the other and whole words of it are aligned. */
static bool has_words(const struct panel *p)
{
    int64_t apart = p->from->column * p->from->element;
    return p->from->row == 1 && ((uintptr_t)p->b | (uintptr_t)apart) % WORD == 0;
}

static void flip_signs(const struct panel *p, int64_t words)
{
    int64_t rest = p->from->k % WORD;
    for (int64_t w = 0; w < words; w++) {
        bool cut = w == words - 1 && rest;
        uint32_t signs = cut ? (uint32_t)SIGNS & ((1u << 8 * rest) - 1u) : (uint32_t)SIGNS;
        for (int64_t n = 0; n < p->count; n++)
            p->to[w * p->width + n] ^= signs;
    }
}

/* Sums of the signed bytes of each column: products with four ones. */
static void sum_columns(const struct panel *p, int64_t words, int32_t *sums)
{
    vi ones = vi_set1(0x01010101);
    for (int64_t n = 0; n < p->width; n += VL) {
        vi sum = vi_set1(0);
        for (int64_t w = 0; w < words; w++) {
            vi b = vi_load((const int32_t *)(const void *)(p->to + w * p->width + n));
            for (int odd = 0; odd < 2; odd++)
                sum = vi_dot_shorts(sum, word_unsigned(ones, odd), word_signed(b, odd));
        }
        vi_store(sums + n, sum);
    }
}

static void pack_panel(const struct panel *p, int64_t words)
{
    int64_t per = WORD / p->from->element, whole = has_words(p) ? p->from->k / per : 0;
    if (p->count < p->width)
        memset(p->to, 0, (size_t)(words * p->width) * WORD);
    if (whole) {
        struct copy_block block = {.src = (const char *)p->b,
                                   .dst = (char *)p->to,
                                   .src_stride = p->from->column * p->from->element,
                                   .dst_stride = p->width * WORD,
                                   .na = p->count,
                                   .nb = whole};
        copy_block(&block, WORD, false);
    }
    join(p, whole, words);
    if (p->from->flip)
        flip_signs(p, words);
}

void gemm_pack_words(const struct gemm_plan *plan, const struct gemm_source_words *from,
                     int64_t first, int64_t last, float *packed, int32_t *sums)
{
    const struct gemm_size *s = &plan->size;
    int64_t full = (int64_t)s->vectors * VL;
    for (int64_t index = first; index < last; index++) {
        int64_t column = index * full, left = s->n - column;
        struct panel panel = {.from = from, .width = gemm_panel_vectors(plan, index) * VL};
        panel.b = (const unsigned char *)from->b + column * from->column * from->element;
        panel.count = left < panel.width ? left : panel.width;
        panel.to = (uint32_t *)(void *)(packed + column * s->k);
        pack_panel(&panel, s->k);
        if (sums)
            sum_columns(&panel, s->k, sums + column);
    }
}

/* Words [k / 2][width] of bf16 become floats [k][width] in the same place, from the end on. */
static void widen_panel(float *panel, int64_t k, int64_t width)
{
    for (int64_t w = (k + 1) / 2 - 1; w >= 0; w--)
        for (int64_t n = 0; n < width; n += VL) {
            vf word = vf_load(panel + w * width + n);
            if (2 * w + 1 < k)
                vf_store(panel + (2 * w + 1) * width + n, word_bf16(word, 1));
            vf_store(panel + 2 * w * width + n, word_bf16(word, 0));
        }
}

void gemm_pack_widened(const struct gemm_plan *plan, const struct gemm_source_words *from,
                       int64_t first, int64_t last, float *packed)
{
    struct gemm_plan words = *plan;
    words.size.k = (plan->size.k + 1) / 2;
    for (int64_t panel = first; panel < last; panel++) {
        int64_t column = panel * plan->size.vectors * VL;
        float *to = packed + column * plan->size.k;
        gemm_pack_words(&words, from, panel, panel + 1, to - column * words.size.k, NULL);
        widen_panel(to, plan->size.k, gemm_panel_vectors(plan, panel) * VL);
    }
}
