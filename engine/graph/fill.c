/* SPDX-License-Identifier: Apache-2.0
 *
 * Generated contents of inputs and weights: element i of a tensor is a pure function of (seed, i),
 * the seed that of the fill or a hash of the value's name. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clones.h"
#include "base/numbers/random.h"
#include "base/system/hash.h"
#include "base/system/pool.h"
#include "engine/graph/graph.h"

struct source {
    const struct value *value;
    uint64_t seed;
};

static double uniform(uint64_t seed, int64_t i)
{
    uint32_t word[4];
    random_words(seed, (uint64_t)i >> 2, word);
    return (double)word[i & 3] * 0x1p-32;
}

/* Rank r of 1..n with P(r) ~ r^-1.05 by inversion of the continuous distribution. */
static int64_t zipf(double u, int64_t n)
{
    const double s = 0.05; /* exponent - 1 */
    double top = 1 - pow((double)n + 1, -s);
    int64_t rank = (int64_t)pow(1 - u * top, -1 / s) - 1;
    return rank < 0 ? 0 : rank >= n ? n - 1 : rank;
}

/* Spreads ranks over the table so that frequent rows are not neighbours: a fixed bijection. */
static int64_t scatter(int64_t rank, int64_t n)
{
    if (n < 2)
        return 0;
    int64_t step = (int64_t)((double)n * 0.6180339887) | 1;
    for (int64_t a = step, b = n; b;) {
        int64_t r = a % b;
        a = b;
        b = r;
        if (!b && a != 1) { /* step shares a factor with n: try the next odd one */
            step += 2;
            a = step;
            b = n;
        }
    }
    return (int64_t)((uint64_t)rank * (uint64_t)step % (uint64_t)n); /* n < 2^32 */
}

/* A sum of three waves per channel plus noise: neighbouring pixels correlate as in photographs. */
static double image(const struct source *s, int64_t i)
{
    const struct shape *shape = &s->value->shape;
    int rank = shape->rank;
    int64_t w = rank > 0 ? shape->dim[rank - 1] : 1, h = rank > 1 ? shape->dim[rank - 2] : 1;
    int64_t x = i % w, y = i / w % h, plane = i / (w * h);
    double sum = 0;
    for (uint64_t k = 0; k < 3; k++) {
        double fx = 1 + 7 * random_uniform(s->seed + 1, (uint64_t)plane * 12 + k * 4);
        double fy = 1 + 7 * random_uniform(s->seed + 1, (uint64_t)plane * 12 + k * 4 + 1);
        double phase = 6.2831853 * random_uniform(s->seed + 1, (uint64_t)plane * 12 + k * 4 + 2);
        sum += sin(6.2831853 * (fx * (double)x / (double)w + fy * (double)y / (double)h) + phase);
    }
    return sum * 0.7 + (uniform(s->seed, i) - 0.5) * 0.8;
}

/* A byte with two numbers of which u, in [0, 1), has one behind the other. */
static double nibbles(const struct fill *fill, double u)
{
    int range = (int)(fill->b - fill->a), both = (int)(range * range * u);
    return fill->a + both % range + 16 * (fill->a + both / range);
}

static double element(const struct source *s, int64_t i)
{
    const struct fill *fill = &s->value->fill;
    const struct shape *shape = &s->value->shape;
    int64_t last = shape->rank ? shape->dim[shape->rank - 1] : 1;
    int64_t range = (int64_t)(fill->b - fill->a);
    switch (fill->kind) {
    case FILL_NONE:
        return 0;
    case FILL_CONST:
        return fill->a;
    case FILL_UNIFORM:
        return fill->a + (fill->b - fill->a) * uniform(s->seed, i);
    case FILL_NORMAL:
        return fill->a + fill->b * random_normal(s->seed, (uint64_t)i);
    case FILL_INDEX:
        return fill->a + floor((double)range * uniform(s->seed, i));
    case FILL_ZIPF:
        return fill->a + (double)scatter(zipf(uniform(s->seed, i), range), range);
    case FILL_MASK:
        return (double)(i % last) <
               floor(fill->a + (fill->b - fill->a) * uniform(s->seed, i / last));
    case FILL_IMAGE:
        return fill->a + fill->b * image(s, i);
    case FILL_NIBBLES:
        return nibbles(fill, uniform(s->seed, i));
    }
    return 0;
}

static void store(enum dtype dtype, void *dst, int64_t i, double x)
{
    switch (dtype) {
    case DTYPE_F32:
        ((float *)dst)[i] = (float)x;
        break;
    case DTYPE_F64:
        ((double *)dst)[i] = x;
        break;
    case DTYPE_F16:
        ((uint16_t *)dst)[i] = half_from_float((float)x);
        break;
    case DTYPE_BF16:
        ((uint16_t *)dst)[i] = bfloat_from_float((float)x);
        break;
    case DTYPE_F8E4M3:
        ((uint8_t *)dst)[i] = f8_from_float((float)x);
        break;
    case DTYPE_I8:
        ((int8_t *)dst)[i] = (int8_t)x;
        break;
    case DTYPE_U8:
        ((uint8_t *)dst)[i] = (uint8_t)x;
        break;
    case DTYPE_I16:
        ((int16_t *)dst)[i] = (int16_t)x;
        break;
    case DTYPE_U16:
        ((uint16_t *)dst)[i] = (uint16_t)x;
        break;
    case DTYPE_I32:
        ((int32_t *)dst)[i] = (int32_t)x;
        break;
    case DTYPE_U32:
        ((uint32_t *)dst)[i] = (uint32_t)x;
        break;
    case DTYPE_I64:
        ((int64_t *)dst)[i] = (int64_t)x;
        break;
    case DTYPE_U64:
        ((uint64_t *)dst)[i] = (uint64_t)x;
        break;
    case DTYPE_BOOL:
        ((uint8_t *)dst)[i] = x != 0;
        break;
    case DTYPE_NONE:
    case DTYPE_COUNT:
        break;
    }
}

