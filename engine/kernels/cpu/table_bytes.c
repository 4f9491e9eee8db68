/* SPDX-License-Identifier: Apache-2.0
 *
 * TableBytes of tensors that lie alike, as one long row. With AVX-512 the table is four vectors of
 * words of two bytes: the byte's upper seven bits find the word, its last bit the half. */
#include "base/numbers/integers.h"
#include "engine/graph/kernel.h"
#include "engine/kernels/lib/simd.h"

enum { TILE = 32768 };

struct kernel_state {
    int64_t count;
};

struct job {
    const unsigned char *x, *table;
    unsigned char *y;
    int64_t count;
};

static enum status plan(const struct kernel_query *q, int variant, struct kernel_state *s,
                        struct error *why)
{
    (void)variant;
    if (q->node->post_count)
        return UNSUPPORTED(why, "no fused epilogue");
    if (!desc_is_dense(&q->out[0]) || !desc_same_memory(&q->in[0], &q->out[0]))
        return UNSUPPORTED(why, "input and result do not lie alike");
    s->count = shape_count(&q->out[0].shape);
    return STATUS_OK;
}

#if defined(__AVX512F__)

enum { AT_ONCE = 32 };

static void look_up(const unsigned char *x, const unsigned char *table, unsigned char *y, int64_t n)
{
    __m512i words[4];
    int64_t i = 0;
    for (int k = 0; k < 4; k++)
        words[k] = _mm512_loadu_si512(table + 64 * k);
    for (; i + AT_ONCE <= n; i += AT_ONCE) {
        __m512i codes = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)(x + i)));
        __m512i at = _mm512_srli_epi16(codes, 1);
        __m512i low = _mm512_permutex2var_epi16(words[0], at, words[1]);
        __m512i high = _mm512_permutex2var_epi16(words[2], at, words[3]);
        __mmask32 upper = _mm512_test_epi16_mask(codes, _mm512_set1_epi16(0x80));
        __m512i word = _mm512_mask_blend_epi16(upper, low, high);
        __mmask32 odd = _mm512_test_epi16_mask(codes, _mm512_set1_epi16(1));
        word = _mm512_mask_srli_epi16(word, odd, word, 8);
        _mm256_storeu_si256((void *)(y + i), _mm512_cvtepi16_epi8(word));
    }
    for (; i < n; i++)
        y[i] = table[x[i]];
}

#else

static void look_up(const unsigned char *x, const unsigned char *table, unsigned char *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = table[x[i]];
}

#endif

static void run_tile(void *context, int64_t tile, int thread)
{
    const struct job *job = context;
    int64_t first = tile * TILE, last = smaller(first + TILE, job->count);
    (void)thread;
    look_up(job->x + first, job->table, job->y + first, last - first);
}

static void launch(const struct kernel_state *s, const struct kernel_args *args)
{
    struct job job = {args->in[0], args->in[1], args->out[0], s->count};
    pool_run(args->pool, divide_up(s->count, TILE), run_tile, &job);
}

REGISTER_KERNEL(table_bytes) = {
    NATIVE(table_bytes), .ops = OPS("TableBytes"), .state_size = sizeof(struct kernel_state),
    .plan = plan,        .launch = launch,
};