/* ---- weights: hundreds of millions of uniform floats, four per counter ---- */

enum { RUN = 256, TILE = MATERIALISE_TILE }; /* counters, elements */

VECTOR_CLONES static void scale_words(const uint32_t *words, float low, float scale, float *x)
{
    for (int k = 0; k < 4 * RUN; k++)
        x[k] = low + scale * (float)words[k];
}

/* Those of 16 and 8 bits are the same numbers as in f32, rounded. */
static void fill_uniform(const struct source *s, int64_t first, int64_t count, char *dst)
{
    const enum dtype dtype = s->value->dtype;
    float low = (float)s->value->fill.a;
    float scale = (float)((s->value->fill.b - s->value->fill.a) * 0x1p-32);
    for (int64_t i = 0; i < count; i += 4 * RUN) {
        uint32_t words[4 * RUN];
        float x[4 * RUN];
        random_words_run(s->seed, (uint64_t)(first + i) >> 2, RUN, words);
        scale_words(words, low, scale, x);
        floats_store(dtype, x, dst + (size_t)i * dtype_size(dtype),
                     count - i < 4 * RUN ? count - i : 4 * RUN);
    }
}

/* ---- quantised weights: as many bytes ---- */

/* u of uniform() times range, rounded down. */
static uint32_t scaled(uint32_t word, uint32_t range)
{
    return (uint32_t)((uint64_t)word * range >> 32);
}

VECTOR_CLONES static void scale_bytes(const uint32_t *words, const struct fill *fill, uint8_t *y)
{
    uint32_t low = (uint32_t)fill->a, range = (uint32_t)(fill->b - fill->a);
    if (fill->kind == FILL_INDEX)
        for (int k = 0; k < 4 * RUN; k++)
            y[k] = (uint8_t)(low + scaled(words[k], range));
    else
        for (int k = 0; k < 4 * RUN; k++) {
            uint32_t both = scaled(words[k], range * range);
            y[k] = (uint8_t)(low + both % range + 16 * (low + both / range));
        }
}

static void fill_bytes(const struct source *s, int64_t first, int64_t count, char *dst)
{
    for (int64_t i = 0; i < count; i += 4 * RUN) {
        uint32_t words[4 * RUN];
        uint8_t bytes[4 * RUN];
        random_words_run(s->seed, (uint64_t)(first + i) >> 2, RUN, words);
        scale_bytes(words, &s->value->fill, bytes);
        memcpy(dst + i, bytes, (size_t)(count - i < 4 * RUN ? count - i : 4 * RUN));
    }
}

static bool is_bytes(const struct value *v)
{
    bool whole = v->fill.kind == FILL_INDEX || v->fill.kind == FILL_NIBBLES;
    return whole && v->dtype == DTYPE_U8 && v->fill.a >= 0 && v->fill.b > v->fill.a &&
           v->fill.b <= 256;
}

void value_materialise_tile(const struct value *value, int64_t tile, void *dst)
{
    const enum dtype dtype = value->dtype;
    int64_t first = tile * TILE, left = shape_count(&value->shape) - first;
    int64_t count = left < TILE ? left : TILE;
    if (value->data) {
        size_t size = dtype_size(dtype);
        memcpy(dst, (const char *)value->data + (size_t)first * size, (size_t)count * size);
        return;
    }
    struct source s = {.value = value, .seed = value->fill.seed};
    s.seed = s.seed ? s.seed : hash_fnv1a(value->name);
    bool floats = dtype_is_float(dtype) && dtype != DTYPE_F64;
    if (value->fill.kind == FILL_UNIFORM && floats)
        fill_uniform(&s, first, count, dst);
    else if (is_bytes(value))
        fill_bytes(&s, first, count, dst);
    else
        for (int64_t i = 0; i < count; i++)
            store(dtype, dst, i, element(&s, first + i));
}

struct materialise {
    const struct value *value;
    char *dst;
};

static void fill_tile(void *context, int64_t tile, int thread)
{
    (void)thread;
    const struct materialise *m = context;
    size_t at = (size_t)(tile * TILE) * dtype_size(m->value->dtype);
    value_materialise_tile(m->value, tile, m->dst + at);
}

void value_materialise_by(struct pool *pool, const struct value *value, void *dst)
{
    struct materialise m = {.value = value, .dst = dst};
    pool_run(pool, value_tiles(value), fill_tile, &m);
}

int64_t value_tiles(const struct value *value)
{
    return (shape_count(&value->shape) + TILE - 1) / TILE;
}

void value_materialise(const struct value *value, void *dst)
{
    value_materialise_by(NULL, value, dst);
}
